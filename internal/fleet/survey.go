package fleet

import (
	"cmp"
	"slices"
	"time"

	"tidemark.dev/tidemark/internal/digest"
	"tidemark.dev/tidemark/internal/workload"
)

// standing is how one pod stands towards what is applied.
type standing string

const (
	behind   standing = "behind"   // something else than the applied content is known to be loaded
	unsure   standing = "unsure"   // nothing else is known to be loaded, and something is not known
	recently standing = "recently" // as unsure, only because it started so recently
	starting standing = "starting" // a container that reads configuration does not run
	current  standing = "current"  // everything loaded is known to be what is applied
)

// surveyed is one pod with what was found out of it.
type surveyed struct {
	*Pod
	result   PodResult
	standing standing
	findings []finding // those that count
}

// survey is a fleet with what was found out of all its pods.
type survey struct {
	*Fleet
	pods []surveyed
	// gone are the objects that are gone while the template reads copies of them.
	gone []workload.Object
}

// look finds out what every container of the fleet loaded. Pods that have run to their end, or have stopped on their way
// out, are left out. Objects that are gone under their pins are taken for what the pins say.
func look(f *Fleet) survey {
	s := survey{Fleet: f}
	f.Objects, s.gone = f.underPins()
	for i := range f.Pods {
		p := &f.Pods[i]
		if p.Phase == "Succeeded" || p.Phase == "Failed" || p.Terminating && !p.up() {
			continue
		}
		s.pods = append(s.pods, lookAt(f, p))
	}
	return s
}

func lookAt(f *Fleet, p *Pod) surveyed {
	out := surveyed{Pod: p, result: PodResult{Name: p.Name, Node: p.Node, Revision: p.Revision, Ready: p.Ready, Unmatched: p.Unmatched}}
	up := p.up()
	idle := !up
	var parts []digest.Part
	for i := range p.Containers {
		c := &p.Containers[i]
		if c.Role == workload.RoleEphemeral {
			continue
		}
		r := reader{fleet: f, pod: p, container: c}
		if c.Started.IsZero() && (c.Role != workload.RoleInit || !up) {
			idle = idle || r.consumes()
			continue
		}
		found := r.find()
		out.result.Containers = append(out.result.Containers, resultOf(c, found))
		found = slices.DeleteFunc(found, func(x finding) bool { return !x.counts })
		out.findings = append(out.findings, found...)
		parts = append(parts, partOf(c, found))
	}
	out.standing = stand(out.findings, idle)
	if !up && out.standing != behind {
		out.standing = starting
	}
	out.result.Behind = out.standing == behind
	if !idle && !slices.ContainsFunc(out.findings, func(x finding) bool { return x.Digest == "" }) {
		out.result.Version = digest.OfParts(parts).Short()
	}
	return out
}

// up reports whether any container runs that stays.
func (p *Pod) up() bool {
	return slices.ContainsFunc(p.Containers, func(c Container) bool {
		return c.Role == workload.RoleMain && !c.Started.IsZero()
	})
}

func resultOf(c *Container, found []finding) ContainerResult {
	out := ContainerResult{Name: c.Name, Started: c.Started}
	for _, x := range found {
		out.Loaded = append(out.Loaded, x.Loaded)
	}
	return out
}

// partOf sums up what one container loaded, under a name that no object has.
func partOf(c *Container, found []finding) digest.Part {
	parts := make([]digest.Part, 0, len(found))
	for _, x := range found {
		parts = append(parts, digest.Part{Object: x.Object, Digest: x.Digest})
	}
	return digest.Part{Object: workload.Object{Kind: "Container", Name: c.Name}, Digest: digest.OfParts(parts)}
}

func stand(found []finding, idle bool) standing {
	out := current
	if idle {
		out = starting
	}
	for _, x := range found {
		switch {
		case x.Behind():
			return behind
		case x.Current():
		case x.tooRecent && out != unsure:
			out = recently
		case !x.tooRecent:
			out = unsure
		}
	}
	return out
}

// took is when a pod took on the version that it runs: when it was created or, where the configuration changed since,
// when its containers last started.
func (p surveyed) took(changed time.Time) time.Time {
	if !p.Created.Before(changed) {
		return p.Created
	}
	return p.started()
}

// started is when the last of a pod's containers that count started.
func (p surveyed) started() time.Time {
	last := p.Created
	for i := range p.Containers {
		last = later(last, p.Containers[i].Started)
	}
	return last
}

func (s survey) count(in ...standing) int {
	n := 0
	for _, p := range s.pods {
		if slices.Contains(in, p.standing) {
			n++
		}
	}
	return n
}

// running counts the pods that run.
func (s survey) running() int { return s.count(behind, unsure, recently, current) }

// all yields the findings that count, of every pod.
func (s survey) all(yield func(surveyed, finding) bool) {
	for _, p := range s.pods {
		for _, x := range p.findings {
			if !yield(p, x) {
				return
			}
		}
	}
}

// differ reports whether two pods are known to run different versions. What is loaded of one object compares between
// containers that consume the same of it, which the equal digest of the applied content shows.
func (s survey) differ() bool {
	if s.count(behind) > 0 && s.count(current) > 0 {
		return true
	}
	type what struct {
		object  workload.Object
		applied digest.Digest
	}
	loaded := map[what]digest.Digest{}
	for _, x := range s.all {
		if x.Digest == "" || x.Applied == "" {
			continue
		}
		w := what{x.Object, x.Applied}
		if d, ok := loaded[w]; ok && d != x.Digest {
			return true
		}
		loaded[w] = x.Digest
	}
	return false
}

// changedAt is since when the applied content is one that a pod behind did not load; zero when that is not known.
func (s survey) changedAt() time.Time {
	var first time.Time
	for _, x := range s.all {
		if x.Behind() && !x.Changed.IsZero() && (first.IsZero() || x.Changed.Before(first)) {
			first = x.Changed
		}
	}
	return first
}

// formed is since when the pods that are there run more than one version: when the first pod took on the second of them.
func (s survey) formed() time.Time {
	changed := s.changedAt()
	first := map[string]time.Time{}
	for _, p := range s.pods {
		version := cmp.Or(p.result.Version, string(p.standing))
		at := p.took(changed)
		if t, ok := first[version]; !ok || at.Before(t) {
			first[version] = at
		}
	}
	var times []time.Time
	for _, t := range first {
		times = append(times, t)
	}
	if len(times) < 2 {
		return changed
	}
	slices.SortFunc(times, time.Time.Compare)
	return times[1]
}

// versions counts the running pods by version.
func (s survey) versions() []VersionCount {
	var out []VersionCount
	for _, p := range s.pods {
		if p.standing == starting {
			continue
		}
		v := VersionCount{Version: p.result.Version, Applied: p.standing == current, Behind: p.standing == behind, Since: s.appliedFrom(p)}
		i := slices.IndexFunc(out, func(c VersionCount) bool {
			return c.Version == v.Version && c.Applied == v.Applied && c.Behind == v.Behind
		})
		if i < 0 {
			i, out = len(out), append(out, v)
		}
		out[i].Pods++
	}
	slices.SortFunc(out, func(a, b VersionCount) int {
		return cmp.Or(rank(a)-rank(b), cmp.Compare(b.Pods, a.Pods), cmp.Compare(a.Version, b.Version))
	})
	return out
}

// appliedFrom is from when on what a pod loaded surely was applied, all of it; zero when that is not known.
func (s survey) appliedFrom(p surveyed) time.Time {
	var from time.Time
	for _, x := range p.findings {
		if x.Digest == "" {
			return time.Time{}
		}
		at := x.appliedFrom(s.Fleet)
		if at.IsZero() {
			return time.Time{}
		}
		from = later(from, at)
	}
	return from.UTC()
}

// appliedFrom is from when on what was loaded of the object was applied, the last time it was; of a copy that no log tells of it
// is when the copy was made.
func (f finding) appliedFrom(of *Fleet) time.Time {
	versions := f.object.Log.Versions
	has := func(i int) bool {
		return versions[i].Tells(f.use) && versions[i].Content.Consumed(f.use) == f.Digest
	}
	last := len(versions) - 1
	for last >= 0 && !has(last) {
		last--
	}
	if last < 0 {
		return of.Snapshots[pinned(f.Object, f.Snapshot)].Created
	}
	for last > 0 && has(last-1) {
		last--
	}
	return versions[last].Seen
}

// rank orders versions: the applied one, older ones, unknown ones, of which those that are known to be older come first.
func rank(v VersionCount) int {
	switch {
	case v.Applied:
		return 0
	case v.Version != "":
		return 1
	case v.Behind:
		return 2
	}
	return 3
}
