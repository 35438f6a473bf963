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
	"tidemark.dev/tidemark/lab/client/labtest"
	"tidemark.dev/tidemark/lab/wire"
	"tidemark.dev/tidemark/test/scenario"
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
	c := v.control()
	s.controller = c
	const web, left = "deployment/web", "deployment/left"
	s.apply(webConfig + edition(web, 2, "web:1") + "---" + strings.ReplaceAll(webConfig+edition(left, 1, "web:1"), "name: web", "name: left"))
	s.pinned(web, "web", "")
	s.pinned(left, "left", "")
	s.kubectl("annotate", left, v1.AnnotationMode+"="+v1.ModeRoll) // it is taken out of mode pin first, and rolls once
	s.set("left", "MODE", "two")
	s.pinned(left, "left", s.pinned(left, "left", ""))
	s.rolledOut(web, left)
	if pins := s.pinsOf(left); len(pins) != 0 {
		t.Errorf("out of mode pin it has the pins %v", pins)
	}
	before := s.revisions(web)
	s.must(c.Stop())
	s.set("web", "MODE", "two")
	s.set("left", "MODE", "three")

	v.kubectl("delete", "-k", manifestPath(t, "test/scenario/installpin"), "--timeout=60s")

	s.eventually("the API server to rewrite pods no longer", func() error {
		asked := scenario.PodsRewritten
		out, _, err := v.lab.KubectlWithInput(t.Context(), asked.Manifest, "create", "--dry-run=server", "-o", "json", "-n", s.Namespace, "-f", "-")
		if err == nil && strings.Contains(out, asked.Text) {
			err = errors.New("it still does")
		}
		return err
	})
	if n := s.revisions(web); n != before {
		t.Errorf("uninstalling rolled it: %d revisions, %d before", n, before)
	}
	// The pods that are there keep their own configuration, also when they start again. New ones read the sources.
	s.exit("web-", "app")
	s.startedAgain("web-", 2)
	s.loads(modeOf, map[string]int{"web one": 2, "left two": 1})
	s.kubectl("scale", web, "--replicas=3")
	s.kubectl("scale", left, "--replicas=2")
	s.loads(modeOf, map[string]int{"web one": 2, "web two": 1, "left two": 1, "left three": 1})
	s.rolledOut(web, left)
	s.kubectl("rollout", "restart", web)
	s.rolledOut(web)
	s.loads(modeOf, map[string]int{"web two": 3, "left two": 1, "left three": 1})
	v.kubectl("delete", "namespace", s.Namespace, "--timeout=120s")
}

// modeOf words which workload a container is of, with what it read as MODE.
func modeOf(start wire.Start) string {
	name, _, _ := strings.Cut(start.Pod, "-")
	return name + " " + mode(start)
}

// startedAgain waits until so many containers of pods whose names begin so have been started again.
func (s *scene) startedAgain(prefix string, want int) {
	s.t.Helper()
	s.eventually(fmt.Sprintf("%d containers of %s to start again", want, prefix), func() error {
		running, err := s.Running(s.t.Context())
		n := 0
		for _, start := range running {
			if start.Attempt > 0 && strings.HasPrefix(start.Pod, prefix) {
				n++
			}
		}
		return errors.Join(err, labtest.Equal("the number of them", n, want))
	})
}
