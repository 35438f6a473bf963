package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// charted makes a repository with charts whose directories have other names than the charts, and works in one of its directories.
func charted(t *testing.T, in string) (top string) {
	t.Helper()
	top = t.TempDir()
	for name, text := range map[string]string{
		".git/HEAD":                                  "ref: refs/heads/main\n",
		"apps/chart/Chart.yaml":                      "apiVersion: v2\nname: web\n",
		"apps/chart/templates/config.yaml":           "x",
		"apps/chart/charts/redis/Chart.yaml":         "name: redis\n",
		"apps/chart/charts/redis/templates/one.yaml": "x",
		"libs/common/Chart.yaml":                     "name: common\n",
		"libs/common/templates/two.yaml":             "x",
		"old/web/Chart.yaml":                         "name: web\n",
		"old/web/templates/config.yaml":              "x",
		"old/web/templates/old.yaml":                 "x",
		"broken/Chart.yaml":                          "name: [\n",
		"node_modules/far/Chart.yaml":                "name: far\n",
		"node_modules/far/templates/x.yaml":          "x",
		"over/kustomization.yaml":                    "x",
		"config.yaml":                                "x",
		"out/config.yaml":                            "x",
	} {
		file(t, top, name, text)
	}
	t.Chdir(filepath.Join(top, in))
	return top
}

// sarifURIs checks the manifests, and gives the URIs of what is found.
func sarifURIs(t *testing.T, in string, args ...string) []string {
	t.Helper()
	status, out, errOut := checkRun(t, in, append(args, "-o", "sarif")...)
	var log struct {
		Runs []struct {
			Results []struct {
				Locations []struct {
					PhysicalLocation struct {
						ArtifactLocation struct{ URI string }
						Region           struct{ StartLine int }
					}
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(out), &log); err != nil || status != 0 {
		t.Fatalf("status %d, %v: %s%s", status, err, out, errOut)
	}
	var uris []string
	for _, r := range log.Runs[0].Results {
		at := r.Locations[0].PhysicalLocation
		uris = append(uris, fmt.Sprintf("%s:%d", at.ArtifactLocation.URI, at.Region.StartLine))
	}
	return uris
}

// credentialed is a ConfigMap that something is found in, as helm writes it.
func credentialed(source string) string {
	return "---\n# Source: " + source + "\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\ndata:\n  PASSWORD: hunter2hunter2\n"
}

// A source of helm's begins with the chart's name, which need not be that of its directory: the README's own example is such a one.
func TestCheckPlacesWhatAChartRendered(t *testing.T) {
	for name, c := range map[string]struct{ in, source, command, want string }{
		"a chart in another directory":             {"", "web/templates/config.yaml", "", "apps/chart/templates/config.yaml"},
		"from below the top":                       {"apps/chart/templates", "web/templates/config.yaml", "", "apps/chart/templates/config.yaml"},
		"a chart within it":                        {"", "web/charts/redis/templates/one.yaml", "", "apps/chart/charts/redis/templates/one.yaml"},
		"one that comes from beside it":            {"", "web/charts/common/templates/two.yaml", "", "libs/common/templates/two.yaml"},
		"one that comes in an archive":             {"", "web/charts/zoo/templates/three.yaml", "", "apps/chart/Chart.yaml"},
		"the chart of that name that has the file": {"", "web/templates/old.yaml", "", "old/web/templates/old.yaml"},
		"the chart that the command names":         {"", "web/templates/config.yaml", "cat rendered; : helm template web ./old/web", "old/web/templates/config.yaml"},
		"named from elsewhere":                     {"apps", "web/templates/config.yaml", "cat rendered; : helm template web ../old/web", "old/web/templates/config.yaml"},
		"a chart from elsewhere":                   {"", "bitnami/templates/x.yaml", "", "bitnami/templates/x.yaml"},
		"one that is not looked for":               {"", "far/templates/x.yaml", "", "far/templates/x.yaml"},
		"a path out of the repository":             {"", "web/../../../etc/passwd", "", "apps/chart/Chart.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			charted(t, c.in)
			args := []string{"-f", "-"}
			if c.command != "" {
				file(t, ".", "rendered", credentialed(c.source))
				args = []string{"--render", c.command}
			}
			if got := sarifURIs(t, credentialed(c.source), args...); len(got) != 1 || got[0] != c.want+":1" {
				t.Errorf("got %q, want %s", got, c.want)
			}
		})
	}
}

// A file has its place by itself, whatever a comment in it says.
func TestCheckPlacesFilesWhereTheyStand(t *testing.T) {
	top := charted(t, "apps")
	name := file(t, top, "rendered/all.yaml", credentialed("web/templates/config.yaml"))
	for _, arg := range []string{name, "../rendered/all.yaml", "../rendered"} {
		if got := sarifURIs(t, "", "-f", arg); len(got) != 1 || got[0] != "rendered/all.yaml:8" {
			t.Errorf("%s: got %q", arg, got)
		}
		if _, out, _ := checkRun(t, "", "-f", arg); !strings.HasPrefix(out, arg) {
			t.Errorf("people are told %s", out)
		}
	}
}

// Of a kustomization each object has the file that it comes from, and what is generated the kustomization.
func TestCheckPlacesWhatIsKustomized(t *testing.T) {
	top := charted(t, "apps")
	file(t, top, "over/kustomization.yaml", "resources: [../base]\nconfigMapGenerator:\n- name: made\n  literals: [PASSWORD=hunter2hunter2]\n")
	file(t, top, "base/kustomization.yaml", "resources: [config.yaml]\n")
	file(t, top, "base/config.yaml", credentialed("web/templates/config.yaml"))
	got := sarifURIs(t, "", "-k", "../over")
	if fmt.Sprint(got) != "[base/config.yaml:1 over/kustomization.yaml:1]" && fmt.Sprint(got) != "[over/kustomization.yaml:1 base/config.yaml:1]" {
		t.Errorf("got %q", got)
	}
	for _, uri := range got {
		if _, err := os.Stat(filepath.Join(top, strings.TrimSuffix(uri, ":1"))); err != nil {
			t.Error(err)
		}
	}
}
