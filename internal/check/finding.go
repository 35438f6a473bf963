package check

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
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
	// Fingerprint stays the same while the finding does, wherever its line moves.
	Fingerprint string

	// annotations that may excuse it.
	excusable []map[string]string
	comments  []string
}

// Confidences beside those of a rename.
const (
	certain  = "certain"
	possible = "possible"
)

// fingerprint is of what the finding is about, not of where it stands.
func (f *Finding) fingerprint() string {
	sum := sha256.Sum256([]byte(strings.Join([]string{string(f.Rule), f.Object, f.Workload, f.Key, f.To, f.Before}, "\x00")))
	return hex.EncodeToString(sum[:16])
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
	seen := map[string]bool{}
	out := found[:0:0]
	for _, f := range found {
		rule, _ := RuleOf(f.Rule)
		f.Severity = cmp.Or(severities[f.Rule], rule.Severity)
		f.Fix = cmp.Or(f.Fix, rule.Fix)
		f.Confidence = cmp.Or(f.Confidence, certain)
		f.Fingerprint = f.fingerprint()
		if f.Severity == Off || seen[f.Fingerprint] {
			continue
		}
		seen[f.Fingerprint] = true
		f.excuse(now)
		out = append(out, f)
	}
	slices.SortStableFunc(out, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.At.File, b.At.File), cmp.Compare(a.At.Line, b.At.Line), cmp.Compare(a.Rule, b.Rule),
			cmp.Compare(a.Object, b.Object), cmp.Compare(a.Workload, b.Workload), cmp.Compare(a.Key, b.Key))
	})
	return out
}
