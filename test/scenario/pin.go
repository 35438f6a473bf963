package scenario

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"time"

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
	c, err := Start(ctx, lab, p)
	if err != nil {
		return nil, err
	}
	if err := AwaitAdmission(ctx, lab, WorkloadsAsked, PodsRewritten); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

// Asked is an object by whose dry run one sees that the API server knows of a policy or a webhook: what admission made of it has
// the text.
type Asked struct{ What, Manifest, Text string }

// What of mode pin can be seen so.
var (
	WorkloadsAsked = Asked{"the webhook on workloads", `
apiVersion: apps/v1
kind: Deployment
metadata: {name: asked, annotations: {` + v1.AnnotationMode + `: pin}}
spec:
  selector: {matchLabels: {app: asked}}
  template:
    metadata: {labels: {app: asked}}
    spec: {containers: [{name: app, image: none, envFrom: [{configMapRef: {name: none, optional: true}}]}]}
`, v1.AnnotationRecord}
	PodsRewritten = Asked{"the rewriting of pods", `
apiVersion: v1
kind: Pod
metadata: {name: asked, annotations: {` + v1.AnnotationPins + `: configmap/none=none-copy}}
spec: {containers: [{name: app, image: none, envFrom: [{configMapRef: {name: none}}]}]}
`, `"name": "none-copy"`}
)

// AwaitAdmission waits until the API server does what the objects ask for: it hears of a policy, or of a certificate that a
// controller made, a moment after it was written. Objects are asked for in the namespace default, and never created.
func AwaitAdmission(ctx context.Context, lab *client.Lab, all ...Asked) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for _, a := range all {
		err := Await(ctx, a.What, func() error {
			out, _, err := lab.KubectlWithInput(ctx, a.Manifest, "create", "--dry-run=server", "-o", "json", "-n", "default", "-f", "-")
			if err == nil && !strings.Contains(out, a.Text) {
				err = fmt.Errorf("it made %s", out)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
