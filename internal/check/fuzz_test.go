package check_test

import (
	"strings"
	"testing"

	"tidemark.dev/tidemark/internal/check"
	"tidemark.dev/tidemark/internal/manifest"
)

// FuzzRun checks whatever can be read, which must end, and name a place and a rule for each finding.
func FuzzRun(f *testing.F) {
	f.Add(settingsA+oneReader, settingsB+oneReader)
	f.Add("", "kind: Pod\napiVersion: v1\nspec: {containers: [{envFrom: [{}], env: [{valueFrom: {secretKeyRef: {}}}]}], volumes: [{projected: {sources: [{}]}}]}")
	f.Add("kind: Secret\napiVersion: v1\nimmutable: true\nbinaryData: {a: '!'}\ndata: {x.env: YT1i}\n", "kind: Secret\napiVersion: v1\n")
	f.Add(oneReader, "on: x\nconcurrency: {cancel-in-progress: '${{'}\njobs: {a: {steps: [{run: helm upgrade}]}} # tidemark.dev/check-excuse: ; x until 2026-01-01: y\n")
	f.Add("kind: ConfigMap\napiVersion: v1\ndata: {a.yaml: \"a: [{b: 1}]\", .: '', ..: ''}\n", "kind: ConfigMap\napiVersion: v1\nmetadata: {annotations: {tidemark.dev/check-excuse: \"key-missing until 9999-99-99: z\"}}\ndata: {a.yaml: '{'}\n")
	f.Fuzz(func(t *testing.T, was, is string) {
		before, after := &manifest.Set{Kinds: manifest.Kinds()}, &manifest.Set{Kinds: manifest.Kinds()}
		if before.Read("before.yaml", was) != nil || after.Read("after.yaml", is) != nil {
			return
		}
		for _, mode := range []string{"", "observe", "pin"} {
			result := check.Run(check.Input{Before: []check.Release{{Name: "before", Set: before}}, After: check.Release{Name: "after", Set: after}, Mode: mode, Now: day})
			for _, found := range result.Findings {
				if _, known := check.RuleOf(found.Rule); !known || found.At.File == "" || found.Why == "" || found.Fix == "" || len(found.Fingerprint) != 32 || !strings.HasSuffix(found.At.File, ".yaml") {
					t.Errorf("%+v", found)
				}
			}
		}
	})
}
