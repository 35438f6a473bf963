// Package report writes findings of a check in the formats of those who read them.
package report

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/check"
	"tidemark.dev/tidemark/internal/manifest"
)

// Format is how findings are written.
type Format string

// The formats.
const (
	Text   Format = ""
	Wide   Format = "wide"
	JSON   Format = "json"
	SARIF  Format = "sarif"
	GitHub Format = "github"
	GitLab Format = "gitlab"
)

// Formats lists those that have a name.
func Formats() []string {
	return []string{string(Wide), string(JSON), string(SARIF), string(GitHub), string(GitLab)}
}

// Report is what is written.
type Report struct {
	check.Result

	// Before and After are the names of the releases.
	Before []string
	After  string
	// Version of the program.
	Version string
	// Locate gives the place that a position has in the repository; nil to leave positions as they are.
	Locate func(manifest.Position) manifest.Position
}

// Counting lists the findings that no excuse takes out.
func (r Report) Counting() []check.Finding {
	return slices.DeleteFunc(slices.Clone(r.Findings), func(f check.Finding) bool { return f.Excused != nil })
}

// Write writes the report.
func (r Report) Write(w io.Writer, format Format) error {
	if r.Locate != nil {
		r.Findings = slices.Clone(r.Findings)
		for i := range r.Findings {
			r.Findings[i].At = r.Locate(r.Findings[i].At)
		}
	}
	switch format {
	case Text, Wide:
		return r.text(w, format == Wide)
	case JSON:
		return encode(w, r.document())
	case SARIF:
		return encode(w, r.sarif())
	case GitHub:
		return r.github(w)
	case GitLab:
		return encode(w, r.gitlab())
	}
	return fmt.Errorf("there is no format %q", format)
}

func encode(w io.Writer, document any) error {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetIndent("", "    ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(document); err != nil {
		return err
	}
	_, err := io.WriteString(w, escaped(b.String()))
	return err
}

// escaped writes those characters of JSON as escapes that a terminal would act on. The encoder does so with the first 32 only.
func escaped(text string) string {
	var b strings.Builder
	for _, r := range text {
		if r != '\n' && hides(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// document is the report as `-o json` has it.
func (r Report) document() v1.CheckReport {
	out := v1.CheckReport{
		APIVersion: v1.APIVersion, Kind: v1.KindCheckReport, Before: r.Before, After: r.After,
		Findings: []v1.CheckFinding{}, Matrix: []v1.CheckCell{}, Remarks: r.Remarks,
	}
	for _, f := range r.Findings {
		d := v1.CheckFinding{
			Rule: string(f.Rule), Severity: string(f.Severity), Object: f.Object, Workload: f.Workload, Key: f.Key, To: f.To, Before: f.Before,
			Confidence: f.Confidence, Why: f.Why, Fix: f.Fix, File: f.At.File, Line: f.At.Line, Source: f.At.Source, Fingerprint: f.Fingerprint,
		}
		if f.Excused != nil {
			d.Excused = &v1.CheckExcuse{Until: f.Excused.Until.Format(time.DateOnly), Reason: f.Excused.Reason}
		}
		out.Findings = append(out.Findings, d)
	}
	for _, c := range r.Matrix {
		out.Matrix = append(out.Matrix, v1.CheckCell{
			Workload: c.Workload, Revision: c.Revision, Configuration: c.Configuration, Outcome: string(c.Outcome), Why: c.Why,
		})
	}
	return out
}

// place is the file and line for those who need both: the file that was rendered from, where what was rendered is none.
func place(p manifest.Position) (file string, line int) {
	if p.Source != "" {
		return p.Source, 1
	}
	return cmp.Or(p.File, "unknown"), max(p.Line, 1)
}
