package report_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"tidemark.dev/tidemark/internal/check"
	"tidemark.dev/tidemark/internal/manifest"
	"tidemark.dev/tidemark/internal/report"
)

// FuzzWrite writes a finding of any text in each format: machines must be able to read it, and no text may end a line of GitHub's
// commands and begin another.
func FuzzWrite(f *testing.F) {
	f.Add("deployment/web", "a.yaml:b", "It is.", "out/a b.yaml", "", 3)
	f.Add("job/x\n::error ::y", "k%0Ad", "100%\r\n::set-output name=a::b", "a,b:c.yaml", "web/t\n::x", -1)
	f.Add("\xff\xfe", "\u2028<>&", "\x00\x1b[31m", "../\x7f?#%zz", "://", 0)
	schema := sarifSchema(f)
	f.Fuzz(func(t *testing.T, object, key, why, file, source string, line int) {
		r := report.Report{After: object, Result: check.Result{Findings: []check.Finding{{
			Rule: check.KeyMissing, Severity: check.Error, Object: object, Key: key, Why: why, Fix: why, Confidence: "certain", Fingerprint: "aa",
			At: manifest.Position{File: file, Line: line, Source: source},
		}}}}
		for _, format := range append(report.Formats(), "") {
			var b bytes.Buffer
			if err := r.Write(&b, report.Format(format)); err != nil {
				t.Fatal(err)
			}
			switch report.Format(format) {
			case report.GitHub:
				if text := b.String(); strings.Count(text, "\n") != 1 || strings.ContainsRune(text, '\r') || !strings.HasPrefix(text, "::error file=") {
					t.Errorf("%q", text)
				}
			case report.SARIF:
				document, err := jsonschema.UnmarshalJSON(&b)
				if err == nil {
					err = schema.Validate(document)
				}
				if err != nil {
					t.Error(err)
				}
			case report.JSON, report.GitLab:
				if !json.Valid(b.Bytes()) {
					t.Errorf("%s", b.String())
				}
			case report.Text, report.Wide:
			}
		}
	})
}
