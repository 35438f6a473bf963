package report_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"tidemark.dev/tidemark/internal/check"
	"tidemark.dev/tidemark/internal/manifest"
	"tidemark.dev/tidemark/internal/report"
)

var update = flag.Bool("update", false, "write the golden files")

func example() report.Report {
	return report.Report{
		Before: []string{"v1"}, After: "v2", Version: "v0.0.0",
		Locate: func(p manifest.Position) manifest.Position {
			p.File = strings.TrimPrefix(p.File, "/repo/")
			return p
		},
		Result: check.Result{
			Findings: []check.Finding{
				{
					Rule: check.RenameInOneStep, Severity: check.Warning, Object: "configmap/pricing-config", Workload: "deployment/pricing",
					Key: "pricing.conf:discount_rules_path", To: "pricing.conf:rules.discount_path", Before: "v1", After: "v2", Confidence: "high",
					Why: "One became the other.", Fix: "Ship it in two steps.", At: manifest.Position{File: "/repo/out put/config,1.yaml", Line: 6}, Fingerprint: "aa11",
				},
				{
					Rule: check.KeyMissing, Severity: check.Error, Object: "configmap/settings", Workload: "deployment/web", Key: "B", After: "v2", Confidence: "certain",
					Why: "It is 100% missing.", Fix: "Add it.", At: manifest.Position{File: "-", Line: 3, Source: "web/templates/deployment.yaml"}, Fingerprint: "bb22",
				},
				{
					Rule: check.SecretInConfigMap, Severity: check.Warning, Object: "configmap/settings", Key: "PASSWORD", After: "v2", Confidence: "certain",
					Why: "It is one.", Fix: "Move it.", At: manifest.Position{File: "/repo/a.yaml", Line: 9}, Fingerprint: "cc33",
					Excused: &check.Excuse{Rule: check.SecretInConfigMap, Until: time.Date(2026, 12, 31, 0, 0, 0, 0, time.UTC), Reason: "a test's"},
				},
			},
			Matrix:  []check.Cell{{Workload: "deployment/web", Revision: "v1", Configuration: "v2", Outcome: check.OutcomeBreaks, Why: "B is gone"}},
			Remarks: []string{"a.yaml holds no object"},
		},
	}
}

func write(t *testing.T, r report.Report, f report.Format) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := r.Write(&b, f); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// A name may be written to look like a line of its own, or to steer a terminal.
func TestTextHasNoControlCharacters(t *testing.T) {
	t.Parallel()
	const hostile = "a\n::error::b\x1b[2J\r\u0085"
	r := report.Report{Before: []string{hostile}, After: hostile, Result: check.Result{
		Findings: []check.Finding{{
			Object: hostile, Workload: hostile + "w", Key: hostile, To: hostile, Why: hostile, Fix: hostile, Confidence: "low",
			At: manifest.Position{Source: hostile}, Excused: &check.Excuse{Reason: hostile},
		}},
		Matrix: []check.Cell{{Workload: hostile, Revision: hostile, Configuration: hostile, Why: hostile}},
	}}
	text := string(write(t, r, report.Wide))
	if strings.ContainsAny(text, "\x1b\r\u0085") || strings.Contains(text, "\n::error::") || strings.Count(text, "a\ufffd::error::b\ufffd[2J\ufffd\ufffd") != 14 {
		t.Errorf("%q", text)
	}
	r.Findings[0].Excused = nil
	if text := string(write(t, r, report.GitHub)); strings.Count(text, "\n") != 1 || strings.Contains(text, "\r") {
		t.Errorf("%q", text)
	}
}

func TestFormats(t *testing.T) {
	t.Parallel()
	for _, f := range append(report.Formats(), "") {
		t.Run("as "+f, func(t *testing.T) {
			t.Parallel()
			got := write(t, example(), report.Format(f))
			file := filepath.Join("testdata", "example."+cmp.Or(f, "text")+".golden")
			if *update {
				if err := os.WriteFile(file, got, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := gocmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// sarifSchema is the published schema of SARIF 2.1.0 with errata 01.
func sarifSchema(t testing.TB) *jsonschema.Schema {
	t.Helper()
	file, err := os.Open("testdata/sarif-schema-2.1.0.json")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // only read
	document, err := jsonschema.UnmarshalJSON(file)
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("sarif.json", document); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("sarif.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

func TestSARIFFitsItsPublishedSchema(t *testing.T) {
	t.Parallel()
	schema := sarifSchema(t)
	for name, r := range map[string]report.Report{"with findings": example(), "without": {After: "v2"}} {
		t.Run(name, func(t *testing.T) {
			document, err := jsonschema.UnmarshalJSON(bytes.NewReader(write(t, r, report.SARIF)))
			if err != nil {
				t.Fatal(err)
			}
			if err := schema.Validate(document); err != nil {
				t.Error(err)
			}
		})
	}
	broken, _ := jsonschema.UnmarshalJSON(strings.NewReader(`{"version": "2.1.0", "runs": [{}]}`))
	if schema.Validate(broken) == nil {
		t.Error("the schema allows a run without a tool, so it proves nothing")
	}
}

func TestSARIFHasRelativeURIsAndFingerprints(t *testing.T) {
	t.Parallel()
	var log struct {
		Runs []struct {
			Results []struct {
				PartialFingerprints map[string]string
				Locations           []struct {
					PhysicalLocation struct {
						ArtifactLocation struct{ URI, URIBaseID string }
					}
				}
			}
		}
	}
	if err := json.Unmarshal(write(t, example(), report.SARIF), &log); err != nil {
		t.Fatal(err)
	}
	want := []string{"out%20put/config,1.yaml", "web/templates/deployment.yaml", "a.yaml"}
	if len(log.Runs[0].Results) != len(want) {
		t.Fatalf("%d results", len(log.Runs[0].Results))
	}
	for i, r := range log.Runs[0].Results {
		at := r.Locations[0].PhysicalLocation.ArtifactLocation
		if at.URI != want[i] || at.URIBaseID != "%SRCROOT%" || r.PartialFingerprints["tidemark/v1"] == "" {
			t.Errorf("result %d: %+v", i, r)
		}
	}
}
