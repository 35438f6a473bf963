package acceptance

import (
	"strings"
	"testing"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/lab/wire"
)

// What each Deployment of the table reads, what is edited, and whether that is a change for it. None has pods: what a
// template consumes decides. They all are in one namespace, and the edits of all are made at once.
var contents = []struct {
	name string
	// objects are the config objects, named by the letter x in place of the Deployment's name.
	objects string
	// container and pod are fields of the template.
	container, pod string
	// edit are kubectl commands.
	edit  [][]string
	rolls bool
	// unaccounted says that the Deployment reads nothing that Tidemark would take note of.
	unaccounted bool
}{
	{
		name:      "another-key-of-a-configmap-of-which-one-key-is-read",
		objects:   configMap("{READ: a, UNREAD: a}"),
		container: "env: [{name: READ, valueFrom: {configMapKeyRef: {name: x, key: READ}}}]",
		edit:      [][]string{patchData("READ_NOT", "b"), patchData("UNREAD", "b")},
	}, {
		name:      "the-key-that-is-read",
		objects:   configMap("{READ: a, UNREAD: a}"),
		container: "env: [{name: READ, valueFrom: {configMapKeyRef: {name: x, key: READ}}}]",
		edit:      [][]string{patchData("READ", "b")},
		rolls:     true,
	}, {
		name:      "a-key-that-is-no-item-of-the-volume",
		objects:   configMap("{in: a, out: a}"),
		container: "volumeMounts: [{name: v, mountPath: /v}]",
		pod:       "volumes: [{name: v, configMap: {name: x, items: [{key: in, path: in}]}}]",
		edit:      [][]string{patchData("out", "b")},
	}, {
		name:      "an-item-of-the-volume",
		objects:   configMap("{in: a, out: a}"),
		container: "volumeMounts: [{name: v, mountPath: /v}]",
		pod:       "volumes: [{name: v, configMap: {name: x, items: [{key: in, path: in}]}}]",
		edit:      [][]string{patchData("in", "b")},
		rolls:     true,
	}, {
		name:      "a-key-that-is-no-item-of-the-projected-source",
		objects:   configMap("{in: a, out: a}"),
		container: "volumeMounts: [{name: v, mountPath: /v}]",
		pod:       "volumes: [{name: v, projected: {sources: [{configMap: {name: x, items: [{key: in, path: in}]}}]}}]",
		edit:      [][]string{patchData("out", "b")},
	}, {
		name:      "an-item-of-the-projected-source",
		objects:   configMap("{in: a, out: a}"),
		container: "volumeMounts: [{name: v, mountPath: /v}]",
		pod:       "volumes: [{name: v, projected: {sources: [{configMap: {name: x, items: [{key: in, path: in}]}}]}}]",
		edit:      [][]string{patchData("in", "b")},
		rolls:     true,
	}, {
		name:      "a-key-beside-the-subpath-that-is-mounted",
		objects:   configMap("{in: a, out: a}"),
		container: "volumeMounts: [{name: v, mountPath: /v/in, subPath: in}]",
		pod:       "volumes: [{name: v, configMap: {name: x}}]",
		edit:      [][]string{patchData("out", "b")},
	}, {
		name:      "the-subpath-that-is-mounted",
		objects:   configMap("{in: a, out: a}"),
		container: "volumeMounts: [{name: v, mountPath: /v/in, subPath: in}]",
		pod:       "volumes: [{name: v, configMap: {name: x}}]",
		edit:      [][]string{patchData("in", "b")},
		rolls:     true,
	}, {
		name:    "the-environment-of-an-init-container",
		objects: configMap("{KEY: a}"),
		pod:     "initContainers: [{name: first, image: tidemark-sample, envFrom: [{configMapRef: {name: x}}]}]",
		edit:    [][]string{patchData("KEY", "b")},
		rolls:   true,
	}, {
		name:    "the-environment-of-a-restartable-init-container",
		objects: configMap("{KEY: a}"),
		pod:     "initContainers: [{name: beside, image: tidemark-sample, restartPolicy: Always, envFrom: [{configMapRef: {name: x}}]}]",
		edit:    [][]string{patchData("KEY", "b")},
		rolls:   true,
	}, {
		name:      "binary-data-of-a-volume",
		objects:   "kind: ConfigMap\nbinaryData: {blob: AAEC}\n",
		container: "volumeMounts: [{name: v, mountPath: /v}]",
		pod:       "volumes: [{name: v, configMap: {name: x}}]",
		edit:      [][]string{{"patch", "configmap/x", "--type=merge", "-p", `{"binaryData":{"blob":"AAED"}}`}},
		rolls:     true,
	}, {
		name:      "binary-data-beside-an-environment",
		objects:   "kind: ConfigMap\ndata: {KEY: a}\nbinaryData: {blob: AAEC}\n",
		container: "envFrom: [{configMapRef: {name: x}}]",
		edit:      [][]string{{"patch", "configmap/x", "--type=merge", "-p", `{"binaryData":{"blob":"AAED"}}`}},
	}, {
		name:      "an-optional-object-that-appears",
		container: "envFrom: [{configMapRef: {name: x, optional: true}}]",
		edit:      [][]string{{"create", "configmap", "x", "--from-literal=KEY=b"}},
		rolls:     true,
	}, {
		name:      "a-secret",
		objects:   "kind: Secret\nstringData: {KEY: a}\n",
		container: "envFrom: [{secretRef: {name: x}}]",
		edit:      [][]string{{"patch", "secret/x", "--type=merge", "-p", `{"stringData":{"KEY":"b"}}`}},
		rolls:     true,
	}, {
		name:    "an-image-pull-secret",
		objects: "kind: Secret\nstringData: {KEY: a}\n",
		pod:     "imagePullSecrets: [{name: x}]",
		edit:    [][]string{{"patch", "secret/x", "--type=merge", "-p", `{"stringData":{"KEY":"b"}}`}},

		unaccounted: true,
	}, {
		name:      "labels-and-annotations-of-the-object",
		objects:   configMap("{KEY: a}"),
		container: "envFrom: [{configMapRef: {name: x}}]",
		edit:      [][]string{{"label", "configmap/x", "checked=yes"}, {"annotate", "configmap/x", "checked=yes"}},
	}, {
		name:      "an-object-that-is-replaced-by-an-equal-one",
		objects:   configMap("{KEY: a}"),
		container: "envFrom: [{configMapRef: {name: x}}]",
		edit:      [][]string{{"delete", "configmap/x"}, {"create", "configmap", "x", "--from-literal=KEY=a"}},
	}, {
		name:      "an-object-that-is-ignored",
		objects:   configMap("{KEY: a}") + "metadata: {annotations: {" + v1.AnnotationIgnore + ": \"true\"}}\n",
		container: "envFrom: [{configMapRef: {name: x}}]",
		edit:      [][]string{patchData("KEY", "b")},

		unaccounted: true,
	}, {
		name:      "an-object-that-the-program-reloads",
		objects:   configMap("{KEY: a}") + "metadata: {annotations: {" + v1.AnnotationTreatAs + ": live}}\n",
		container: "envFrom: [{configMapRef: {name: x}}]",
		edit:      [][]string{patchData("KEY", "b")},

		unaccounted: true,
	},
}

func configMap(data string) string { return "kind: ConfigMap\ndata: " + data + "\n" }

func patchData(key, value string) []string {
	return []string{"patch", "configmap/x", "--type=merge", "-p", `{"data":{"` + key + `":"` + value + `"}}`}
}

func TestOnlyContentThatThePodsReadRolls(t *testing.T) {
	turn(t)
	s := openRolling(t, "contents")
	s.apply(contentsManifest())
	for _, c := range contents {
		if !c.unaccounted {
			s.known("deployment/" + c.name)
		}
	}
	for _, c := range contents {
		for _, edit := range c.edit {
			s.kubectl(named(c.name, edit)...)
		}
	}
	for _, c := range contents {
		if c.rolls {
			s.stampedAgain("deployment/"+c.name, "")
		}
	}
	s.caughtUp()
	for _, c := range contents {
		if stamp := s.stamp("deployment/" + c.name); (stamp != "") != c.rolls {
			t.Errorf("%s: stamped %q, want a rollout: %t", c.name, stamp, c.rolls)
		}
		want := 1
		if c.rolls {
			want = 2
		}
		if got := s.revisions("deployment/" + c.name); got != want {
			t.Errorf("%s: %d revisions, want %d", c.name, got, want)
		}
	}
}

func TestAChangeThatIsTakenBackAtOnceIsNone(t *testing.T) {
	turn(t)
	s := openRolling(t, "taken-back")
	s.apply(webConfig + program("deployment/web", 0, readsWeb))
	s.known("deployment/web")

	s.set("web", "MODE", "two")
	s.set("web", "MODE", "one")

	s.caughtUp()
	if stamp := s.stamp("deployment/web"); stamp != "" {
		t.Errorf("it was stamped %q", stamp)
	}
	s.revisionsAre("deployment/web", 1)
}

func TestThreeObjectsThatChangeWithinTwoSecondsGiveOneRollout(t *testing.T) {
	turn(t)
	s := openRolling(t, "together")
	s.apply(webConfig + `---
apiVersion: v1
kind: ConfigMap
metadata: {name: more}
data: {MORE: one}
---
apiVersion: v1
kind: Secret
metadata: {name: key}
stringData: {KEY: one}
` + program("deployment/web", 2, sample+"envFrom: [{configMapRef: {name: web}}, {configMapRef: {name: more}}, {secretRef: {name: key}}]"))
	s.rolledOut("deployment/web")
	s.known("deployment/web")

	s.set("web", "MODE", "two")
	s.set("more", "MORE", "two")
	s.setSecret("key", "KEY", "two")

	all := func(start wire.Start) string {
		return start.Env("MODE") + " " + start.Env("MORE") + " " + start.Env("KEY")
	}
	s.loads(all, map[string]int{"two two two": 2})
	s.caughtUp()
	s.revisionsAre("deployment/web", 2)
}

func TestWhatPodsRequireIsWaitedForAndItsReturnIsNoChange(t *testing.T) {
	turn(t)
	s := openRolling(t, "waiting")
	s.apply(webConfig + program("deployment/web", 2, readsWeb))
	s.rolledOut("deployment/web")
	s.known("deployment/web")

	s.kubectl("delete", "configmap", "web")
	s.tells("deployment/web", "Waiting", "configmap/web")
	s.verdict("deployment/web", "waiting")

	s.apply(webConfig)
	s.caughtUp()
	if stamp := s.stamp("deployment/web"); stamp != "" {
		t.Errorf("it was stamped %q, but what it reads is what it was", stamp)
	}
	s.loads(mode, map[string]int{"one": 2})
	s.revisionsAre("deployment/web", 1)
}

func TestAnOptionalObjectThatAppearsReachesAllPodsByOneRollout(t *testing.T) {
	turn(t)
	s := openRolling(t, "optional")
	s.apply(program("deployment/web", 2, "name: app\nimage: tidemark-sample\ncommand: [/sample]\nenvFrom: [{configMapRef: {name: web, optional: true}}]"))
	s.rolledOut("deployment/web")
	s.known("deployment/web")
	s.loads(mode, map[string]int{"": 2})

	s.apply(webConfig)

	s.loads(mode, map[string]int{"one": 2})
	s.caughtUp()
	s.revisionsAre("deployment/web", 2)
}

// contentsManifest is everything that the table names.
func contentsManifest() string {
	manifest := ""
	for _, c := range contents {
		if c.objects != "" {
			object := "apiVersion: v1\n" + c.objects
			if !strings.Contains(object, "metadata: {") {
				object += "metadata: {name: x}\n"
			} else {
				object = strings.ReplaceAll(object, "metadata: {", "metadata: {name: x, ")
			}
			manifest += "---\n" + strings.ReplaceAll(object, "name: x", "name: "+c.name)
		}
		container := "name: app\nimage: tidemark-sample\n" + strings.ReplaceAll(c.container, "name: x", "name: "+c.name)
		manifest += program("deployment/"+c.name, 0, container, strings.ReplaceAll(c.pod, "name: x", "name: "+c.name)) + "\n"
	}
	return manifest
}

// named puts the name in the place of x in a kubectl command.
func named(name string, args []string) []string {
	out := make([]string, len(args))
	for i, arg := range args {
		switch arg {
		case "x":
			arg = name
		case "configmap/x", "secret/x":
			arg = strings.ReplaceAll(arg, "/x", "/"+name)
		}
		out[i] = arg
	}
	return out
}
