package rewrite_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidemark.dev/tidemark/internal/rewrite"
)

func TestMismatches(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		pins, spec string
		want       []string
	}{
		"a pod that is rewritten has none": {"configmap/web=web-1,secret/door=absent.tidemark.dev",
			`{containers: [{name: app, envFrom: [{configMapRef: {name: web-1}}, {secretRef: {name: absent.tidemark.dev, optional: true}}, {secretRef: {name: free}}]}]}`,
			nil},
		"a pod without pins has none": {"",
			`{containers: [{name: app, envFrom: [{configMapRef: {name: web}}]}]}`, nil},
		"each place that reads a pinned object is one": {"configmap/web=web-1,secret/door=door-1",
			`{initContainers: [{name: init, env: [{name: A, value: a}, {name: B, valueFrom: {configMapKeyRef: {name: web, key: b}}}]}],
				containers: [{name: app, envFrom: [{configMapRef: {name: web-1}}, {secretRef: {name: door}}]}],
				volumes: [{name: a, secret: {secretName: door}}, {name: b, configMap: {name: web}},
					{name: c, projected: {sources: [{configMap: {name: web}}, {secret: {name: door}}]}}]}`,
			[]string{
				"init: spec.initContainers[0].env[1].valueFrom.configMapKeyRef.name reads configmap/web, which is pinned to web-1",
				"app: spec.containers[0].envFrom[1].secretRef.name reads secret/door, which is pinned to door-1",
				": spec.volumes[0].secret.secretName reads secret/door, which is pinned to door-1",
				": spec.volumes[1].configMap.name reads configmap/web, which is pinned to web-1",
				": spec.volumes[2].projected.sources[0].configMap.name reads configmap/web, which is pinned to web-1",
				": spec.volumes[2].projected.sources[1].secret.name reads secret/door, which is pinned to door-1",
			}},
		"a pin of what the pod does not reference is none": {"configmap/web=web-2,secret/door=door-2",
			`{containers: [{name: app, envFrom: [{configMapRef: {name: web-1}}, {secretRef: {name: web}}]}]}`, nil},
		"a snapshot that is pinned itself is none": {"configmap/a=b,configmap/b=c",
			`{containers: [{name: app, envFrom: [{configMapRef: {name: b}}]}]}`, nil},
		"what is never pinned is none": {"secret/door=door-1,configmap/kube-root-ca.crt=x",
			`{imagePullSecrets: [{name: door}], containers: [{name: app, envFrom: [{secretRef: {name: door-1}}]}],
				volumes: [{name: a, configMap: {name: kube-root-ca.crt}}, {name: b, csi: {driver: d, nodePublishSecretRef: {name: door}}}],
				ephemeralContainers: [{name: debug, envFrom: [{secretRef: {name: door}}]}]}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}, Spec: *spec(t, c.spec)}
			var got []string
			for _, m := range rewrite.Mismatches(pod, pins(t, c.pins)) {
				got = append(got, m.Container+": "+m.String())
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("want -, got +\n%s", diff)
			}
		})
	}
}
