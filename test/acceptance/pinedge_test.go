package acceptance

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/digest"
	"tidemark.dev/tidemark/internal/snapshot"
	"tidemark.dev/tidemark/internal/workload"
)

func TestASnapshotGetsAnotherNameWhereSomethingElseHasItsOwn(t *testing.T) {
	turn(t)
	s := openPinned(t, "name-clash")
	const web = "deployment/web"
	data := map[string]string{"MODE": "one", "OTHER": "untouched"}
	o := workload.Object{Kind: workload.ConfigMap, Namespace: s.Namespace, Name: "web"}
	taken := snapshot.Name(o, digest.OfConfigMap(s.Namespace, "web", data, nil).Whole(o), 0)
	theirs := &corev1.ConfigMap{Data: map[string]string{"MODE": "of somebody"}}
	theirs.Namespace, theirs.Name = s.Namespace, taken
	s.must(s.API.Create(t.Context(), theirs))

	s.apply(webConfig + edition(web, 2, "web:1"))
	got := s.pinned(web, "web", "")
	if got == taken {
		t.Errorf("it is pinned to %s, which is somebody's", got)
	}
	s.holds(got, data)
	s.rolledOut(web)
	s.loads(mode, map[string]int{"one": 2})
	if now := s.data(taken); !maps.Equal(now, theirs.Data) {
		t.Errorf("what had the name holds %v", now)
	}
}

func TestJobsOfACronJobReadWhatItWasPinnedToWhenTheyBegan(t *testing.T) {
	turn(t)
	s := openPinned(t, "cronjob-pins")
	const nightly = "cronjob/nightly"
	s.apply(webConfig + cronJob("nightly", false, readsWeb))
	before := s.pinned(nightly, "web", "")
	s.kubectl("create", "job", "first", "--from="+nightly)
	s.loads(mode, map[string]int{"one": 1})

	s.set("web", "MODE", "two")
	s.pinned(nightly, "web", before)
	s.kubectl("create", "job", "second", "--from="+nightly)
	s.loads(mode, map[string]int{"one": 1, "two": 1})
	s.exit("first", "app") // the Job makes another pod
	s.eventually("another pod of the first Job to start", func() error {
		starts, err := s.Starts(t.Context())
		if err != nil {
			return err
		}
		pods := map[string]bool{}
		for _, start := range starts {
			if got, want := mode(start), map[bool]string{true: "one", false: "two"}[strings.HasPrefix(start.Pod, "first-")]; got != want {
				t.Fatalf("%s read %q, want %q", start.Pod, got, want)
			}
			pods[start.Pod] = true
		}
		if len(pods) < 3 {
			return fmt.Errorf("%d pods have started", len(pods))
		}
		return nil
	})
}

// largest is a value that fills a ConfigMap with the key MODE of three bytes up to what the API takes: 1 MiB in all values.
var largest = strings.Repeat("x", 1024*1024-len("one"))

func TestTheLargestConfigMapHasASnapshotOfTheSameBytes(t *testing.T) {
	turn(t)
	s := openPinned(t, "largest")
	cm := &corev1.ConfigMap{Data: map[string]string{"MODE": "one", "OTHER": largest}}
	cm.Namespace, cm.Name = s.Namespace, "web"
	s.must(s.API.Create(t.Context(), cm))
	const web = "deployment/web"
	s.apply(edition(web, 0, "web:1"))
	s.holds(s.pinned(web, "web", ""), cm.Data)
}

// readsDoor is a container that reads MODE of the Secret door.
var readsDoor = strings.NewReplacer("configMapRef", "secretRef", "configMapKeyRef", "secretKeyRef", "name: web", "name: door").Replace(readsWeb)

func TestASecretThatIsToBeVersionedComesBackWithItsRevision(t *testing.T) {
	turn(t)
	s := openPinned(t, "versioned-secret")
	const web = "deployment/web"
	s.apply(`
apiVersion: v1
kind: Secret
metadata: {name: door, annotations: {` + v1.AnnotationTreatAs + `: versioned}}
stringData: {MODE: one, OTHER: untouched}
` + program(web, 2, readsDoor))
	door := workload.Object{Kind: workload.Secret, Namespace: s.Namespace, Name: "door"}
	var first string
	s.eventually("a pin of the Secret", func() error {
		if first = s.pinsOf(web)[door]; first == "" {
			return errors.New("there is none")
		}
		return nil
	})
	s.rolledOut(web)
	s.loads(mode, map[string]int{"one": 2})
	copied := &corev1.Secret{}
	s.must(s.API.Get(t.Context(), ctrlclient.ObjectKey{Namespace: s.Namespace, Name: first}, copied))
	if copied.Immutable == nil || !*copied.Immutable || string(copied.Data["MODE"]) != "one" {
		t.Errorf("the copy is immutable %v, with the keys of %d values", copied.Immutable, len(copied.Data))
	}

	s.setSecret("door", "MODE", "two")
	s.loads(mode, map[string]int{"two": 2})
	s.rolledOut(web)
	s.kubectl("rollout", "undo", web)
	s.loads(mode, map[string]int{"one": 2})
	s.rolledOut(web)
	s.caughtUp()
	if pin := s.pinsOf(web)[door]; pin != first {
		t.Errorf("after the undo it is pinned to %s, want %s", pin, first)
	}
	s.verdict(web, "rolled-back")
}

func TestUninstallingHangsNothingAndStopsNothing(t *testing.T) {
	v := alonePinned(t)
	s := v.open("uninstall", v1.ModePin)
	program := v.control()
	const web = "deployment/web"
	s.apply(webConfig + edition(web, 2, "web:1"))
	s.pinned(web, "web", "")
	s.rolledOut(web)
	before := s.revisions(web)
	s.must(program.Stop())
	v.kubectl("delete", "-k", manifestPath(t, "test/scenario/installpin"), "--timeout=60s")
	if n := s.revisions(web); n != before {
		t.Errorf("uninstalling rolled it: %d revisions, %d before", n, before)
	}
	s.kubectl("scale", web, "--replicas=3")
	s.rolledOut(web)
	s.kubectl("rollout", "restart", web)
	s.rolledOut(web)
	s.loads(mode, map[string]int{"one": 3})
	v.kubectl("delete", "namespace", s.Namespace, "--timeout=120s")
}
