package scenario

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/cli"
	"tidemark.dev/tidemark/lab/client"
)

// Tidemark runs the command line against the lab, and returns what it printed. Any exit status but 0 is an error.
func Tidemark(ctx context.Context, lab *client.Lab, args ...string) (string, error) {
	streams, _, out, errOut := newStreams()
	args = append(args, "--kubeconfig", lab.Kubeconfig(), "--cache-dir", filepath.Join(lab.Status().Directory, "tidemark"))
	if code := cli.Run(ctx, cli.Config{IOStreams: streams, Clock: clock.RealClock{}}, args); code != 0 {
		return out.String(), fmt.Errorf("tidemark %s: exit status %d: %s", args[0], code, strings.TrimSpace(errOut.String()))
	}
	return out.String(), nil
}

func newStreams() (streams genericiooptions.IOStreams, in, out, errOut *bytes.Buffer) {
	in, out, errOut = &bytes.Buffer{}, &bytes.Buffer{}, &bytes.Buffer{}
	return genericiooptions.IOStreams{In: in, Out: out, ErrOut: errOut}, in, out, errOut
}

// Tidemark runs the command line in the scene's namespace.
func (s *Scene) Tidemark(ctx context.Context, args ...string) (string, error) {
	return Tidemark(ctx, s.Lab, append(args, "-n", s.Namespace)...)
}

// Status asks the command line for the verdict on one workload, written as KIND/NAME.
func (s *Scene) Status(ctx context.Context, workload string, flags ...string) (v1.Fleet, error) {
	out, err := s.Tidemark(ctx, append([]string{"status", workload, "-o", "json"}, flags...)...)
	if err != nil {
		return v1.Fleet{}, err
	}
	list := v1.FleetList{}
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		return v1.Fleet{}, fmt.Errorf("read status: %w", err)
	}
	if len(list.Items) != 1 {
		return v1.Fleet{}, fmt.Errorf("status of %s lists %d fleets", workload, len(list.Items))
	}
	return list.Items[0], nil
}
