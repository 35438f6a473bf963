package client_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// helmReleases installs, upgrades and rolls back a chart with the real Helm.
func helmReleases(s *site) {
	chart := s.TempDir()
	for name, content := range map[string]string{
		"Chart.yaml":             "apiVersion: v2\nname: web\nversion: 0.1.0\n",
		"templates/config.yaml":  "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: web\ndata:\n  size: {{ .Values.size | quote }}\n",
		"templates/service.yaml": "apiVersion: v1\nkind: Service\nmetadata:\n  name: web\nspec:\n  ports: [{port: 80}]\n",
	} {
		path := filepath.Join(chart, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)); err != nil {
			s.Fatal(err)
		}
	}
	size := func() string { return s.kubectl("get", "configmap", "web", "-o", "jsonpath={.data.size}") }

	s.helm("install", "web", chart, "--set", "size=1", "--wait")
	s.helm("upgrade", "web", chart, "--set", "size=2", "--wait")
	s.equal("after the upgrade", size(), "2")
	s.helm("rollback", "web", "1", "--wait")
	s.equal("after the rollback", size(), "1")
	s.equal("revisions", s.kubectl("get", "secrets", "-l", "owner=helm", "-o", "jsonpath={.items[*].metadata.labels.status}"), "superseded superseded deployed")

	var exit *exec.ExitError
	_, _, err := s.lab.Helm(s.Context(), "-n", s.namespace, "install", "web", chart, "--set", "size=3")
	if !errors.As(err, &exit) || !strings.Contains(err.Error(), "cannot reuse a name") {
		s.Errorf("a second install gives %v", err)
	}
}

func (s *site) helm(args ...string) {
	s.Helper()
	if _, _, err := s.lab.Helm(s.Context(), append([]string{"-n", s.namespace}, args...)...); err != nil {
		s.Fatal(err)
	}
}
