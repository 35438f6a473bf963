package workload_test

import (
	"strings"
	"testing"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/workload"
)

func TestNamed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		annotations map[string]string
		refs        []string
		// errs are parts of the errors, in order.
		errs [][]string
	}{
		"no annotation names nothing": {},
		"an empty annotation names nothing": {
			annotations: map[string]string{v1.AnnotationExtraConfigMaps: "", v1.AnnotationExtraSecrets: " , ,\n"},
		},
		"items are trimmed, and of the workload's namespace unless they say another": {
			annotations: map[string]string{v1.AnnotationExtraConfigMaps: " settings ,\n\tbilling/rates, billing / taxes"},
			refs: []string{
				"pod named configmap/settings keys=* optional",
				"pod named configmap/billing/rates keys=* optional",
				"pod named configmap/billing/taxes keys=* optional",
			},
		},
		"the annotation says the kind": {
			annotations: map[string]string{v1.AnnotationExtraConfigMaps: "same", v1.AnnotationExtraSecrets: "same"},
			refs: []string{
				"pod named configmap/same keys=* optional",
				"pod named secret/same keys=* optional",
			},
		},
		"annotations of Wave are read like our own": {
			annotations: map[string]string{v1.WaveExtraConfigMaps: "settings, billing/rates", v1.WaveExtraSecrets: "db"},
			refs: []string{
				"pod named configmap/settings keys=* optional",
				"pod named configmap/billing/rates keys=* optional",
				"pod named secret/db keys=* optional",
			},
		},
		"an object named several times is one": {
			annotations: map[string]string{
				v1.AnnotationExtraConfigMaps: "settings,settings,shop/settings", v1.WaveExtraConfigMaps: "settings",
			},
			refs: []string{"pod named configmap/settings keys=* optional"},
		},
		"bad items are reported and do not hinder the others": {
			annotations: map[string]string{
				v1.AnnotationExtraConfigMaps: "a/b/c, settings, Upper, [, /x, x/, *",
				v1.WaveExtraSecrets:          "with space, db",
			},
			refs: []string{
				"pod named configmap/settings keys=* optional",
				"pod named secret/db keys=* optional",
			},
			errs: [][]string{
				{v1.AnnotationExtraConfigMaps, `"a/b/c"`},
				{v1.AnnotationExtraConfigMaps, `"Upper"`},
				{v1.AnnotationExtraConfigMaps, `"["`},
				{v1.AnnotationExtraConfigMaps, `"/x"`},
				{v1.AnnotationExtraConfigMaps, `"x/"`},
				{v1.AnnotationExtraConfigMaps, `"*"`},
				{v1.WaveExtraSecrets, `"with space"`},
			},
		},
		"the cluster's trust is never configuration, and whoever names it is told": {
			annotations: map[string]string{v1.AnnotationExtraConfigMaps: "kube-root-ca.crt", v1.AnnotationExtraSecrets: "kube-root-ca.crt"},
			refs:        []string{"pod named secret/kube-root-ca.crt keys=* optional"},
			errs:        [][]string{{v1.AnnotationExtraConfigMaps, "never configuration"}},
		},
		"other annotations are not looked at": {
			annotations: map[string]string{"example.com/extra-configmaps": "settings"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			refs, errs := workload.Named(namespace, c.annotations)
			sameLines(t, "references", refs, describe, c.refs...)
			if len(errs) != len(c.errs) {
				t.Fatalf("got errors %v, want %d", errs, len(c.errs))
			}
			for i, parts := range c.errs {
				for _, part := range parts {
					if !strings.Contains(errs[i].Error(), part) {
						t.Errorf("error %q does not say %s", errs[i], part)
					}
				}
			}
		})
	}
}
