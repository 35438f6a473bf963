package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"tidemark.dev/tidemark/internal/fleet"
	"tidemark.dev/tidemark/internal/workload"
)

// box is a container that can be looked into: the output of commands, by the command line.
type box map[string]string

func (b box) run(_ context.Context, _ string, command ...string) ([]byte, error) {
	out, ok := b[strings.Join(command, " ")]
	if !ok {
		return nil, errors.New("executable file not found in $PATH")
	}
	return []byte(out), nil
}

// lookInto looks into a container with the spec, of whose ConfigMaps the keys are given.
func lookInto(t *testing.T, b box, spec string, keys map[string][]string) (fleet.Looked, error) {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop"}}
	if err := yaml.Unmarshal([]byte(spec), &pod.Spec); err != nil {
		t.Fatal(err)
	}
	l := Look{
		Run: b.run, Pod: pod, Source: func(_ string, o workload.Object) workload.Object {
			o.Name = strings.TrimSuffix(o.Name, "-copy")
			return o
		},
		Keys: func(o workload.Object) []string { return keys[o.Name] },
	}
	return l.Into(t.Context(), &pod.Spec.Containers[0])
}

// tell words what was found, with the value of which a sum is among those given: "env pricing.LEASE=10m".
func tell(looked fleet.Looked, values ...string) []string {
	var out []string
	for _, o := range looked.Objects {
		for _, view := range []struct {
			name string
			keys map[string]fleet.ReportedKey
		}{{"env", o.Env}, {"file", o.Files}} {
			for _, key := range slices.Sorted(maps.Keys(view.keys)) {
				text := "gone"
				if k := view.keys[key]; k.There {
					text = "?"
					for _, v := range values {
						if sumOf(o.Object, key, []byte(v)) == k.Sum {
							text = v
						}
					}
				}
				out = append(out, fmt.Sprintf("%s %s.%s=%s", view.name, o.Object.Name, key, text))
			}
		}
	}
	return out
}

func TestALookAtTheEnvironment(t *testing.T) {
	const all = `{containers: [{name: app, envFrom: [{prefix: P_, configMapRef: {name: pricing}}], env: [{name: LEVEL, valueFrom: {configMapKeyRef: {name: log-copy, key: level}}}]}]}`
	keys := map[string][]string{"pricing": {"LEASE", "MODE", "a.b"}, "log": {"level"}, "base": {"LEASE"}}
	const given = "P_LEASE=10m\x00LEVEL=debug\x00PATH=/bin\x00"
	want := []string{"env log.level=debug", "env pricing.LEASE=10m", "env pricing.MODE=gone"}
	for name, tc := range map[string]struct {
		box   box
		spec  string
		want  []string
		noEnv string
	}{
		"of the process":   {box{"cat /proc/1/environ": given}, all, want, ""},
		"of the container": {box{"env -0": given}, all, want, ""},
		"by lines":         {box{"env": strings.ReplaceAll(given, "\x00", "\n")}, all, want, ""},
		"where a program overwrote its own": {
			box{"cat /proc/1/environ": "P_LEASE=\x00LEVEL=debug\x00", "env -0": given}, all, []string{"env log.level=debug", "env pricing.MODE=gone"}, "",
		},
		"with a value of several lines, by lines": {box{"env": "P_LEASE=10m\nmore\nLEVEL=debug\n"}, all, []string{"env log.level=debug", "env pricing.MODE=gone"}, ""},
		"where the first process is another's": {
			box{"cat /proc/1/environ": "P_LEASE=wrong\x00", "env -0": given}, strings.Replace(all, "{containers", "{shareProcessNamespace: true, containers", 1), want, "",
		},
		"in an image with nothing": {box{}, all, nil, "neither cat nor env tells the environment: executable file not found in $PATH"},
		"of a variable that another source gives": {
			box{"env -0": "LEASE=10m\x00MODE=x\x00"},
			`{containers: [{name: app, envFrom: [{configMapRef: {name: pricing}}], env: [{name: MODE, value: x}]}]}`,
			[]string{"env pricing.LEASE=10m"}, "",
		},
		"of a variable that a Secret may give": {
			box{"env -0": "LEASE=10m\x00MODE=x\x00"}, `{containers: [{name: app, envFrom: [{configMapRef: {name: pricing}}, {secretRef: {name: door}}]}]}`, nil, "",
		},
		"of a variable that another ConfigMap may give": {
			box{"env -0": "LEASE=10m\x00MODE=x\x00"}, `{containers: [{name: app, envFrom: [{configMapRef: {name: pricing}}, {configMapRef: {name: base}}]}]}`,
			[]string{"env pricing.MODE=?"}, "",
		},
		"of a variable that a Secret before may give": {
			box{"env -0": "LEASE=10m\x00"}, `{containers: [{name: app, envFrom: [{secretRef: {name: door}}, {configMapRef: {name: pricing}}]}]}`, nil, "",
		},
		"of an optional key over what another source may give": {
			box{"env -0": "LEASE=10m\x00"},
			`{containers: [{name: app, envFrom: [{configMapRef: {name: base}}], env: [{name: LEASE, valueFrom: {configMapKeyRef: {name: log, key: level, optional: true}}}]}]}`, nil, "",
		},
		"of a key that is required, over what another source may give": {
			box{"env -0": "LEASE=10m\x00"},
			`{containers: [{name: app, envFrom: [{configMapRef: {name: base}}], env: [{name: LEASE, valueFrom: {configMapKeyRef: {name: log, key: level}}}]}]}`, []string{"env log.level=10m"}, "",
		},
		"of an optional key that nothing else gives": {
			box{"env -0": "A=10m\x00"},
			`{containers: [{name: app, env: [{name: A, valueFrom: {configMapKeyRef: {name: log, key: level, optional: true}}}]}]}`, []string{"env log.level=10m"}, "",
		},
		"of a variable that only a Secret gives": {
			box{"env -0": "PASSWORD=10m\x00"}, `{containers: [{name: app, env: [{name: PASSWORD, valueFrom: {secretKeyRef: {name: door, key: password}}}]}]}`, nil, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			looked, err := lookInto(t, tc.box, tc.spec, keys)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, tell(looked, "10m", "debug")); diff != "" || looked.NoEnv != tc.noEnv {
				t.Errorf("no environment because %q (-want +got):\n%s", looked.NoEnv, diff)
			}
		})
	}
}

func TestALookAtFiles(t *testing.T) {
	keys := map[string][]string{"pricing": {"limits", "rates"}}
	environment := box{"env -0": "PATH=/bin\x00"}
	for name, tc := range map[string]struct {
		files   box
		spec    string
		want    []string
		noFiles string
	}{
		"a volume": {
			box{"cat /etc/p/limits": "1", "cat /etc/p/rates": "2"},
			`{containers: [{name: app, volumeMounts: [{name: v, mountPath: /etc/p}]}], volumes: [{name: v, configMap: {name: pricing-copy}}]}`,
			[]string{"file pricing.limits=1", "file pricing.rates=2"}, "",
		},
		"items of a projected volume": {
			box{"cat /etc/p/a/limits.yaml": "1"},
			`{containers: [{name: app, volumeMounts: [{name: v, mountPath: /etc/p}]}],
				volumes: [{name: v, projected: {sources: [{configMap: {name: pricing, items: [{key: limits, path: a/limits.yaml}]}}, {secret: {name: door}}]}}]}`,
			[]string{"file pricing.limits=1"}, "",
		},
		"one file by subPath": {
			box{"cat /etc/limits.yaml": "1"},
			`{containers: [{name: app, volumeMounts: [{name: v, mountPath: /etc/limits.yaml, subPath: limits}]}], volumes: [{name: v, configMap: {name: pricing}}]}`,
			[]string{"file pricing.limits=1"}, "",
		},
		"a file that cannot be read": {
			box{"cat /etc/p/rates": "2"},
			`{containers: [{name: app, volumeMounts: [{name: v, mountPath: /etc/p}]}], volumes: [{name: v, configMap: {name: pricing}}]}`,
			[]string{"file pricing.rates=2"}, "cat /etc/p/limits fails: executable file not found in $PATH",
		},
		"a Secret's": {
			box{"cat /etc/s/password": "MARKER"},
			`{containers: [{name: app, volumeMounts: [{name: v, mountPath: /etc/s}]}], volumes: [{name: v, secret: {secretName: door}}]}`, nil, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			maps.Copy(tc.files, environment)
			looked, err := lookInto(t, tc.files, tc.spec, keys)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, tell(looked, "1", "2")); diff != "" || looked.NoFiles != tc.noFiles {
				t.Errorf("no files because %q (-want +got):\n%s", looked.NoFiles, diff)
			}
		})
	}
}

func TestAMissingRightEndsALook(t *testing.T) {
	l := Look{
		Pod: &corev1.Pod{Spec: corev1.PodSpec{ShareProcessNamespace: ptr.To(false)}},
		Run: func(context.Context, string, ...string) ([]byte, error) { return nil, &ForbiddenExecError{"shop"} },
	}
	_, err := l.Into(t.Context(), &corev1.Container{Name: "app"})
	if err == nil || err.Error() != "missing the right to create pods/exec in namespace shop" {
		t.Errorf("got %v", err)
	}
}
