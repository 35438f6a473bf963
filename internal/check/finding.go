package check

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"path"
	"slices"
	"strings"
	"time"

	"tidemark.dev/tidemark/internal/credential"
	"tidemark.dev/tidemark/internal/keys"
	"tidemark.dev/tidemark/internal/manifest"
	"tidemark.dev/tidemark/internal/workload"
)

// Finding is something that would break, or cannot do what it is for. It has no value of any setting.
type Finding struct {
	Rule     RuleID
	Severity Severity
	// Object that it is about, as "configmap/NAME" or "configmap/NAMESPACE/NAME"; a workload, or a job of a CI workflow.
	Object string
	// Workload whose pods read the object; "" where none is meant.
	Workload string
	// Key is the setting as [keys.Path.String] gives it, or the name of an environment variable; "" for the whole object.
	Key string
	// To is the new name of a renamed setting.
	To string
	// Before and After are the names of the two releases; Before is "" where only one is concerned.
	Before, After string
	// Confidence is "certain", "high", "medium", "low" or "possible".
	Confidence string
	// Why it is so, and Fix how to mend it, one sentence each.
	Why, Fix string
	// At is where to look.
	At manifest.Position
	// Excused is why it does not count; nil where it does.
	Excused *Excuse
	// Fingerprint stays the same while the finding does, wherever its line moves, whatever it is compared with.
	Fingerprint string

	// place tells objects of one name apart; "" where nothing else has the name.
	place string
	// also are the names of further releases with which it is the same.
	also []string
	// annotations that may excuse it.
	excusable []map[string]string
	comments  []string
}

// Confidences beside those of a rename.
const (
	certain  = "certain"
	possible = "possible"
)

// fingerprint is of what the finding is about: not of where it stands, nor of the release before, which has another name each time.
// Nor does the version in an object's name count.
func (f *Finding) fingerprint() string {
	sum := sha256.Sum256([]byte(f.about(versioned.ReplaceAllString(f.Object, ""), path.Base(f.place))))
	return hex.EncodeToString(sum[:16])
}

func (f *Finding) about(object, place string) string {
	return strings.Join([]string{string(f.Rule), object, f.Workload, f.Key, f.To, place}, "\x00")
}

// join takes in that the finding is there with another release before, too. The surer one stays.
func (f *Finding) join(other Finding) {
	sure := []string{possible, keys.Low.String(), keys.Medium.String(), keys.High.String(), certain}
	if slices.Index(sure, other.Confidence) > slices.Index(sure, f.Confidence) {
		other.also = f.also
		*f, other = other, *f
	}
	if other.Before != f.Before && !slices.Contains(f.also, other.Before) {
		f.also = append(f.also, other.Before)
	}
}

// shown is the name of a setting as it may be shown: of a Secret the key only, and no part that looks like a credential.
func shown(p keys.Path, kind workload.ObjectKind) string {
	if kind == workload.Secret {
		p.Setting = ""
	}
	p.Key = Masked(p.Key)
	if p.Setting != "" {
		parts := strings.Split(p.Setting, ".")
		for i := range parts {
			parts[i] = Masked(parts[i])
		}
		p.Setting = strings.Join(parts, ".")
	}
	return p.String()
}

const hidden = "(hidden)"

// Masked is a name as it may be shown: nothing of it where it looks like a credential.
func Masked(name string) string {
	if credential.Shaped(name) {
		return hidden
	}
	return name
}

// objectText names an object, without the namespace where manifests name none.
func objectText(o workload.Object) string { return o.Relative("") }

// finish excuses, sets severities, leaves out what is off or said twice, and sorts by place.
func finish(found []Finding, severities map[RuleID]Severity, now time.Time) []Finding {
	found = append(found, invalidExcuses(found)...)
	said := map[string]int{}
	out := found[:0:0]
	for _, f := range found {
		rule, _ := RuleOf(f.Rule)
		f.Severity = cmp.Or(severities[f.Rule], rule.Severity)
		f.Fix = cmp.Or(f.Fix, rule.Fix)
		f.Confidence = cmp.Or(f.Confidence, certain)
		f.Fingerprint = f.fingerprint()
		if f.Severity == Off {
			continue
		}
		f.excuse(now)
		about := f.about(f.Object, f.place)
		if i, already := said[about]; already {
			out[i].join(f)
			continue
		}
		said[about] = len(out)
		out = append(out, f)
	}
	for i := range out {
		if f := &out[i]; len(f.also) > 0 {
			f.Why += " It is the same with " + strings.Join(f.also, ", ") + "."
		}
	}
	slices.SortStableFunc(out, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.At.File, b.At.File), cmp.Compare(a.At.Line, b.At.Line), cmp.Compare(a.Rule, b.Rule),
			cmp.Compare(a.Object, b.Object), cmp.Compare(a.Workload, b.Workload), cmp.Compare(a.Key, b.Key))
	})
	return out
}
