package rewrite_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"tidemark.dev/tidemark/internal/rewrite"
	"tidemark.dev/tidemark/internal/snapshot"
	"tidemark.dev/tidemark/internal/workload"
)

const namespace = "shop"

// pins reads pins of the namespace.
func pins(t *testing.T, text string) snapshot.Pins {
	t.Helper()
	p, err := snapshot.ParsePins(namespace, text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// spec reads the spec of a pod, and knows every field of it.
func spec(t *testing.T, text string) *corev1.PodSpec {
	t.Helper()
	out := &corev1.PodSpec{}
	if err := yaml.UnmarshalStrict([]byte("---\n"+strings.ReplaceAll(text, "\t", "  ")), out); err != nil {
		t.Fatalf("read spec: %v", err)
	}
	return out
}

func TestPod(t *testing.T) {
	t.Parallel()
	const all = "configmap/web=web-1,secret/web=web-2"
	for name, c := range map[string]struct{ pins, spec, want string }{
		"without pins nothing changes": {"",
			`{containers: [{name: app, envFrom: [{configMapRef: {name: web}}]}]}`,
			`{containers: [{name: app, envFrom: [{configMapRef: {name: web}}]}]}`},
		"an env keeps its key and whether it is optional": {all,
			`{containers: [{name: app, env: [
				{name: A, valueFrom: {configMapKeyRef: {name: web, key: web, optional: true}}},
				{name: B, valueFrom: {secretKeyRef: {name: web, key: b}}}, {name: C, value: web}, {name: D, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]}]}`,
			`{containers: [{name: app, env: [
				{name: A, valueFrom: {configMapKeyRef: {name: web-1, key: web, optional: true}}},
				{name: B, valueFrom: {secretKeyRef: {name: web-2, key: b}}}, {name: C, value: web}, {name: D, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]}]}`},
		"an envFrom keeps its prefix and whether it is optional": {all,
			`{containers: [{name: app, envFrom: [{prefix: web, configMapRef: {name: web, optional: false}}, {secretRef: {name: web, optional: true}}, {secretRef: {name: other}}]}]}`,
			`{containers: [{name: app, envFrom: [{prefix: web, configMapRef: {name: web-1, optional: false}}, {secretRef: {name: web-2, optional: true}}, {secretRef: {name: other}}]}]}`},
		"a volume keeps its name, its items and its modes": {all,
			`{volumes: [{name: web, configMap: {name: web, defaultMode: 420, items: [{key: web, path: web}]}}, {name: s, secret: {secretName: web, optional: true}}]}`,
			`{volumes: [{name: web, configMap: {name: web-1, defaultMode: 420, items: [{key: web, path: web}]}}, {name: s, secret: {secretName: web-2, optional: true}}]}`},
		"a projected volume has its ConfigMaps and Secrets rewritten, other sources not": {all,
			`{volumes: [{name: p, projected: {sources: [{serviceAccountToken: {path: web}}, {configMap: {name: web}}, {secret: {name: web, items: [{key: web, path: web}]}}, {configMap: {name: kube-root-ca.crt}}]}}]}`,
			`{volumes: [{name: p, projected: {sources: [{serviceAccountToken: {path: web}}, {configMap: {name: web-1}}, {secret: {name: web-2, items: [{key: web, path: web}]}}, {configMap: {name: kube-root-ca.crt}}]}}]}`},
		"a sub-path is a path in a volume, and stays": {all,
			`{containers: [{name: app, volumeMounts: [{name: web, mountPath: /web, subPath: web}]}], volumes: [{name: web, configMap: {name: web}}]}`,
			`{containers: [{name: app, volumeMounts: [{name: web, mountPath: /web, subPath: web}]}], volumes: [{name: web, configMap: {name: web-1}}]}`},
		"init containers are rewritten, restartable ones too": {all,
			`{initContainers: [{name: web, envFrom: [{configMapRef: {name: web}}]}, {name: side, restartPolicy: Always, env: [{name: A, valueFrom: {secretKeyRef: {name: web, key: a}}}]}]}`,
			`{initContainers: [{name: web, envFrom: [{configMapRef: {name: web-1}}]}, {name: side, restartPolicy: Always, env: [{name: A, valueFrom: {secretKeyRef: {name: web-2, key: a}}}]}]}`},
		"what the API server reads by itself stays": {"secret/web=web-2",
			`{imagePullSecrets: [{name: web}], ephemeralContainers: [{name: debug, envFrom: [{secretRef: {name: web}}]}],
				volumes: [{name: a, csi: {driver: d, nodePublishSecretRef: {name: web}}}, {name: b, azureFile: {secretName: web, shareName: s}}, {name: c, iscsi: {targetPortal: p, iqn: q, lun: 0, secretRef: {name: web}}}]}`,
			`{imagePullSecrets: [{name: web}], ephemeralContainers: [{name: debug, envFrom: [{secretRef: {name: web}}]}],
				volumes: [{name: a, csi: {driver: d, nodePublishSecretRef: {name: web}}}, {name: b, azureFile: {secretName: web, shareName: s}}, {name: c, iscsi: {targetPortal: p, iqn: q, lun: 0, secretRef: {name: web}}}]}`},
		"the cluster's own trust bundle stays": {"configmap/kube-root-ca.crt=mine,secret/kube-root-ca.crt=yours",
			`{volumes: [{name: a, configMap: {name: kube-root-ca.crt}}, {name: b, secret: {secretName: kube-root-ca.crt}}]}`,
			`{volumes: [{name: a, configMap: {name: kube-root-ca.crt}}, {name: b, secret: {secretName: yours}}]}`},
		"a pin of one kind says nothing of the other": {"configmap/web=web-1",
			`{containers: [{name: app, envFrom: [{secretRef: {name: web}}, {configMapRef: {name: web}}]}]}`,
			`{containers: [{name: app, envFrom: [{secretRef: {name: web}}, {configMapRef: {name: web-1}}]}]}`},
		"a pod that is rewritten already stays": {all,
			`{containers: [{name: app, envFrom: [{secretRef: {name: web-2}}, {configMapRef: {name: web-1}}]}]}`,
			`{containers: [{name: app, envFrom: [{secretRef: {name: web-2}}, {configMapRef: {name: web-1}}]}]}`},
		"a snapshot that is pinned itself stays": {"configmap/a=b,configmap/b=c",
			`{containers: [{name: app, envFrom: [{configMapRef: {name: a}}, {configMapRef: {name: b}}, {configMapRef: {name: c}}]}]}`,
			`{containers: [{name: app, envFrom: [{configMapRef: {name: b}}, {configMapRef: {name: b}}, {configMapRef: {name: c}}]}]}`},
		"pins that go in a circle change nothing": {"configmap/a=b,configmap/b=a",
			`{containers: [{name: app, envFrom: [{configMapRef: {name: a}}, {configMapRef: {name: b}}]}]}`,
			`{containers: [{name: app, envFrom: [{configMapRef: {name: a}}, {configMapRef: {name: b}}]}]}`},
		"a snapshot of one kind may have the name of a pinned object of the other": {"configmap/a=b,secret/b=c",
			`{containers: [{name: app, envFrom: [{configMapRef: {name: a}}, {secretRef: {name: b}}]}]}`,
			`{containers: [{name: app, envFrom: [{configMapRef: {name: b}}, {secretRef: {name: c}}]}]}`},
		"an absent object is read under the name that nothing has": {"configmap/web=absent.tidemark.dev,secret/web=absent.tidemark.dev",
			`{containers: [{name: app, envFrom: [{configMapRef: {name: web, optional: true}}]}], volumes: [{name: s, secret: {secretName: web, optional: true}}]}`,
			`{containers: [{name: app, envFrom: [{configMapRef: {name: absent.tidemark.dev, optional: true}}]}], volumes: [{name: s, secret: {secretName: absent.tidemark.dev, optional: true}}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			got, want := spec(t, c.spec), spec(t, c.want)
			before := got.DeepCopy()
			if changed := rewrite.Pod(got, pins(t, c.pins), namespace); changed == cmp.Equal(before, got) {
				t.Errorf("it says changed=%v", changed)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("want -, got +\n%s", diff)
			}
			if rewrite.Pod(got, pins(t, c.pins), namespace) {
				t.Error("the second pass changed something")
			}
		})
	}
}

func TestPinsOfOtherNamespacesSayNothing(t *testing.T) {
	t.Parallel()
	s := spec(t, `{containers: [{name: app, envFrom: [{configMapRef: {name: web}}]}]}`)
	other := snapshot.Pins{{Kind: workload.ConfigMap, Namespace: "other", Name: "web"}: "web-1"}
	if rewrite.Pod(s, other, namespace) {
		t.Error("rewritten by a pin of another namespace")
	}
}

// canonical writes a value as JSON that can be compared.
func canonical(t *testing.T, v any) any {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var out any
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}
