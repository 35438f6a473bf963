package acceptance

import (
	"strings"
	"testing"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/test/scenario"
)

func TestAPauseStopsWhatIsAboutToRollAndItsEndGivesOneRollout(t *testing.T) {
	t.Parallel()
	t.Run("of everything", func(t *testing.T) {
		v := alone(t)
		c := v.watchful()
		s := v.open("pause-all", v1.ModeRoll)
		s.controller = c
		s.pausedAndResumed("--all")
	})
	t.Run("of a namespace", func(t *testing.T) {
		turn(t)
		s := openRolling(t, "pause-namespace")
		s.pausedAndResumed("-n", s.Namespace)
	})
	t.Run("of a workload", func(t *testing.T) {
		turn(t)
		s := openRolling(t, "pause-workload")
		s.pausedAndResumed("deployment/web", "-n", s.Namespace)
	})
}

func (s *scene) pausedAndResumed(scope ...string) {
	s.t.Helper()
	s.apply(webConfig + program("deployment/web", 2, readsWeb))
	s.rolledOut("deployment/web")
	s.known("deployment/web")
	s.must(s.Aged(s.t.Context(), apart))

	s.set("web", "MODE", "two") // it settles when the pause comes
	s.tidemark(append([]string{"pause"}, scope...)...)
	s.tells("deployment/web", "Held", "paused")
	if status := s.verdict("deployment/web", "held"); !strings.Contains(status.Reason, "paused") {
		s.t.Errorf("status says %q, want the pause named", status.Reason)
	}
	s.metricIs(`tidemark_held{kind="Deployment",name="web",namespace="`+s.Namespace+`",reason="paused"}`, 1)
	s.set("web", "MODE", "three")
	s.revisionsAre("deployment/web", 1)

	s.tidemark(append([]string{"resume"}, scope...)...)
	s.loads(mode, map[string]int{"three": 2})
	s.rolledOut("deployment/web")
	s.caughtUp()
	s.revisionsAre("deployment/web", 2)
}

// tidemark runs the command line.
func (s *scene) tidemark(args ...string) {
	s.t.Helper()
	_, err := scenario.Tidemark(s.t.Context(), s.Lab, args...)
	s.must(err)
}
