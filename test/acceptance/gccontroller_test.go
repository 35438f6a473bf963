package acceptance

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/lab/client"
	"tidemark.dev/tidemark/lab/client/labtest"
	"tidemark.dev/tidemark/test/scenario"
)

// pinEstate is a lab of the test's own with mode pin installed as it ships, its policies too.
func pinEstate(t *testing.T) venue {
	t.Helper()
	turn(t)
	v := venue{t, labtest.Start(t, client.Options{Nodes: 1})}
	root, err := scenario.Root()
	if err == nil {
		err = scenario.InstallPin(t.Context(), v.lab)
	}
	if err != nil {
		t.Fatal(err)
	}
	labtest.Kubectl(t, v.lab, "apply", "-k", filepath.Join(root, "deploy", "policy"))
	return v
}

func TestTheControllerCleansUpWhileRevisionsComeAndGo(t *testing.T) {
	v := pinEstate(t)
	v.protectsSnapshots()
	c := v.control("--gc-interval=1s", "--gc-min-age=1s", "--gc-history=1")
	if err := c.HasWatched(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := v.open("gc-pin", v1.ModePin)
	s.controller = c
	s.apply(webConfig + program("deployment/web", 1, readsWeb))
	s.kubectl("patch", "deployment/web", "--type=merge", "-p", `{"spec":{"revisionHistoryLimit":1}}`)
	pins := []string{s.pinned("deployment/web", "web", "")}
	s.rolledOut("deployment/web")
	for _, value := range []string{"two", "three", "four", "five"} {
		s.set("web", "MODE", value)
		pins = append(pins, s.pinned("deployment/web", "web", pins[len(pins)-1]))
		s.rolledOut("deployment/web")
	}

	s.eventually("only the snapshots that a revision uses to be left", func() error {
		got := s.snapshots("web")
		slices.Sort(got)
		want := slices.Sorted(slices.Values(pins[3:]))
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("(-want +got):\n%s", diff)
		}
		return nil
	})
	s.metricIs(`tidemark_cleanup_actions_total{action="delete"}`, 3)
	if log := about(c.Log(), "Deleted snapshots"); !strings.Contains(log, "configmap/"+pins[0]) {
		t.Errorf("the log says %q, want the first snapshot in it", log)
	}

	s.kubectl("rollout", "undo", "deployment/web")
	s.rolledOut("deployment/web")
	s.loads(mode, map[string]int{"four": 1})
}

// protectsSnapshots proves, with no controller running, that to remove snapshots takes a right of its own, and that who lacks
// it is told which.
func (v venue) protectsSnapshots() {
	v.t.Helper()
	s := v.open("gc-protected", "")
	s.snapshotted("pricing", 2)
	s.apply(janitor)
	s.eventually("clean-up without the right to be refused", func() error {
		_, err := s.Tidemark(v.t.Context(), soon("--as", "janitor")...)
		if err == nil || !strings.Contains(err.Error(), `the verb "retire" on snapshots of API group tidemark.dev in namespace gc-protected`) {
			return fmt.Errorf("it says %w", err)
		}
		return nil
	})
	if mark, there := s.mark("pricing-1"); mark != "" || !there {
		v.t.Errorf("the snapshot is there: %t, marked %q", there, mark)
	}
	s.apply(strings.Replace(janitor, "rules:\n", "rules:\n- {apiGroups: [tidemark.dev], resources: [snapshots], verbs: [retire]}\n", 1))
	s.becomes("pricing-1", "delete superseded", soon("--as", "janitor")...)
}
