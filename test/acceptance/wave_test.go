package acceptance

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	v1 "tidemark.dev/tidemark/api/v1"
)

func TestWhoComesFromWaveChangesNoManifestAndRestartsNothing(t *testing.T) {
	t.Parallel()
	s := openControlled(t, "wave", "") // nothing but Wave's annotations asks for mode roll
	s.apply(webConfig + program("deployment/web", 2, readsWeb))
	s.kubectl("create", "configmap", "extra", "--from-literal=KEY=one")
	s.kubectl("annotate", "deployment/web", v1.WaveOptIn+"=true", v1.WaveExtraConfigMaps+"= extra")
	s.kubectl("patch", "deployment/web", "--type=merge", "-p",
		`{"spec":{"template":{"metadata":{"annotations":{"wave.pusher.com/config-hash":"left-by-wave"}}}}}`)
	s.rolledOut("deployment/web")
	s.known("deployment/web")
	before := s.get("deployment/web").GetGeneration()
	s.caughtUp()
	if now := s.get("deployment/web").GetGeneration(); now != before {
		t.Errorf("to be taken over changed the workload: generation %d, before %d", now, before)
	}

	s.set("web", "MODE", "two")
	s.loads(mode, map[string]int{"two": 2})
	stamp := s.stamp("deployment/web")
	s.set("extra", "KEY", "two")
	s.stampedAgain("deployment/web", stamp)
	s.rolledOut("deployment/web")

	hash, _, _ := unstructured.NestedString(s.get("deployment/web").Object, "spec", "template", "metadata", "annotations", "wave.pusher.com/config-hash")
	if hash != "left-by-wave" {
		t.Errorf("Wave's own hash is %q, want it left alone", hash)
	}
}
