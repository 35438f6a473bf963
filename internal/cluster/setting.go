package cluster

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/workload"
)

// Setting is what a config object's own metadata asks for.
type Setting struct {
	// Ignore asks to act as if nothing referenced it.
	Ignore bool
	// ShowValues, of a ConfigMap, allows that notifications show its values.
	ShowValues bool
	// TreatAs is what a change of it does: [v1.TreatAsVersioned], [v1.TreatAsRestart] or [v1.TreatAsLive].
	TreatAs string
	// Problem is what cannot be heeded, naming the annotation, its value and the remedy; "" when all can.
	Problem string
}

// Live says that the program reloads the object by itself.
func (s Setting) Live() bool { return s.TreatAs == v1.TreatAsLive }

// Versioned says that in mode pin each revision reads its own copy.
func (s Setting) Versioned() bool { return s.TreatAs == v1.TreatAsVersioned }

// flaggerTracking is Flagger's annotation on a config object; "disabled" keeps Flagger from rolling on it.
const flaggerTracking = "flagger.app/config-tracking"

// SettingOf reads what the metadata of a config object asks for. Where it asks for no treatment, a ConfigMap is versioned; a
// Secret is not, because a credential that was rotated must not come back with an older revision, and for the same reason
// neither is a trust bundle that something in the cluster injects. A Secret that the cluster fills with the token of a service
// account is no configuration: it is ignored, as are the tokens that pods project.
func SettingOf(kind workload.ObjectKind, m metav1.Object) Setting {
	s := Setting{TreatAs: v1.TreatAsVersioned}
	if kind == workload.Secret || injected(m) {
		s.TreatAs = v1.TreatAsRestart
	}
	annotations := m.GetAnnotations()
	s.Ignore, s.Problem = flag(annotations, v1.AnnotationIgnore)
	if _, token := annotations[corev1.ServiceAccountNameKey]; token && kind == workload.Secret {
		s.Ignore = true
	}
	shown, wrong := flag(annotations, v1.AnnotationShowValues)
	s.ShowValues = shown && kind == workload.ConfigMap
	s.Problem = strings.TrimPrefix(s.Problem+semicolon(wrong), "; ")
	switch value, ok := annotations[v1.AnnotationTreatAs]; {
	case !ok:
		if annotations[flaggerTracking] == "disabled" {
			s.TreatAs = v1.TreatAsLive
		}
	case value == v1.TreatAsVersioned, value == v1.TreatAsRestart, value == v1.TreatAsLive:
		s.TreatAs = value
	default:
		s.Problem = strings.TrimPrefix(s.Problem+semicolon(fmt.Sprintf("%s: %q is no treatment and is disregarded; write %q, %q or %q",
			v1.AnnotationTreatAs, value, v1.TreatAsVersioned, v1.TreatAsRestart, v1.TreatAsLive)), "; ")
	}
	return s
}

// semicolon puts one before a text that is not empty.
func semicolon(text string) string {
	if text == "" {
		return ""
	}
	return "; " + text
}

// trustBundles are the ConfigMaps in which tools put the certificates to trust into every namespace: Istio, OpenShift's
// service CA and Linkerd.
var trustBundles = map[string]bool{
	"istio-ca-root-cert": true, "openshift-service-ca.crt": true, "linkerd-identity-trust-roots": true,
}

// injected reports whether something in the cluster keeps a trust bundle in the object: one of those known by name, or one that
// trust-manager (its label on targets) or OpenShift (its label and annotation that ask for it) fills.
func injected(m metav1.Object) bool {
	_, trustManager := m.GetLabels()["trust.cert-manager.io/bundle"]
	return trustManager || trustBundles[m.GetName()] ||
		m.GetLabels()["config.openshift.io/inject-trusted-cabundle"] == "true" ||
		m.GetAnnotations()["service.beta.openshift.io/inject-cabundle"] == "true"
}
