package acceptance

import (
	"strings"
	"testing"
	"time"

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

// stopsWithin is how long after its command a pause may take to stop every write.
const stopsWithin = time.Second

func TestAPauseStopsEveryWriteWithinASecond(t *testing.T) {
	v := alone(t)
	c := v.control("--settle=0") // a change that the pause does not stop is written at once
	var scenes []*scene
	for _, scope := range []string{"workload", "namespace", "all"} {
		s := v.open("pause-within-"+scope, v1.ModeRoll)
		s.controller = c
		s.apply(webConfig + program("deployment/web", 0, readsWeb))
		scenes = append(scenes, s)
	}
	for i, scope := range [][]string{
		{"deployment/web", "-n", scenes[0].Namespace}, {"-n", scenes[1].Namespace}, {"--all"},
	} {
		s := scenes[i]
		s.known("deployment/web")
		s.set("web", "MODE", "two")
		s.stampedAgain("deployment/web", "")
		before := s.get("deployment/web")

		s.tidemark(append([]string{"pause"}, scope...)...)
		time.Sleep(stopsWithin)
		s.set("web", "MODE", "three")

		s.tells("deployment/web", "Held", "paused") // so it has seen the change
		s.sameStamp("deployment/web", before)
	}
	last := scenes[2].stamp("deployment/web")
	scenes[2].tidemark("resume", "--all")
	scenes[2].stampedAgain("deployment/web", last)
}

// tidemark runs the command line.
func (s *scene) tidemark(args ...string) {
	s.t.Helper()
	_, err := scenario.Tidemark(s.t.Context(), s.Lab, args...)
	s.must(err)
}
