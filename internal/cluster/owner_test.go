package cluster

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/workload"
)

func TestOwnerIsTheFirstThatIsNamed(t *testing.T) {
	t.Parallel()
	says := func(owner string) map[string]string { return map[string]string{v1.AnnotationOwner: owner} }
	for name, c := range map[string]struct {
		sources []map[string]string
		want    string
		problem bool
	}{
		"nobody":                            {[]map[string]string{nil, {}}, "", false},
		"the workload before its namespace": {[]map[string]string{says("mail"), says("platform")}, "mail", false},
		"the namespace, where nothing else": {[]map[string]string{says("  "), nil, says("platform")}, "platform", false},
		"a name that is no label":           {[]map[string]string{says(strings.Repeat("x", 64)), says("platform")}, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, err := OwnerOf(c.sources...); got != c.want || (err != nil) != c.problem {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

func TestValuesOfSecretsAreNeverShown(t *testing.T) {
	t.Parallel()
	m := &metav1.ObjectMeta{Annotations: map[string]string{v1.AnnotationShowValues: v1.True}}
	if !SettingOf(workload.ConfigMap, m).ShowValues || SettingOf(workload.Secret, m).ShowValues {
		t.Error("want those of ConfigMaps shown, and those of Secrets not")
	}
	m.Annotations[v1.AnnotationShowValues] = "yes"
	if s := SettingOf(workload.ConfigMap, m); s.ShowValues || !strings.Contains(s.Problem, v1.AnnotationShowValues) {
		t.Errorf("got %+v", s)
	}
}
