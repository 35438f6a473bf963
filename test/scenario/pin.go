package scenario

import (
	"context"
	"fmt"
	"net"
	"path/filepath"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/lab/client"
)

// StartPinned installs mode pin and starts the controller program with its webhook on workloads. As the lab has no network for
// Services, the API server is told an address in place of the Service; nothing else of what ships is changed.
func StartPinned(ctx context.Context, lab *client.Lab, p Program) (*Controller, error) {
	if err := InstallPin(ctx, lab); err != nil {
		return nil, err
	}
	address, err := FreeAddress()
	if err != nil {
		return nil, err
	}
	root, err := Root()
	if err != nil {
		return nil, err
	}
	// Not applied over the one of a program before, which has an address in it.
	if _, _, err := lab.Kubectl(ctx, "delete", "mutatingwebhookconfiguration", v1.WebhookWorkloads, "--ignore-not-found"); err != nil {
		return nil, err
	}
	if _, _, err := lab.Kubectl(ctx, "apply", "-f", filepath.Join(root, "deploy", "pin", "webhook.yaml")); err != nil {
		return nil, err
	}
	url := fmt.Sprintf(`[{"op": "replace", "path": "/webhooks/0/clientConfig", "value": {"url": "https://%s/workloads"}}]`, address)
	_, _, err = lab.Kubectl(ctx, "patch", "mutatingwebhookconfiguration", v1.WebhookWorkloads, "--type=json", "-p", url)
	if err != nil {
		return nil, err
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	p.Flags = append([]string{"--webhook", "--webhook-address", address, "--webhook-name", host}, p.Flags...)
	return Start(ctx, lab, p)
}
