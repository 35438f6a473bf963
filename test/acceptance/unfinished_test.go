package acceptance

import (
	"errors"
	"fmt"
	"testing"
	"time"

	v1 "tidemark.dev/tidemark/api/v1"
)

// unfinished waits until status has a rollout of the workload that leaves two revisions running, and returns it.
func (s *scene) unfinished(workload string) v1.FleetUnfinished {
	s.t.Helper()
	var found v1.FleetUnfinished
	s.eventually("an unfinished rollout of "+workload, func() error {
		status, err := s.Status(s.t.Context(), workload)
		if err != nil {
			return err
		}
		if status.Unfinished == nil {
			return errors.New(status.Verdict + ": " + status.Reason)
		}
		found = *status.Unfinished
		return nil
	})
	return found
}

// isLeft fails the test unless the rollout has so many pods of the newer revision and of all, came after the time given, and
// becomes the verdict when it may not take that long.
func (s *scene) isLeft(workload, cause string, pods, all int, after time.Time) {
	s.t.Helper()
	u := s.unfinished(workload)
	if u.Cause != cause || u.Pods != pods || u.AllPods != all || u.Overdue || u.After != "1h0m0s" || u.Owner == "" || u.Revision == "" {
		s.t.Errorf("unfinished is %+v, want %d of %d pods for %s", u, pods, all, cause)
	}
	if u.Since.Before(after.Add(-2*time.Second)) || u.Since.After(after.Add(time.Minute)) {
		s.t.Errorf("it is unfinished since %s, want soon after %s", u.Since, after)
	}
	s.kubectl("annotate", workload, v1.AnnotationUnfinishedAfter+"=1s")
	s.verdict(workload, "unfinished")
	s.kubectl("annotate", "--overwrite", workload, v1.AnnotationUnfinishedAfter+"=off")
	if status, err := s.Status(s.t.Context(), workload); err != nil || status.Verdict == "unfinished" || status.Unfinished == nil {
		s.t.Errorf("switched off it is %+v, %v", status, err)
	}
	s.kubectl("annotate", workload, v1.AnnotationUnfinishedAfter+"-")
}

func TestAPartitionThatIsLeftIsUnfinished(t *testing.T) {
	turn(t)
	s := openControlled(t, "unfinished-partition", v1.ModeObserve)
	const set = "statefulset/web"
	s.apply(webConfig + program(set, 3, readsWeb))
	s.rolledOut(set)
	partition := func(n int) {
		s.kubectl("patch", set, "--type=merge", "-p", fmt.Sprintf(`{"spec":{"updateStrategy":{"rollingUpdate":{"partition":%d}}}}`, n))
	}
	partition(2)
	second := time.Now()
	s.kubectl("annotate", set, "--overwrite", "note=1")
	s.kubectl("patch", set, "--type=merge", "-p", `{"spec":{"template":{"metadata":{"annotations":{"release":"2"}}}}}`)
	s.isLeft(set, "Partition", 1, 3, second)

	// Going back makes the first revision the newest again: its age is that of the going back, not of its creation.
	partition(0)
	s.rolledOut(set)
	s.must(s.Aged(t.Context(), apart))
	partition(2)
	back := time.Now()
	s.kubectl("rollout", "undo", set)
	s.isLeft(set, "Partition", 1, 3, back)
}

func TestAnOnDeleteSetThatIsLeftIsUnfinished(t *testing.T) {
	turn(t)
	s := openControlled(t, "unfinished-ondelete", v1.ModeObserve)
	const set = "daemonset/web"
	s.apply(webConfig + program(set, 0, readsWeb))
	s.rolledOut(set)
	s.kubectl("patch", set, "--type=merge", "-p", `{"spec":{"updateStrategy":{"type":"OnDelete","rollingUpdate":null}}}`)
	second := time.Now()
	s.kubectl("patch", set, "--type=merge", "-p", `{"spec":{"template":{"metadata":{"annotations":{"release":"2"}}}}}`)
	s.kubectl("delete", "pods", "--field-selector=spec.nodeName=node-1")
	s.isLeft(set, "OnDelete", 1, 4, second)
}

func TestADeploymentThatIsLeftPausedIsUnfinished(t *testing.T) {
	turn(t)
	s := openControlled(t, "unfinished-paused", v1.ModeObserve)
	const web = "deployment/web"
	s.apply(webConfig + program(web, 2, readsWeb))
	s.rolledOut(web)
	second := time.Now()
	// The second release does not get ready, so that it is under way when somebody pauses it.
	s.kubectl("patch", web, "--type=json", "-p", `[{"op":"add","path":"/spec/template/spec/containers/0/args/-","value":"--boot-delay=1h"}]`)
	s.revisionsAre(web, 2)
	s.eventually("a pod of the second release", func() error {
		running, err := s.Running(t.Context())
		if err == nil && len(running) != 3 {
			err = fmt.Errorf("%d run", len(running))
		}
		return err
	})
	s.kubectl("rollout", "pause", web)
	s.isLeft(web, "Paused", 1, 3, second)
	s.kubectl("rollout", "resume", web)
	s.kubectl("rollout", "undo", web)
	s.rolledOut(web)
	s.eventually("nothing to be left", func() error {
		status, err := s.Status(t.Context(), web)
		if err == nil && status.Unfinished != nil {
			err = fmt.Errorf("unfinished is %+v", status.Unfinished)
		}
		return err
	})
}
