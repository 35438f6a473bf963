package acceptance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/cli"
	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/digest"
	"tidemark.dev/tidemark/internal/fleet"
	"tidemark.dev/tidemark/internal/workload"
	"tidemark.dev/tidemark/lab/wire"
	"tidemark.dev/tidemark/test/scenario"
)

// labMargins hold for nodes of this lab that nobody cut off: all share one clock, and a mounted file is looked at every two
// or three seconds. They decide much that the margins that ship leave open.
var labMargins = fleet.Settings{
	RefreshLag: 15 * time.Second, CutLag: 2 * time.Second, Skew: 100 * time.Millisecond, LoadTime: 2 * time.Second,
}

// apartMargins are shorter: where steps are apart nothing is read so soon after a change that a slow machine would show.
var apartMargins = fleet.Settings{
	RefreshLag: 6 * time.Second, CutLag: 2 * time.Second, Skew: 100 * time.Millisecond, LoadTime: time.Second,
}

// reach is how far from a read a change may be and make it unknown: how stale the read may be, with the seconds to which the
// API truncates its times.
func reach(m fleet.Settings) time.Duration { return m.RefreshLag + m.CutLag + 2*m.Skew + 2*time.Second }

// late is by how much the history may be late for a command line, with the time between two signs of the leader's life. Where
// steps are apart, a start is judged when it is as old.
const late = 20 * time.Second

// Names of the margins.
const (
	asShipped = "as shipped"
	ofLab     = "of the lab"
)

// statement is what status said of one container and one object.
type statement struct {
	v1.FleetLoaded
	round int
	// container is WORKLOAD/CONTAINER, with the margins by which it was judged, its pod and node, and when it started.
	container, margins, pod, node string
	started                       time.Time
	// said is when it was made.
	said time.Time
}

// isReloaded reports whether it is of a program that reads its files again by itself.
func (s statement) isReloaded() bool { return strings.HasPrefix(s.container, "reloading/") }

// court has a judge for each world, and adds up what they find.
type court struct {
	*land
	judges []*judge
	count  map[string]*tally // by margins
	wrong  int
}

// judge compares statements with the lab's record.
type judge struct {
	*world
	court *court
	key   *digest.Key
	uses  map[string][]workload.Consumption // by WORKLOAD/CONTAINER
	// starts are the record so far, by pod/container.
	starts map[string][]wire.Start
	last   uint64 // of the record
	// open are statements whose start the record did not have when they were made.
	open []statement
}

// tally counts the statements by one set of margins.
type tally struct {
	// stale are those of pods that came to a node which served old content, of which the controller could not know:
	// docs/design/0003-evidence.md says that what the first start in a pod reads is no older than the pod, less a margin that
	// does not hold there. Idle are those of
	// containers that did not run, young those of containers that had only just started; only where steps are apart are
	// these left out of what is known and what is not.
	known, unmatched, stale, idle, young int
	// compared are the different facts that were stated, by the kind of start: the same one is stated many times.
	compared map[string]map[string]bool
	unknown  map[string]int // by reason
	// excused counts what was not known by what the record has to say for it.
	excused map[string]int
}

func newCourt(l *land) *court {
	c := &court{land: l, count: map[string]*tally{}}
	for _, name := range []string{asShipped, ofLab} {
		c.count[name] = &tally{unknown: map[string]int{}, compared: map[string]map[string]bool{}, excused: map[string]int{}}
	}
	key, err := cluster.DigestKey(l.stage().t.Context(), l.stage().API, scenario.SystemNamespace)
	l.stage().must(err)
	for _, w := range l.worlds {
		c.judges = append(c.judges, &judge{
			world: w, court: c, key: key, starts: map[string][]wire.Start{}, uses: map[string][]workload.Consumption{},
		})
	}
	return c
}

// look asks for the status by the margins that ship and by those of the lab, and compares both with the record.
func (c *court) look() {
	c.stage().t.Helper()
	c.hear()
	for name, settings := range map[string]fleet.Settings{asShipped: {}, ofLab: c.margins} {
		list := c.status(settings)
		for _, j := range c.judges {
			j.note(name, list)
		}
	}
	for _, j := range c.judges {
		j.catchUp()
	}
}

// install applies the workloads, and learns what their containers consume.
func (j *judge) install() {
	manifest, err := os.ReadFile(filepath.Join("testdata", "evidence.yaml"))
	j.must(err)
	for document := range strings.SplitSeq(string(manifest), "\n---\n") {
		var o struct {
			Kind     string
			Metadata struct{ Name string }
			Spec     struct{ Template corev1.PodTemplateSpec }
		}
		j.must(yaml.Unmarshal([]byte(document), &o))
		j.workloads = append(j.workloads, strings.ToLower(o.Kind)+"/"+o.Metadata.Name)
		byContainer := map[string][]workload.Reference{}
		for _, r := range workload.References(j.Namespace, &o.Spec.Template) {
			byContainer[r.Container] = append(byContainer[r.Container], r)
		}
		for name, refs := range byContainer {
			j.uses[o.Metadata.Name+"/"+name] = workload.Consumed(refs)
		}
	}
	j.apply(string(manifest))
}

// catchUp reads the record on, and compares with it.
func (j *judge) catchUp() {
	j.t.Helper()
	starts, err := j.Lab.Record(j.t.Context(), wire.Filter{Selector: wire.Selector{Namespace: j.Namespace}, Since: j.last})
	j.must(err)
	for _, s := range starts {
		name := s.Pod + "/" + s.Container
		j.starts[name], j.last = append(j.starts[name], s), s.Seq
	}
	running, err := j.Lab.Containers(j.t.Context(), wire.Selector{Namespace: j.Namespace, PodPrefix: "reloading-"})
	j.must(err)
	j.settle(running)
}

func (c *court) status(margins fleet.Settings) v1.FleetList {
	s := c.stage()
	s.t.Helper()
	var out, errOut bytes.Buffer
	config := cli.Config{
		IOStreams: genericiooptions.IOStreams{Out: &out, ErrOut: &errOut}, Clock: clock.RealClock{}, Margins: margins,
	}
	cache := filepath.Join(s.Lab.Status().Directory, "tidemark")
	args := []string{"status", "-A", "-o", "json", "--kubeconfig", s.Lab.Kubeconfig(), "--cache-dir", cache}
	if code := cli.Run(s.t.Context(), config, args); code != 0 {
		s.t.Fatalf("step %d: status: exit status %d: %s", c.steps, code, &errOut)
	}
	list := v1.FleetList{}
	s.must(json.Unmarshal(out.Bytes(), &list))
	return list
}

// note takes in what a status says.
func (j *judge) note(margins string, list v1.FleetList) {
	for _, f := range list.Items {
		if f.Workload.Namespace != j.Namespace {
			continue
		}
		for _, p := range f.Pods {
			for _, c := range p.Containers {
				for _, l := range c.Loaded {
					j.state(statement{
						FleetLoaded: l, round: j.round, margins: margins,
						container: f.Workload.Name + "/" + c.Name, pod: p.Name, node: p.Node, started: c.Started, said: list.Time,
					})
				}
			}
		}
	}
}

func (j *judge) state(s statement) {
	_, want := j.truth(s, func(d data) bool { return sameData(d, j.object(s).now) })
	if s.Applied != "" && !want[s.Applied] {
		j.refute(s, "says that %s is applied, and that is %v", s.Applied, slices.Collect(maps.Keys(want)))
	}
	count := j.court.count[s.margins]
	if s.margins == ofLab && j.wasCutSince(s.node, s.started) {
		return // the margins do not hold
	}
	young := j.apart && time.Since(s.started) < late
	switch {
	case j.apart && s.started.IsZero():
		count.idle++
		return
	case young:
		count.young++
	case s.Digest == "":
		count.unknown[reason(s)]++
	default:
		count.known++
	}
	if s.Digest != "" || j.apart && s.margins == ofLab && !young {
		j.open = append(j.open, s)
	}
}

func sameData(a, b data) bool { return (a == nil) == (b == nil) && maps.Equal(a, b) }

func (j *judge) object(s statement) *configObject {
	for _, o := range j.objects {
		if o.Object.String() == s.Object {
			return o
		}
	}
	j.t.Fatalf("round %d: status names %s, which nothing here reads", s.round, s.Object)
	return nil
}

// settle compares the open statements with the record, and keeps those whose start is not there yet.
func (j *judge) settle(running []wire.Container) {
	var open []statement
	for _, s := range j.open {
		start, n := j.startOf(s, running)
		switch {
		case n == 1 && j.wasCutUnnoticed(start.Node, j.born(start), s.said):
			j.court.count[s.margins].stale++
		case n == 1 && s.Digest == "":
			j.excuse(s, start)
		case n == 1:
			j.compare(s, start)
		case n == 0 && j.round-s.round < 3 && !s.isReloaded():
			open = append(open, s)
		default:
			j.court.count[s.margins].unmatched++
		}
	}
	j.open = open
}

// startOf finds the start of which a statement is made, by the second in which it was, and how many there are. What the
// program reads again by itself has its present files.
func (j *judge) startOf(s statement, running []wire.Container) (found wire.Start, n int) {
	from := j.starts[s.pod+"/"+containerOf(s)]
	if s.isReloaded() {
		from = nil
		for _, c := range running {
			if c.Pod == s.pod {
				c.Files = c.FilesNow
				from = append(from, c.Start)
			}
		}
	}
	for _, start := range from {
		if start.Started.Truncate(time.Second).Equal(s.started) {
			found = start
			n++
		}
	}
	return found, n
}

// born is when the first start in the pod was.
func (j *judge) born(of wire.Start) time.Time {
	first := of.Created
	for _, starts := range j.starts {
		for _, s := range starts {
			if s.PodUID == of.PodUID && s.Created.Before(first) {
				first = s.Created
			}
		}
	}
	return first
}

func containerOf(s statement) string {
	_, name, _ := strings.Cut(s.container, "/")
	return name
}

// truth gives the digests, as the container consumes the object, of the states of it that the function picks.
func (j *judge) truth(s statement, picks func(data) bool) (*configObject, map[string]bool) {
	o := j.object(s)
	return o, j.digests(s, slices.DeleteFunc(slices.Clone(o.ever), func(w written) bool { return !picks(w.data) }))
}

// digests are those of states of the object, as the container consumes it.
func (j *judge) digests(s statement, of []written) map[string]bool {
	o, digests := j.object(s), map[string]bool{}
	for _, use := range j.uses[s.container] {
		if use.Object != o.Object {
			continue
		}
		for _, state := range of {
			digests[string(o.content(state.data, j.key).Consumed(use))] = true
		}
	}
	return digests
}

// compare checks a statement by the start that it is about: it must give the digest of a state of the object that shows
// exactly what the container was given. The record cannot tell an absent object from one without the keys consumed.
func (j *judge) compare(s statement, start wire.Start) {
	ways := readings[s.container][j.object(s).String()]
	if len(ways) == 0 {
		j.t.Fatalf("round %d: status says that %s reads %s, and it does not", s.round, s.container, s.Object)
	}
	o, digests := j.truth(s, func(d data) bool { return gave(d, ways, start) })
	if !digests[s.Digest] {
		j.refute(s, "says it loaded %s, and by the record that is %v; started %v, read %v, cuts %v\nenvironment %s\nfiles %s\nstates of %s:%s",
			s.Digest, slices.Collect(maps.Keys(digests)), start.Started, start.Read, j.cuts, start.Environment, start.Files, o, j.story(o, s))
	}
	kind := "first start"
	switch {
	case s.isReloaded():
		kind = "reloaded"
	case start.Attempt > 0:
		kind = "restart"
	}
	compared := j.court.count[s.margins].compared
	if compared[kind] == nil {
		compared[kind] = map[string]bool{}
	}
	compared[kind][fmt.Sprint(start.Seq, s.Object, s.Digest)] = true
}

// mostRefuted is how many wrong statements are told in full.
const mostRefuted = 5

func (j *judge) refute(s statement, format string, args ...any) {
	if j.court.wrong++; j.court.wrong > mostRefuted {
		j.t.Fail()
		return
	}
	j.t.Errorf("round %d, margins %s: status of %s in %s on %s, started %v, evidence %s (%s), %s\n%s",
		s.round, s.margins, s.container, s.pod, s.node, s.started, s.Evidence, s.Why, fmt.Sprintf(format, args...),
		strings.Join(j.past[max(0, len(j.past)-30):], "\n"))
}

// story lists the last states of an object with the digests that the statement's container has of them.
func (j *judge) story(o *configObject, s statement) string {
	var out strings.Builder
	for _, state := range o.ever[max(0, len(o.ever)-15):] {
		_, digests := j.truth(s, func(d data) bool { return sameData(d, state.data) })
		fmt.Fprintf(&out, "\n  %v %v %v", state.at.UTC(), state.data, slices.Collect(maps.Keys(digests)))
	}
	return out.String()
}

var particulars = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ|node-\d+`)

// reason is why something is not known, without what is particular to the case.
func reason(s statement) string {
	return s.Evidence + ": " + particulars.ReplaceAllString(s.Why, "…")
}

// report logs how much was known, and why the rest was not.
func (c *court) report() {
	t := c.stage().t
	t.Logf("%d steps in %d rounds: %v", c.steps, c.round, c.happened)
	for margins, n := range c.count {
		share := func(part int) string { return fmt.Sprintf("%7d %5.1f%%", part, 100*n.share(part)) }
		var out strings.Builder
		fmt.Fprintf(&out, "margins %s:\n%s known", margins, share(n.known))
		for _, kind := range slices.Sorted(maps.Keys(n.compared)) {
			fmt.Fprintf(&out, "; %d different of a %s", len(n.compared[kind]), kind)
		}
		fmt.Fprintf(&out, "; %d without their start in the record, %d on a node that was cut off, %d not running, %d just started\n%s not known, of which\n",
			n.unmatched, n.stale, n.idle, n.young, share(n.notKnown()))
		for _, why := range slices.SortedFunc(maps.Keys(n.unknown), func(a, b string) int { return n.unknown[b] - n.unknown[a] }) {
			fmt.Fprintf(&out, "%s %s\n", share(n.unknown[why]), why)
		}
		for _, why := range slices.Sorted(maps.Keys(n.excused)) {
			fmt.Fprintf(&out, "by the record: %d %s\n", n.excused[why], why)
		}
		t.Log(out.String())
	}
	t.Logf("wrong: %d; cuts that had to be noticed: %d of %d", c.wrong, c.noticedCuts, len(c.cuts))
}

func (n *tally) notKnown() int {
	sum := 0
	for _, of := range n.unknown {
		sum += of
	}
	return sum
}

// share is the part as a fraction of all that was stated.
func (n *tally) share(part int) float64 { return float64(part) / float64(max(1, n.known+n.notKnown())) }

// different is how many different facts were stated of a kind of start.
func (c *court) different(margins, kind string) int { return len(c.count[margins].compared[kind]) }
