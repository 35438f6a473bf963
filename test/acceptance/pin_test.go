package acceptance

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/lab/wire"
)

// edition is the manifest of one release of a workload that reads the ConfigMap web, with its image.
func edition(object string, pods int, image string) string {
	return program(object, pods, strings.ReplaceAll(readsWeb, "image: tidemark-sample", "image: "+image))
}

// readsThree makes the sample program's container read a ConfigMap, another, and a Secret that is not versioned.
const readsThree = sample + "envFrom: [{configMapRef: {name: web}}, {configMapRef: {name: other}}, {secretRef: {name: key}}]\n"

// otherConfig are the two objects of readsThree beside the ConfigMap web.
const otherConfig = `---
apiVersion: v1
kind: ConfigMap
metadata: {name: other}
data: {ELSE: one}
---
apiVersion: v1
kind: Secret
metadata: {name: key}
stringData: {KEY: one}
`

// three words what a container read of the objects of readsThree.
func three(s wire.Start) string { return s.Env("MODE") + " " + s.Env("ELSE") + " " + s.Env("KEY") }

func TestARevisionThatComesBackReadsItsOwnConfiguration(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"deployment", "statefulset", "daemonset"} {
		t.Run(kind, func(t *testing.T) {
			turn(t)
			s := openPinned(t, "comes-back-"+kind)
			web := kind + "/web"
			const pods = 4 // a DaemonSet has one on each node
			release := func(image string) {
				t.Helper()
				s.apply(program(web, pods, strings.ReplaceAll(readsThree, "image: tidemark-sample", "image: "+image)))
			}
			s.apply(webConfig + otherConfig)
			release("web:1")
			first := s.pinned(web, "web", "")
			s.rolledOut(web)
			s.loads(three, map[string]int{"one one one": pods})
			s.holds(first, map[string]string{"MODE": "one", "OTHER": "untouched"})

			s.set("web", "MODE", "two")
			second := s.pinned(web, "web", first)
			s.rolledOut(web)
			s.loads(three, map[string]int{"two one one": pods})

			s.kubectl("rollout", "undo", web)
			s.tells(web, "RolledBack", "configmap/web")
			s.rolledOut(web)
			s.loads(three, map[string]int{"one one one": pods})
			s.pinned(web, "web", second)
			s.caughtUp()
			s.staysBack(web, first)

			// A rotated Secret, an edit of another object, a restart: what was rolled back stays so. A new image ends it.
			s.setSecret("key", "KEY", "two")
			s.set("other", "ELSE", "two")
			s.loads(three, map[string]int{"one two two": pods})
			s.rolledOut(web)
			s.caughtUp()
			s.staysBack(web, first)
			s.kubectl("rollout", "restart", web)
			s.rolledOut(web)
			s.loads(three, map[string]int{"one two two": pods})
			s.staysBack(web, first)
			release("web:3")
			s.loads(three, map[string]int{"two two two": pods})
			s.rolledOut(web)
			s.caughtUp()
			if got := s.snapshots("web"); len(got) != 2 {
				t.Errorf("there are the snapshots %v, want two: content that was there before is used again", got)
			}
			s.verdict(web, "in-step")
		})
	}
}

// staysBack fails the test unless the ConfigMap web is held back, alone, on the copy that a rollback left the workload on.
func (s *scene) staysBack(object, copied string) {
	s.t.Helper()
	if pin := s.pinsOf(object)[configMapOf(s.Namespace, "web")]; pin != copied {
		s.t.Errorf("%s is pinned to %s, want %s as the rollback left it", object, pin, copied)
	}
	want := []string{"configmap/" + s.Namespace + "/web"}
	if status := s.verdict(object, "rolled-back"); !slices.Equal(status.HeldBack, want) {
		s.t.Errorf("held back of %s is %v, want %v", object, status.HeldBack, want)
	}
}

func TestAStatefulSetThatIsStuckOnABadCopyHealsByAnUndo(t *testing.T) {
	turn(t)
	s := openPinned(t, "heals")
	const web = "statefulset/web"
	s.apply(webConfig + edition(web, 3, "web:1"))
	s.pinned(web, "web", "")
	s.rolledOut(web)

	s.kubectl("patch", "configmap", "web", "--type=merge", "-p", `{"data":{"MODE":null,"MOOD":"two"}}`)
	s.eventually("a pod that refuses its configuration", func() error {
		refused, err := s.Refused(t.Context())
		if err == nil && len(refused) != 1 {
			err = fmt.Errorf("%d do", len(refused))
		}
		return err
	})

	s.kubectl("rollout", "undo", web)
	s.rolledOut(web)
	s.loads(mode, map[string]int{"one": 3})
	s.tells(web, "PodDeleted", "web-2")
}

func TestAnUnreadKeyMovesNoPinAndContentThatReturnsIsUsedAgain(t *testing.T) {
	turn(t)
	s := openPinned(t, "unread")
	s.apply(`
apiVersion: v1
kind: ConfigMap
metadata: {name: web}
data: {MODE: one, OTHER: untouched}
` + program("deployment/web", 2, sample+"env: [{name: MODE, valueFrom: {configMapKeyRef: {name: web, key: MODE}}}]"))
	first := s.pinned("deployment/web", "web", "")
	s.rolledOut("deployment/web")

	s.set("web", "OTHER", "touched")
	s.caughtUp()
	s.pinned("deployment/web", "web", "")
	if now := s.pinned("deployment/web", "web", ""); now != first {
		t.Errorf("the pin moved from %s to %s", first, now)
	}
	s.set("web", "OTHER", "untouched")
	s.set("web", "MODE", "two")
	second := s.pinned("deployment/web", "web", first)
	s.set("web", "MODE", "one")
	if third := s.pinned("deployment/web", "web", second); third != first {
		t.Errorf("the pin is %s, want %s again, which holds the same", third, first)
	}
	s.loads(mode, map[string]int{"one": 2})
}

func TestAnOptionalObjectThatAppearsLaterDoesNotAppearInAnOlderRevision(t *testing.T) {
	turn(t)
	s := openPinned(t, "absent")
	const web = "deployment/web"
	s.apply(program(web, 2, "name: app\nimage: tidemark-sample\ncommand: [/sample]\nenvFrom: [{configMapRef: {name: web, optional: true}}]"))
	if pin := s.pinned(web, "web", ""); pin != v1.AbsentName {
		t.Fatalf("an absent object is pinned to %q, want %q", pin, v1.AbsentName)
	}
	s.rolledOut(web)
	s.apply(webConfig)
	s.loads(mode, map[string]int{"one": 2})
	s.rolledOut(web)

	s.kubectl("rollout", "undo", web)
	s.rolledOut(web)
	s.loads(mode, map[string]int{"": 2})
}

func TestASourceThatIsDeletedTakesNoPodDown(t *testing.T) {
	turn(t)
	s := openPinned(t, "deleted")
	const web = "deployment/web"
	s.apply(webConfig + edition(web, 2, "web:1"))
	s.pinned(web, "web", "")
	s.rolledOut(web)

	s.kubectl("delete", "configmap", "web")
	s.kubectl("rollout", "restart", web)
	s.rolledOut(web)
	s.loads(mode, map[string]int{"one": 2})
	s.kubectl("scale", web, "--replicas=4")
	s.loads(mode, map[string]int{"one": 4})
	s.verdict(web, "in-step")
}

func TestWhatIsRotatedRollsAndIsNeverFrozen(t *testing.T) {
	turn(t)
	s := openPinned(t, "rotated")
	const web = "deployment/web"
	s.apply(webConfig + `---
apiVersion: v1
kind: Secret
metadata: {name: key}
stringData: {KEY: one}
` + program(web, 2, sample+"envFrom: [{configMapRef: {name: web}}, {secretRef: {name: key}}]"))
	first := s.pinned(web, "web", "")
	s.rolledOut(web)
	s.set("web", "MODE", "two")
	s.pinned(web, "web", first)
	s.rolledOut(web)
	s.kubectl("rollout", "undo", web)
	s.tells(web, "RolledBack", "configmap/web")
	s.rolledOut(web)

	s.setSecret("key", "KEY", "two")
	both := func(start wire.Start) string { return start.Env("MODE") + " " + start.Env("KEY") }
	s.loads(both, map[string]int{"one two": 2})
	s.rolledOut(web)
	s.verdict(web, "rolled-back")
	if pins := s.pinsOf(web); len(pins) != 1 {
		t.Errorf("pins are %v, want that of the ConfigMap alone", pins)
	}
}

func TestPodsOfPinnedWorkloadsNeedNoTidemark(t *testing.T) {
	v := alonePinned(t)
	s, c := v.open("alone", v1.ModePin), v.control()
	const web = "deployment/web"
	s.apply(webConfig + edition(web, 2, "web:1"))
	first := s.pinned(web, "web", "")
	s.rolledOut(web)
	s.set("web", "MODE", "two")
	s.pinned(web, "web", first)
	s.rolledOut(web)
	s.must(c.Kill())
	v.kubectl("delete", "-k", manifestPath(t, "test/scenario/install"), "--timeout=60s") // the controller for good; its policies stay

	s.set("web", "MODE", "three")
	s.kubectl("scale", web, "--replicas=4")
	s.loads(mode, map[string]int{"two": 4})
	s.kubectl("rollout", "restart", web)
	s.rolledOut(web)
	s.loads(mode, map[string]int{"two": 4})
	s.kubectl("rollout", "undo", web, "--to-revision=2")
	s.rolledOut(web)
	s.loads(mode, map[string]int{"one": 4})
	s.exit("web-", "app")
	s.startedAgain("web-", 4)
	s.loads(mode, map[string]int{"one": 4})
	v.kubectl("delete", "namespace", s.Namespace, "--timeout=120s") // its copies go with it, protected as they are
}
