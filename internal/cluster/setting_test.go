package cluster

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/workload"
)

func TestSettingOf(t *testing.T) {
	annotated := func(name, value string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Annotations: map[string]string{name: value}}
	}
	labelled := func(name, value string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Labels: map[string]string{name: value}}
	}
	const versioned, restart, live = v1.TreatAsVersioned, v1.TreatAsRestart, v1.TreatAsLive
	for name, tc := range map[string]struct {
		kind    workload.ObjectKind
		meta    metav1.ObjectMeta
		want    Setting
		problem string
	}{
		"a ConfigMap":         {want: Setting{TreatAs: versioned}},
		"a Secret":            {kind: workload.Secret, want: Setting{TreatAs: restart}},
		"a Secret, versioned": {kind: workload.Secret, meta: annotated(v1.AnnotationTreatAs, versioned), want: Setting{TreatAs: versioned}},
		"ignored":             {meta: annotated(v1.AnnotationIgnore, "true"), want: Setting{Ignore: true, TreatAs: versioned}},
		"not ignored":         {meta: annotated(v1.AnnotationIgnore, "false"), want: Setting{TreatAs: versioned}},
		"a service account's token": {
			kind: workload.Secret, meta: annotated("kubernetes.io/service-account.name", "mailer"), want: Setting{Ignore: true, TreatAs: restart},
		},
		"a ConfigMap that names a service account": {meta: annotated("kubernetes.io/service-account.name", "mailer"), want: Setting{TreatAs: versioned}},
		"a word that is no boolean":                {meta: annotated(v1.AnnotationIgnore, "yes"), want: Setting{TreatAs: versioned}, problem: `"yes" is neither`},
		"live":                                     {meta: annotated(v1.AnnotationTreatAs, live), want: Setting{TreatAs: live}},
		"restart":                                  {meta: annotated(v1.AnnotationTreatAs, restart), want: Setting{TreatAs: restart}},
		"a treatment that is none": {
			meta: annotated(v1.AnnotationTreatAs, "frozen"), want: Setting{TreatAs: versioned}, problem: `"frozen" is no treatment`,
		},
		"Flagger does not track it": {meta: annotated(flaggerTracking, "disabled"), want: Setting{TreatAs: live}},
		"Flagger tracks it":         {meta: annotated(flaggerTracking, "enabled"), want: Setting{TreatAs: versioned}},
		"a treatment wins over Flagger's": {
			meta: metav1.ObjectMeta{Annotations: map[string]string{flaggerTracking: "disabled", v1.AnnotationTreatAs: restart}},
			want: Setting{TreatAs: restart},
		},
		"trust-manager fills it":         {meta: labelled("trust.cert-manager.io/bundle", "all"), want: Setting{TreatAs: restart}},
		"OpenShift fills it":             {meta: labelled("config.openshift.io/inject-trusted-cabundle", "true"), want: Setting{TreatAs: restart}},
		"OpenShift's service CA":         {meta: annotated("service.beta.openshift.io/inject-cabundle", "true"), want: Setting{TreatAs: restart}},
		"Istio's root certificate":       {meta: metav1.ObjectMeta{Name: "istio-ca-root-cert"}, want: Setting{TreatAs: restart}},
		"a treatment wins over a bundle": {meta: metav1.ObjectMeta{Name: "istio-ca-root-cert", Annotations: map[string]string{v1.AnnotationTreatAs: versioned}}, want: Setting{TreatAs: versioned}},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.kind == "" {
				tc.kind = workload.ConfigMap
			}
			got := SettingOf(tc.kind, &tc.meta)
			if (got.Problem == "") != (tc.problem == "") || !strings.Contains(got.Problem, tc.problem) {
				t.Errorf("problem %q, want %q", got.Problem, tc.problem)
			}
			if got.Problem = ""; got != tc.want {
				t.Errorf("setting %+v, want %+v", got, tc.want)
			}
		})
	}
}
