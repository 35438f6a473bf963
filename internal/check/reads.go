package check

import (
	"regexp"
	"slices"
	"strings"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/keys"
	"tidemark.dev/tidemark/internal/manifest"
	"tidemark.dev/tidemark/internal/workload"
)

// certainty is whether a program reads a setting.
type certainty int

const (
	doesNot certainty = iota
	mayRead
	reads
)

// pattern is one entry of tidemark.dev/reads.
type pattern struct {
	text     string
	optional bool
	form     *regexp.Regexp
}

// parseReads reads the annotation tidemark.dev/reads; nil where nothing is declared.
func parseReads(w *manifest.Workload) []pattern {
	var out []pattern
	for _, text := range strings.FieldsFunc(w.Annotation(v1.AnnotationReads), func(r rune) bool { return r == ',' || r == '\n' }) {
		text, optional := strings.CutSuffix(strings.TrimSpace(text), "?")
		if text == "" {
			continue
		}
		form := strings.ReplaceAll(regexp.QuoteMeta(text), `\*`, ".*")
		out = append(out, pattern{text, optional, regexp.MustCompile("^" + form + "$")})
	}
	return out
}

// matches reports whether the pattern means the setting, or a part of what it names.
func (p pattern) matches(path keys.Path) bool {
	for _, name := range []string{path.String(), path.Setting, path.Key} {
		if name != "" && p.form.MatchString(name) {
			return true
		}
	}
	for i, r := range path.Setting {
		if r == '.' && (p.form.MatchString(path.Setting[:i]) || p.form.MatchString(path.Key+":"+path.Setting[:i])) {
			return true
		}
	}
	return false
}

// exact reports whether the pattern names one setting.
func (p pattern) exact() bool { return !strings.Contains(p.text, "*") }

// reading is what one revision of a workload reads of one object.
type reading struct {
	use      workload.Consumption
	declared []pattern
}

// of says whether the program reads a setting. What is declared is all that is read of whole objects and of files.
func (r reading) of(p keys.Path) certainty {
	if !r.use.Env.Has(p.Key) && !r.use.Files.Has(p.Key) {
		return doesNot
	}
	if r.names(p) {
		return reads
	}
	if len(r.declared) == 0 {
		return mayRead
	}
	for _, d := range r.declared {
		if d.matches(p) {
			return reads
		}
	}
	return doesNot
}

// names reports whether the template names just this setting: a key for an environment variable, or for an item. One that is required it
// names beside the whole object, too.
func (r reading) names(p keys.Path) bool {
	return p.Setting == "" && slices.Contains(r.use.RequiredKeys, p.Key) || !r.use.Env.All && r.use.Env.Has(p.Key) || p.Setting == "" && !r.use.Files.All && r.use.Files.Has(p.Key)
}

// needs reports whether what is declared names just this setting, and not as one that may be missing.
func (r reading) needs(p keys.Path) bool {
	return slices.ContainsFunc(r.declared, func(d pattern) bool { return !d.optional && (d.text == p.String() || d.text == p.Setting) })
}
