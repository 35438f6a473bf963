package check_test

import (
	"fmt"
	"strings"
	"testing"

	"tidemark.dev/tidemark/internal/check"
	"tidemark.dev/tidemark/internal/manifest"
)

// findings of a change, against one release before for each of the names.
func findings(t *testing.T, was, is string, names ...string) []check.Finding {
	t.Helper()
	in := check.Input{After: release(t, "after", is), Now: day}
	for _, name := range names {
		in.Before = append(in.Before, release(t, name, was))
	}
	return check.Run(in).Findings
}

func fingerprints(found []check.Finding) string {
	var out []string
	for _, f := range found {
		out = append(out, f.Fingerprint)
	}
	return strings.Join(out, " ")
}

const (
	settingsA = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {LEASE: \"1\", LOG_LEVEL: info, OTHER: x}\n---\n"
	settingsB = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {logLevel: info, OTHER: x}\n---\n"
	oneReader = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {template: {spec: {containers: [{name: app, envFrom: [{configMapRef: {name: settings}}]}]}}}\n"
)

// A pipeline that compares with the release before names another one each time; what it found last time is not new for that.
func TestAFingerprintStaysWhileTheFindingDoes(t *testing.T) {
	t.Parallel()
	was := settingsA + oneReader
	first := findings(t, was, settingsB+oneReader, "v1.4.0")
	if len(first) != 2 || first[0].Fingerprint == first[1].Fingerprint || len(first[0].Fingerprint) != 32 {
		t.Fatalf("%d findings: %s", len(first), fingerprints(first))
	}
	for name, again := range map[string][]check.Finding{
		"with another release before": findings(t, was, settingsB+oneReader, "v1.5.0"),
		"with its lines moved":        findings(t, "\n\n"+was, "# a comment\n\n"+settingsB+oneReader, "v1.4.0"),
		"with other values":           findings(t, was, strings.Replace(settingsB, "info", "debug", 1)+oneReader, "v1.4.0"),
		"with two releases before":    findings(t, was, settingsB+oneReader, "v1.4.0", "v1.5.0"),
	} {
		if got := fingerprints(again); got != fingerprints(first) {
			t.Errorf("%s: %s, want %s", name, got, fingerprints(first))
		}
	}
	for name, other := range map[string][]check.Finding{
		"another object": findings(t, strings.ReplaceAll(was, "settings", "more"), strings.ReplaceAll(settingsB+oneReader, "settings", "more"), "v1.4.0"),
		"another reader": findings(t, strings.ReplaceAll(was, "web", "api"), strings.ReplaceAll(settingsB+oneReader, "web", "api"), "v1.4.0"),
		"another key":    findings(t, strings.ReplaceAll(strings.ReplaceAll(was, "LEASE", "TTL"), "LOG_", "LOGS_"), settingsB+oneReader, "v1.4.0"),
	} {
		if got := fingerprints(other); strings.Contains(got, first[0].Fingerprint) || strings.Contains(got, first[1].Fingerprint) {
			t.Errorf("%s: %s, as %s", name, got, fingerprints(first))
		}
	}
}

// The hash in a name changes with the content, which a finding about something else must not notice.
func TestAFingerprintDoesNotHoldTheVersionInAName(t *testing.T) {
	t.Parallel()
	text := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings-HASH}\ndata: {PASSWORD: hunter2hunter2}\n"
	both := strings.Replace(text, "HASH", "7g2k5h9m4t", 1) + "---\n" + strings.Replace(text, "HASH", "bcdfghkmt2", 1)
	found := findings(t, "", both)
	if len(found) != 2 || found[0].Fingerprint != found[1].Fingerprint || found[0].Object == found[1].Object {
		t.Errorf("%+v", found)
	}
}

// What is the same with several releases before is said once, as it is surest, with all of them.
func TestAFindingWithSeveralReleasesBeforeIsSaidOnce(t *testing.T) {
	t.Parallel()
	in := check.Input{After: release(t, "after", settingsB+oneReader), Now: day, Before: []check.Release{
		release(t, "v1", settingsA+oneReader), release(t, "v2", settingsA+strings.Replace(oneReader, "{name: web}", "{name: web, annotations: {tidemark.dev/reads: LEASE}}", 1)),
		release(t, "v3", settingsA+oneReader),
	}}
	found := check.Run(in).Findings
	if len(found) != 2 {
		t.Fatalf("%+v", found)
	}
	for _, f := range found {
		if f.Rule == check.KeyRemovedWhileRead {
			if f.Confidence != "certain" || f.Before != "v2" || !strings.HasSuffix(f.Why, " It is the same with v1, v3.") {
				t.Errorf("%+v", f)
			}
		} else if f.Before != "v1" || !strings.HasSuffix(f.Why, " It is the same with v3.") {
			t.Errorf("%+v", f)
		}
	}
}

// Jobs of two workflows may have one name.
func TestJobsOfTwoWorkflowsAreTwo(t *testing.T) {
	t.Parallel()
	set := &manifest.Set{Kinds: manifest.Kinds()}
	for _, name := range []string{"ci/east.yaml", "ci/west.yaml"} {
		text := "on: push\nconcurrency: {cancel-in-progress: true}\njobs:\n  deploy:\n    steps: [{run: helm upgrade web ./chart}]\n"
		if err := set.Read(name, text); err != nil {
			t.Fatal(err)
		}
	}
	found := check.Run(check.Input{After: check.Release{Name: "after", Set: set}, Now: day}).Findings
	if len(found) != 2 || found[0].Fingerprint == found[1].Fingerprint {
		t.Errorf("%s", fmt.Sprint(found))
	}
}

// What a schema refers to elsewhere is not fetched, and the error says what to do.
func TestASchemaIsByItself(t *testing.T) {
	t.Parallel()
	for _, ref := range []string{"https://user:MARKER@example.org/x.json", "file:///etc/passwd", "other.json#/$defs/a"} {
		if _, err := check.CompileSchema(`{"$ref": "` + ref + `"}`); err == nil || !strings.Contains(err.Error(), "$defs") || strings.Contains(err.Error(), "MARKER") {
			t.Errorf("%s: %v", ref, err)
		}
	}
	if _, err := check.CompileSchema(`{"$ref": "#/$defs/a", "$defs": {"a": {}}}`); err != nil {
		t.Errorf("within itself: %v", err)
	}
}
