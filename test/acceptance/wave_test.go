package acceptance

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	v1 "tidemark.dev/tidemark/api/v1"
)

func TestWhoComesFromWaveChangesNoManifestAndRestartsNothing(t *testing.T) {
	turn(t)
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

func TestAWorkloadThatWaveLeftWithTheInvalidSchedulerIsRestored(t *testing.T) {
	turn(t)
	s := openControlled(t, "wave-scheduler", "")
	// As Wave's webhook leaves what is created before the ConfigMap that it requires.
	s.apply(program("deployment/web", 2, readsWeb) + program("deployment/observed", 0, readsWeb) + program("deployment/paused", 0, readsWeb))
	for _, name := range []string{"web", "observed", "paused"} {
		s.kubectl("patch", "deployment/"+name, "--type=merge", "-p", `{"metadata":{"annotations":{"`+v1.WaveOptIn+`":"true","`+
			v1.WaveSchedulingDisabled+`":"default-scheduler"}},"spec":{"template":{"spec":{"schedulerName":"`+v1.WaveSchedulerInvalid+`"}}}}`)
	}
	s.kubectl("annotate", "deployment/observed", v1.AnnotationMode+"=observe")
	s.tidemark("pause", "deployment/paused", "-n", s.Namespace)
	s.tells("deployment/web", "Waiting", "configmap/web")
	if got := s.scheduler("web"); got != v1.WaveSchedulerInvalid {
		t.Errorf("while the ConfigMap is missing the scheduler is %q", got)
	}

	s.apply(webConfig)

	s.rolledOut("deployment/web")
	s.loads(mode, map[string]int{"one": 2})
	s.tells("deployment/web", "SchedulingEnabled", "default-scheduler")
	web := s.get("deployment/web")
	if got := s.scheduler("web"); got != "default-scheduler" {
		t.Errorf("the scheduler is %q", got)
	}
	if name, there := web.GetAnnotations()[v1.WaveSchedulingDisabled]; there {
		t.Errorf("Wave's note of the scheduler is still there: %q", name)
	}
	if owners := fieldManagers(web); !slices.Contains(owners, v1.FieldManager) {
		t.Errorf("the field managers are %q, want Tidemark's among them", owners)
	}
	s.known("deployment/web")
	s.caughtUp()
	if events := s.events("deployment/web", "SchedulingEnabled"); len(events) != 1 {
		t.Errorf("events %q, want one", events)
	}
	for _, name := range []string{"observed", "paused"} {
		if got := s.scheduler(name); got != v1.WaveSchedulerInvalid {
			t.Errorf("the scheduler of the one that is %s is %q, want it left alone", name, got)
		}
	}
	s.tidemark("resume", "deployment/paused", "-n", s.Namespace)
	s.tells("deployment/paused", "SchedulingEnabled", "default-scheduler")
}

// scheduler is the scheduler's name in a Deployment's pod template.
func (s *scene) scheduler(name string) string {
	s.t.Helper()
	scheduler, _, _ := unstructured.NestedString(s.get("deployment/"+name).Object, "spec", "template", "spec", "schedulerName")
	return scheduler
}

func fieldManagers(u *unstructured.Unstructured) []string {
	var names []string
	for _, f := range u.GetManagedFields() {
		names = append(names, f.Manager)
	}
	return names
}
