package repo

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"sigs.k8s.io/yaml"
)

// helmPlugin are the fields of plugin.yaml that Helm 3 knows since its first release and Helm 4 still reads where there is no apiVersion. Helm 3
// refuses a plugin with any other field.
type helmPlugin struct {
	Name            string              `json:"name"`
	Version         string              `json:"version"`
	Usage           string              `json:"usage"`
	Description     string              `json:"description"`
	PlatformCommand []map[string]string `json:"platformCommand"`
	Command         string              `json:"command"`
	IgnoreFlags     bool                `json:"ignoreFlags"`
	Hooks           map[string]string   `json:"hooks"`
	Downloaders     []map[string]any    `json:"downloaders"`
}

func TestHelm3And4BothReadThePluginsManifest(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "deploy", "helm-plugin", "plugin.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var p helmPlugin
	if err := yaml.UnmarshalStrict(text, &p); err != nil {
		t.Fatal(err)
	}
	for what, ok := range map[string]bool{
		"its name":                   regexp.MustCompile(`^[A-Za-z0-9_-]+$`).MatchString(p.Name),
		"its version":                regexp.MustCompile(`^\d+\.\d+\.\d+$`).MatchString(p.Version),
		"its one command":            p.Command != "" && len(p.PlatformCommand) == 0,
		"flags, which helm hands on": !p.IgnoreFlags,
	} {
		if !ok {
			t.Errorf("%s: %+v", what, p)
		}
	}
}
