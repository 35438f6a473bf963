package acceptance

import (
	"slices"
	"testing"
)

func TestARollbackIsLeftAloneUntilTheNextChange(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"deployment", "statefulset", "daemonset"} {
		t.Run(kind, func(t *testing.T) {
			turn(t)
			s := openRolling(t, "rollback-"+kind)
			web := kind + "/web"
			const pods = 4 // a DaemonSet has one on each node
			s.apply(webConfig + program(web, pods, readsWeb))
			s.rolledOut(web)
			s.known(web)
			s.set("web", "MODE", "two")
			s.loads(mode, map[string]int{"two": pods})
			s.rolledOut(web)
			s.caughtUp()

			s.kubectl("rollout", "undo", web)

			s.tells(web, "RolledBack", "configmap/web")
			s.rolledOut(web)
			if stamp := s.stamp(web); stamp != "" {
				t.Errorf("after the undo the template carries the stamp %q, want none as at first", stamp)
			}
			generation := s.get(web).GetGeneration()
			s.caughtUp()
			if now := s.get(web).GetGeneration(); now != generation {
				t.Errorf("somebody wrote to the workload after the undo: generation %d, before %d", now, generation)
			}
			status := s.verdict(web, "rolled-back")
			if want := []string{"configmap/" + s.Namespace + "/web"}; !slices.Equal(status.HeldBack, want) {
				t.Errorf("held back is %v, want %v", status.HeldBack, want)
			}
			s.loads(mode, map[string]int{"two": pods}) // mode roll cannot bring the old content back
			revisions := s.revisions(web)

			s.set("web", "MODE", "three")
			s.loads(mode, map[string]int{"three": pods})
			s.rolledOut(web)
			s.caughtUp()
			s.revisionsAre(web, revisions+1)
			s.verdict(web, "in-step")
		})
	}
}
