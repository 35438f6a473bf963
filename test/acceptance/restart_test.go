package acceptance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/lab/client/labtest"
	"tidemark.dev/tidemark/test/scenario"
)

// many is the manifest of n Deployments without pods, web-0 and so on, each with a ConfigMap of its own.
func many(n int) string {
	var out strings.Builder
	for i := range n {
		name := fmt.Sprintf("web-%d", i)
		out.WriteString("---\n" + strings.ReplaceAll(strings.TrimSpace(webConfig), "name: web", "name: "+name) + "\n")
		out.WriteString(program("deployment/"+name, 0, strings.ReplaceAll(readsWeb, "name: web", "name: "+name)))
	}
	return out.String()
}

// manyKnown waits until Tidemark has taken note of n Deployments of [many].
func (s *scene) manyKnown(n int) {
	s.t.Helper()
	for i := range n {
		s.known(fmt.Sprintf("deployment/web-%d", i))
	}
}

func TestARestartWritesNothing(t *testing.T) {
	const n = 5
	v := alone(t)
	c := v.control()
	s := v.open("restart", v1.ModeRoll)
	s.apply(many(n))
	s.manyKnown(n)
	s.set("web-0", "MODE", "two")
	s.stampedAgain("deployment/web-0", "")
	s.caughtUp()
	s.must(c.Stop())
	before := s.resourceVersions(n)

	c = v.control()
	s.controller = c
	s.caughtUp()
	s.unchanged(before)

	s.must(c.Stop()) // and again, by what looks like another leader
	v.control()
	s.caughtUp()
	s.unchanged(before)
}

func TestAChangeOfLeaderWritesNothing(t *testing.T) {
	const n = 5
	v := alone(t)
	leader, next := v.control(), v.standBy()
	s := v.open("leaders", v1.ModeRoll)
	s.apply(many(n))
	s.manyKnown(n)
	s.set("web-0", "MODE", "two")
	s.stampedAgain("deployment/web-0", "")
	s.caughtUp()
	before := s.resourceVersions(n)

	s.must(leader.Stop())
	s.eventually("the other instance to lead", func() error { return leads(t.Context(), next) })
	s.caughtUp()
	s.unchanged(before)
}

func TestTwoInstancesGiveOneRolloutForEachChange(t *testing.T) {
	v := alone(t)
	leader, next := v.control("--fleet-interval=1s"), v.standBy("--fleet-interval=1s")
	s := v.open("two-instances", v1.ModeRoll)
	s.controller = leader
	s.apply(webConfig + program("deployment/web", 2, readsWeb))
	s.rolledOut("deployment/web")
	s.known("deployment/web")

	for i, value := range []string{"two", "three"} {
		s.set("web", "MODE", value)
		s.loads(mode, map[string]int{value: 2})
		s.rolledOut("deployment/web")
		s.caughtUp()
		s.revisionsAre("deployment/web", i+2)
	}

	s.metricIs(`tidemark_fleet_pods_behind{kind="Deployment",name="web",namespace="two-instances"}`, 0)
	metrics, err := next.Metrics(t.Context())
	s.must(err)
	if !strings.Contains(metrics, "\ntidemark_paused ") || strings.Contains(metrics, "\ntidemark_fleet_") {
		t.Errorf("the one that does not lead has series of fleets, or none at all:\n%s", metrics)
	}
}

func TestWhatChangedWhileNothingRanRollsAfterTheStartWithNothingElse(t *testing.T) {
	const n = 5
	v := alone(t)
	c := v.control()
	s := v.open("while-down", v1.ModeRoll)
	s.apply(many(n))
	s.manyKnown(n)
	s.must(c.Stop())

	s.set("web-1", "MODE", "two")
	s.set("web-3", "MODE", "two")
	s.set("web-4", "MODE", "two")
	s.set("web-4", "MODE", "one")

	v.control()
	s.stampedAgain("deployment/web-1", "")
	s.stampedAgain("deployment/web-3", "")
	s.caughtUp()
	for i, want := range []int{1, 2, 1, 2, 1} {
		s.revisionsAre(fmt.Sprintf("deployment/web-%d", i), want)
	}
}

func TestAControllerKilledAmidEditsLosesNoneAndRollsNoneTwice(t *testing.T) {
	const n, edited = 50, 40
	quick := []string{"--lease-duration=4s", "--renew-deadline=3s"}
	v := alone(t)
	c := v.control(quick...)
	s := v.open("killed", v1.ModeRoll)
	s.apply(many(n))
	s.manyKnown(n)

	for i := range edited {
		s.set(fmt.Sprintf("web-%d", i), "MODE", "two")
	}
	s.eventually("the first stamps", func() error {
		if s.stamp("deployment/web-0") == "" {
			return errors.New("none yet")
		}
		return nil
	})
	s.must(c.Kill())
	half := 0
	for i := range edited {
		if s.stamp(fmt.Sprintf("deployment/web-%d", i)) != "" {
			half++
		}
	}
	t.Logf("killed after %d of %d stamps", half, edited)

	s.controller = v.control(quick...)
	for i := range edited {
		s.stampedAgain(fmt.Sprintf("deployment/web-%d", i), "")
	}
	s.caughtUp()
	for i := range n {
		want := 1
		if i < edited {
			want = 2
		}
		s.revisionsAre(fmt.Sprintf("deployment/web-%d", i), want)
	}
	s.standForWhatIsApplied()
}

// standForWhatIsApplied fails the test for every workload of the scene whose stamp is not the one that Tidemark left, or stands
// for other content than the applied one.
func (s *scene) standForWhatIsApplied() {
	s.t.Helper()
	out, err := s.Tidemark(s.t.Context(), "status", "-o", "json")
	s.must(err)
	list := v1.FleetList{}
	s.must(json.Unmarshal([]byte(out), &list))
	for _, f := range list.Items {
		name := "deployment/" + f.Workload.Name
		var record struct {
			Stamp   string
			Objects map[string]struct{ Stamped string }
		}
		s.must(json.Unmarshal([]byte(s.get(name).GetAnnotations()[v1.AnnotationRecord]), &record))
		if record.Stamp != f.Stamp {
			s.t.Errorf("%s carries the stamp %q, Tidemark left %q", name, f.Stamp, record.Stamp)
		}
		for _, o := range f.Objects {
			kind, rest, _ := strings.Cut(o.Object, "/")
			if got := record.Objects[kind+"/"+nameOf(rest)].Stamped; got != o.Applied {
				s.t.Errorf("the stamp of %s stands for %s of %s, applied is %s", name, got, o.Object, o.Applied)
			}
		}
	}
}

func TestWhatIsBehindWhenTidemarkFirstSeesItIsLeftToPeople(t *testing.T) {
	v := alone(t)
	s := v.open("first-sight", v1.ModeRoll)
	s.apply(webConfig + program("deployment/web", 2, readsWeb))
	s.rolledOut("deployment/web")
	s.set("web", "MODE", "two")

	s.controller = v.control()
	s.known("deployment/web")
	s.caughtUp()
	if stamp := s.stamp("deployment/web"); stamp != "" {
		t.Errorf("it was stamped %q", stamp)
	}
	s.loads(mode, map[string]int{"one": 2})

	s.set("web", "MODE", "three")
	s.loads(mode, map[string]int{"three": 2})
	s.rolledOut("deployment/web")
	s.revisionsAre("deployment/web", 2)
}

// What was rolled back is known to whichever instance leads, and to one that starts anew: it follows from the record alone.
func TestWhatWasRolledBackStaysSoOverAChangeOfLeaderAndARestart(t *testing.T) {
	v := alonePinned(t)
	leader, next := v.control(), v.standBy()
	s := v.open("stays-back", v1.ModePin)
	s.controller = leader
	workloads := []string{"deployment/web", "statefulset/db", "daemonset/agent"}
	const pods = 2 + 2 + nodes
	s.apply(webConfig + edition(workloads[0], 2, "web:1") + edition(workloads[1], 2, "web:1") + edition(workloads[2], 0, "web:1"))
	first := map[string]string{}
	for _, w := range workloads {
		first[w] = s.pinned(w, "web", "")
	}
	s.rolledOut(workloads...)
	s.set("web", "MODE", "two")
	s.loads(mode, map[string]int{"two": pods})
	s.rolledOut(workloads...)
	for _, w := range workloads {
		s.kubectl("rollout", "undo", w)
		s.tells(w, "RolledBack", "configmap/web")
	}
	s.loads(mode, map[string]int{"one": pods})
	s.rolledOut(workloads...)
	s.caughtUp()
	before := map[string]*unstructured.Unstructured{}
	for _, w := range workloads {
		before[w] = s.get(w)
	}
	stays := func() {
		t.Helper()
		s.caughtUp()
		for _, w := range workloads {
			s.staysBack(w, first[w])
			s.sameStamp(w, before[w])
			if was, now := before[w].GetGeneration(), s.get(w).GetGeneration(); now != was {
				t.Errorf("somebody wrote to the spec of %s: generation %d, before %d", w, now, was)
			}
		}
	}
	stays()

	s.must(leader.Stop())
	s.controller = next
	s.eventually("the other instance to lead", func() error { return leads(t.Context(), next) })
	stays()

	s.must(next.Stop())
	s.controller = v.control()
	stays()

	s.apply(edition(workloads[0], 2, "web:3")) // a release ends it, whoever noted it
	s.loads(mode, map[string]int{"one": pods - 2, "two": 2})
}

// leads is an error while the instance does not lead.
func leads(ctx context.Context, c *scenario.Controller) error {
	leads, err := c.Leads(ctx)
	if err == nil && !leads {
		err = errors.New("it does not")
	}
	return err
}

// resourceVersions are those of the Deployments of [many].
func (s *scene) resourceVersions(n int) map[string]string {
	s.t.Helper()
	versions := map[string]string{}
	for i := range n {
		name := fmt.Sprintf("deployment/web-%d", i)
		s.eventually("the Deployment controller to have seen "+name, func() error {
			u := s.get(name)
			seen, _, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration")
			return labtest.Equal("the generation that it has seen", seen, u.GetGeneration())
		})
		versions[name] = s.get(name).GetResourceVersion()
	}
	return versions
}

// unchanged fails the test when anybody wrote to one of the Deployments.
func (s *scene) unchanged(before map[string]string) {
	s.t.Helper()
	for name, version := range before {
		if now := s.get(name).GetResourceVersion(); now != version {
			s.t.Errorf("somebody wrote to %s: resource version %s, before %s", name, now, version)
		}
	}
}
