package fleet

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"tidemark.dev/tidemark/internal/digest"
	"tidemark.dev/tidemark/internal/workload"
)

// Report is what the program of a container says that it loaded.
type Report struct {
	// At is when it was asked.
	At      time.Time
	Objects []ReportedObject
}

// ReportedObject is what a program says that it loaded of one ConfigMap, key by key.
type ReportedObject struct {
	Object workload.Object
	// LoadedAt is when the load began whose result it runs with, by the clock of its node.
	LoadedAt time.Time
	// Env and Files are the keys that it read into the environment and as files.
	Env, Files map[string]ReportedKey
	// LastFailed says that a later load failed.
	LastFailed bool
}

// ReportedKey is what a program says of one key.
type ReportedKey struct {
	// There says that it had a value, with this sum.
	There bool
	Sum   digest.Sum
	// Partly says that the sum leaves lines out, so that it compares with nothing.
	Partly bool
}

// heed takes in what the program says of an object. It counts for more than what its start tells, and for less than a pin:
// a pod cannot be given anything else than what its pin holds. Whatever it says otherwise is told.
func (r *reader) heed(f *finding) {
	said := r.said(f.Object)
	if said == nil || f.object == nil {
		return
	}
	if why := r.untimely(said); why != "" {
		f.Why += "; what the program says is not heeded: " + why
		return
	}
	differs := said.differs(f.use, f.content)
	if f.Evidence == Pinned {
		if len(differs) > 0 {
			f.Contradiction = "the program says that it loaded another value of " + strings.Join(differs, ", ")
		}
		return
	}
	content, ok := said.content(f.use, f.object)
	if !ok {
		f.weigh(said, differs)
		return
	}
	inferred := f.Digest
	f.Digest, f.content = content.Consumed(f.use), content
	if why := f.incomparable(); why != "" {
		f.Digest, f.Why = inferred, f.Why+"; the program says otherwise, in a digest that does not compare"
		return
	}
	f.Evidence, f.tooRecent, f.hinted = Reported, false, false
	f.Since = said.LoadedAt.Add(-r.fleet.Settings.Skew)
	f.Why = "the program says that it loaded it at " + clock(said.LoadedAt)
	if said.LastFailed {
		f.Why += ", and that a later load failed"
	}
	if inferred != "" && inferred != f.Digest {
		f.Contradiction = "its start tells that it loaded " + inferred.Short()
	}
	f.Changed = time.Time{}
	f.noteChange()
}

// weigh compares what the program says of some keys with what its start tells of all.
func (f *finding) weigh(said *ReportedObject, differs []string) {
	switch {
	case f.Digest == "":
	case len(differs) > 0:
		f.Contradiction = "its start tells that it loaded " + f.Digest.Short()
		f.Digest, f.Evidence, f.Changed = "", NotKnown, time.Time{}
		f.Why = "the program says that it loaded another value of " + strings.Join(differs, ", ") + ", and does not tell of every key"
	case said.compared(f.use) > 0:
		f.Why += fmt.Sprintf("; the program says the same of %d keys", said.compared(f.use))
	}
}

func (r *reader) said(o workload.Object) *ReportedObject {
	if r.container.Report == nil {
		return nil
	}
	for i := range r.container.Report.Objects {
		if said := &r.container.Report.Objects[i]; said.Object == o {
			return said
		}
	}
	return nil
}

// untimely says why a report cannot be of the run that is known; "" when it can.
func (r *reader) untimely(said *ReportedObject) string {
	skew := r.fleet.Settings.Skew
	switch {
	case r.container.Started.IsZero():
		return "it is not known when the container started"
	case said.LoadedAt.Before(r.container.Started.Add(-apiSecond - skew)):
		return "it loaded at " + clock(said.LoadedAt) + ", before the container started"
	case said.LoadedAt.After(r.container.Report.At.Add(apiSecond + skew)):
		return "it loaded at " + clock(said.LoadedAt) + ", which is in the future"
	}
	return ""
}

// views are the keys of each way of reading, with what the use reads by it and what a content has.
func (o *ReportedObject) views(use workload.Consumption) []reportedView {
	return []reportedView{
		{o.Env, use.Env, digest.Env, func(c digest.Content, key string) (digest.Sum, bool) { s, ok := c.Data[key]; return s, ok }},
		{o.Files, use.Files, digest.File, digest.Content.Value},
	}
}

type reportedView struct {
	keys  map[string]ReportedKey
	reads workload.Keys
	view  digest.View
	value func(digest.Content, string) (digest.Sum, bool)
}

// differs lists the keys of which the program says otherwise than a content that is known has; none for one that is not.
func (o *ReportedObject) differs(use workload.Consumption, c digest.Content) []string {
	if c.Version == "" {
		return nil
	}
	var out []string
	for _, v := range o.views(use) {
		for _, key := range slices.Sorted(maps.Keys(v.keys)) {
			k := v.keys[key]
			sum, there := v.value(c, key)
			if v.reads.Has(key) && !k.Partly && (there != k.There || there && sum != k.Sum) {
				out = append(out, key)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// compared counts the keys of which the program says something that compares.
func (o *ReportedObject) compared(use workload.Consumption) int {
	n := 0
	for _, v := range o.views(use) {
		for key, k := range v.keys {
			if v.reads.Has(key) && !k.Partly {
				n++
			}
		}
	}
	return n
}

// content is what the program loaded, as far as the use reads it; false where what it says does not decide. It decides where
// it tells of every key that the use names. Which keys there were of an object that is read whole it cannot tell: that is known
// where one content that the object had has just these keys with these values.
func (o *ReportedObject) content(use workload.Consumption, of *Object) (digest.Content, bool) {
	said := o.contentOf(use)
	if len(said.Data)+len(said.Binary) == 0 || len(o.differs(use, said)) > 0 {
		return digest.Content{}, false // no key is no proof of an object; a key read at two times is of two contents
	}
	if !use.Env.All && !use.Files.All {
		return said, o.tellsAll(use, said)
	}
	contents := []digest.Content{}
	if of.Applied != nil {
		contents = append(contents, *of.Applied)
	}
	for _, v := range slices.Backward(of.Log.Versions) {
		contents = append(contents, v.Content)
	}
	for _, c := range contents {
		if c.Present && c.Version == digest.V1 && len(o.differs(use, c)) == 0 && o.tellsAll(use, c) {
			return c, true
		}
	}
	return digest.Content{}, false
}

// contentOf is what the program says that it loaded, as far as the use reads it.
func (o *ReportedObject) contentOf(use workload.Consumption) digest.Content {
	said := digest.Content{Version: digest.V1, Present: true, Data: map[string]digest.Sum{}, Binary: map[string]digest.Sum{}}
	for _, v := range o.views(use) {
		for key, k := range v.keys {
			if !k.There || k.Partly || !v.reads.Has(key) {
				continue
			}
			if v.view == digest.Env {
				said.Data[key] = k.Sum
			} else if _, too := said.Data[key]; !too {
				said.Binary[key] = k.Sum
			}
		}
	}
	return said
}

// tellsAll reports whether the program tells of every key that the use reads of the content.
func (o *ReportedObject) tellsAll(use workload.Consumption, c digest.Content) bool {
	for _, v := range o.views(use) {
		keys := v.reads.Names
		if v.reads.All && v.view == digest.Env {
			keys = slices.Collect(maps.Keys(c.Data))
		} else if v.reads.All {
			keys = c.Keys()
		}
		for _, key := range keys {
			if k, told := v.keys[key]; !told || k.Partly {
				return false
			}
		}
	}
	return true
}

// said is what is to be said of what programs report.
func (s survey) said() []string {
	return slices.DeleteFunc([]string{s.contradictedText(), s.unheardText()}, func(text string) bool { return text == "" })
}

// contradictedText words what programs say otherwise than other evidence tells; "" when nothing.
func (s survey) contradictedText() string {
	contradicted, first := 0, ""
	for _, p := range s.pods {
		for _, x := range p.findings {
			if x.Contradiction == "" {
				continue
			}
			if contradicted++; first == "" {
				first = fmt.Sprintf("of %s in %s, %s", x.Object.Relative(s.Namespace), p.Name, x.Contradiction)
			}
			break
		}
	}
	if contradicted == 0 {
		return ""
	}
	return s.of(contradicted, "reports", "report") + " otherwise than other evidence tells: " + first
}

// unheardText words the programs whose answers cannot be used; "" when there are none.
func (s survey) unheardText() string {
	n, first := 0, ""
	for _, p := range s.pods {
		if p.ReportProblem == "" {
			continue
		}
		if n++; n == 1 {
			first = fmt.Sprintf("%s, %s", p.Name, p.ReportProblem)
		}
	}
	if n == 0 {
		return ""
	}
	return "what " + s.of(n, "reports", "report") + " cannot be used: of " + first
}
