package fleet

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"tidemark.dev/tidemark/internal/workload"
)

// sentence joins what is not empty.
func sentence(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), "; ")
}

// facts words how the pods stand: "18 of 24 pods run an earlier version of configmap/a; 6 run what is applied".
func (s survey) facts() string {
	words := s.known()
	if n := s.count(unsure, recently); n > 0 {
		words = sentence(words, s.whyUnknown())
	}
	if n := s.count(starting); n > 0 {
		words = sentence(words, fmt.Sprintf("%s not run yet%s", s.of(n, "does", "do"), s.firstWaiting()))
	}
	return cmp.Or(words, "no pod runs")
}

// known words what is known of pods.
func (s survey) known() string {
	var words []string
	if n := s.count(behind); n > 0 {
		words = append(words, fmt.Sprintf("%s an earlier version of %s", s.of(n, "runs", "run"), s.behindOn()))
	}
	if n := s.count(current); n > 0 {
		words = append(words, s.of(n, "runs", "run")+" what is applied")
	}
	return sentence(words...)
}

// whyUnknown words how many pods are not known, with the first reason.
func (s survey) whyUnknown() string {
	n := s.count(unsure, recently)
	if n == 0 {
		if s.running() == 0 {
			return fmt.Sprintf("no pod runs yet%s", s.firstWaiting())
		}
		return "whether they all run one version is not known"
	}
	what := fmt.Sprintf("it is not known what %s loaded", s.of(n, "", ""))
	for p, x := range s.all {
		if p.standing != unsure && p.standing != recently {
			continue
		}
		if why := s.why(x); why != "" {
			return fmt.Sprintf("%s: of %s in %s, %s", what, x.Object.Relative(s.Namespace), p.Name, why)
		}
	}
	return what
}

// why words why a finding does not decide; "" when it does.
func (s survey) why(x finding) string {
	switch {
	case x.Digest == "":
		return x.Why
	case x.Applied == "":
		return cmp.Or(x.object.Problem, "what is applied could not be read")
	}
	return ""
}

// hint words the write times that hint at pods behind, where nothing is proved: "possibly dormant: configmap/x was written
// by helm at T, after the start of 24 of 24 containers".
func (s survey) hint() string {
	var newest *Object
	for _, x := range s.all {
		if x.Digest == "" && x.hinted && (newest == nil || x.object.Written.After(newest.Written)) {
			newest = x.object
		}
	}
	if newest == nil {
		return ""
	}
	before, all := 0, 0
	for _, x := range s.all {
		if x.object != newest {
			continue
		}
		all++
		if x.hinted {
			before++
		}
	}
	return fmt.Sprintf("possibly dormant: %s was written by %s at %s, after the start of %d of %d %s",
		newest.Use.Object.Relative(s.Namespace), newest.WrittenBy, clock(newest.Written), before, all, plural(all, "container", "containers"))
}

// remarks are what a reader of any verdict should know besides.
func (s survey) remarks(v Verdict) []string {
	var out []string
	if s.Paused {
		out = append(out, strings.TrimSpace("paused "+s.PausedBy))
	}
	if v != Unpinned {
		out = append(out, s.unmatchedText())
	}
	out = append(out, s.said()...)
	for _, o := range s.gone {
		out = append(out, o.Relative(s.Namespace)+" is gone, and a copy of it is read")
	}
	if v == Unknown && !s.Installed {
		out = append(out, "no controller keeps a history here")
	}
	if s.Stuck != "" && s.count(behind) > 0 && v != Held && v != LeftUnfinished {
		out = append(out, s.Stuck)
	}
	return slices.DeleteFunc(out, func(r string) bool { return r == "" })
}

// listed names objects as seen from the fleet's namespace.
func (s survey) listed(objects []workload.Object) string {
	var names []string
	for _, o := range objects {
		names = append(names, o.Relative(s.Namespace))
	}
	return strings.Join(names, ", ")
}

// behindOn names the objects of which pods run an earlier version.
func (s survey) behindOn() string {
	var names []string
	for _, x := range s.all {
		if x.Behind() {
			names = append(names, x.Object.Relative(s.Namespace))
		}
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ", ")
}

func (s survey) firstWaiting() string {
	for _, p := range s.pods {
		if p.standing == starting && p.Waiting != "" {
			return " (" + p.Waiting + ")"
		}
	}
	return ""
}

// of words "1 of 3 pods runs": a part of the fleet with a verb that agrees.
func (s survey) of(n int, one, many string) string {
	return strings.TrimSpace(fmt.Sprintf("%d of %d %s %s", n, len(s.pods), plural(len(s.pods), "pod", "pods"), plural(n, one, many)))
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
