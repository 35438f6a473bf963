package scenario

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/utils/clock"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/cli"
)

// Check runs `tidemark check` on one of the scenes' manifests against another, as a pull request that changes one into the other
// would, and returns what it found beside what people are shown. It needs no cluster.
func Check(ctx context.Context, before, after string) (text string, found v1.CheckReport, err error) {
	dir, err := os.MkdirTemp("", "tidemark-scenario-")
	if err != nil {
		return "", found, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary directory
	args := []string{"check"}
	for _, file := range []struct{ flag, name string }{{"--filename", after}, {"--against", before}} {
		manifest, err := Manifest(file.name)
		if err != nil {
			return "", found, err
		}
		path := filepath.Join(dir, file.name+".yaml")
		if err := os.WriteFile(path, []byte(manifest), 0o600); err != nil {
			return "", found, err
		}
		args = append(args, file.flag, path)
	}
	run := func(more ...string) (string, error) {
		streams, _, out, errOut := newStreams()
		code := cli.Run(ctx, cli.Config{IOStreams: streams, Clock: clock.RealClock{}}, append(args, more...))
		if code != 0 {
			return "", fmt.Errorf("tidemark check: exit status %d: %s", code, strings.TrimSpace(errOut.String()))
		}
		return out.String(), nil
	}
	if text, err = run(); err != nil {
		return "", found, err
	}
	document, err := run("-o", "json")
	if err == nil {
		err = json.Unmarshal([]byte(document), &found)
	}
	return strings.ReplaceAll(text, dir+string(filepath.Separator), ""), found, err
}
