package check

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	v1 "tidemark.dev/tidemark/api/v1"
)

// Excuse is why a finding does not count, and until when.
type Excuse struct {
	Rule RuleID
	// Key that it is for; "" for all.
	Key    string
	Until  time.Time // the last day on which it holds, in UTC
	Reason string
}

var excuseForm = regexp.MustCompile(`^(\S+)(?:\s+(\S+))?\s+until\s+(\d{4}-\d{2}-\d{2}):\s*(\S.*)$`)

// ParseExcuses reads the value of the annotation tidemark.dev/check-excuse: entries on lines of their own or separated by
// semicolons, which a reason may have as well. An entry that cannot be read gives an error that does not hinder the others.
func ParseExcuses(text string) ([]Excuse, []error) {
	var out []Excuse
	var errs []error
	for _, entry := range excuseEntries(text) {
		e, err := parseExcuse(entry)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		out = append(out, e)
	}
	return out, errs
}

// excuseEntries parts a text at its lines, and at the semicolons behind which another entry begins.
func excuseEntries(text string) []string {
	var out []string
	for line := range strings.SplitSeq(text, "\n") {
		fresh := true
		for part := range strings.SplitSeq(line, ";") {
			word, _, _ := strings.Cut(strings.TrimSpace(part), " ")
			_, rule := RuleOf(RuleID(word))
			switch {
			case strings.TrimSpace(part) == "":
			case fresh || rule || excuseForm.MatchString(strings.TrimSpace(part)):
				out = append(out, strings.TrimSpace(part))
				fresh = false
			default:
				out[len(out)-1] += ";" + strings.TrimRight(part, " \t")
			}
		}
	}
	return out
}

func parseExcuse(entry string) (Excuse, error) {
	m := excuseForm.FindStringSubmatch(entry)
	if m == nil {
		return Excuse{}, fmt.Errorf("want RULE [KEY] until YYYY-MM-DD: REASON")
	}
	if _, known := RuleOf(RuleID(m[1])); !known {
		return Excuse{}, fmt.Errorf("there is no such rule: see tidemark check --list-rules")
	}
	until, err := time.Parse(time.DateOnly, m[3])
	if err != nil {
		return Excuse{}, fmt.Errorf("%s is no date", m[3])
	}
	return Excuse{Rule: RuleID(m[1]), Key: m[2], Until: until, Reason: m[4]}, nil
}

// texts are the excuses, as text, of what a finding is about.
func (f *Finding) texts() []string {
	var out []string
	for _, a := range f.excusable {
		if text := a[v1.AnnotationExcuse]; text != "" {
			out = append(out, text)
		}
	}
	for _, c := range f.comments {
		if text, is := strings.CutPrefix(c, v1.AnnotationExcuse+":"); is {
			out = append(out, text)
		}
	}
	return out
}

// excuse finds what excuses the finding on the day. What expired is said in its reason.
func (f *Finding) excuse(now time.Time) {
	for _, text := range f.texts() {
		excuses, _ := ParseExcuses(text)
		for _, e := range excuses {
			switch {
			case e.Rule != f.Rule || e.Key != "" && e.Key != f.Key:
			case now.Before(e.Until.AddDate(0, 0, 1)):
				f.Excused = &e
				return
			default:
				f.Why += " Its excuse expired on " + e.Until.Format(time.DateOnly) + "."
			}
		}
	}
}

// invalidExcuses finds excuses that cannot be read, beside the findings that they may be meant for.
func invalidExcuses(found []Finding) []Finding {
	var out []Finding
	for _, f := range found {
		for _, text := range f.texts() {
			_, errs := ParseExcuses(text)
			for _, err := range errs {
				out = append(out, Finding{
					Rule: ExcuseInvalid, Object: f.Object, After: f.After, At: f.At,
					Why: fmt.Sprintf("An excuse for %s cannot be read: %v.", f.Object, err),
				})
			}
		}
	}
	return out
}
