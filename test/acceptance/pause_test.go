package acceptance

import (
	"context"
	"strings"
	"testing"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/test/scenario"
)

func TestAPauseStopsWhatIsAboutToRollAndItsEndGivesOneRollout(t *testing.T) {
	c := watchful(t)
	for name, scope := range map[string]func(s *scene) []string{
		"all":       func(*scene) []string { return []string{"--all"} },
		"namespace": func(s *scene) []string { return []string{"-n", s.Namespace} },
		"workload":  func(s *scene) []string { return []string{"deployment/web", "-n", s.Namespace} },
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, "pause-"+name, v1.ModeRoll)
			s.controller = c
			tidemark := func(verb string) {
				t.Helper()
				_, err := scenario.Tidemark(context.Background(), s.Lab, append([]string{verb}, scope(s)...)...)
				s.must(err)
			}
			t.Cleanup(func() {
				if t.Failed() {
					tidemark("resume") // for the other tests
				}
			})
			s.apply(webConfig + program("deployment/web", 2, readsWeb))
			s.rolledOut("deployment/web")
			s.known("deployment/web")
			s.must(s.Aged(t.Context(), apart))

			s.set("web", "MODE", "two") // it settles when the pause comes
			tidemark("pause")
			s.tells("deployment/web", "Held", "paused")
			if status := s.verdict("deployment/web", "held"); !strings.Contains(status.Reason, "paused") {
				t.Errorf("status says %q, want the pause named", status.Reason)
			}
			s.metricIs(`tidemark_held{kind="Deployment",name="web",namespace="`+s.Namespace+`",reason="paused"}`, 1)
			s.set("web", "MODE", "three")
			s.revisionsAre("deployment/web", 1)

			tidemark("resume")
			s.loads(mode, map[string]int{"three": 2})
			s.rolledOut("deployment/web")
			s.caughtUp()
			s.revisionsAre("deployment/web", 2)
		})
	}
}
