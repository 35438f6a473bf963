package revision

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestContentOfAnObject(t *testing.T) {
	for name, tc := range map[string]struct {
		object runtime.Object
		want   Content
	}{
		"a ConfigMap": {
			&corev1.ConfigMap{Data: map[string]string{"a": "1"}, BinaryData: map[string][]byte{"b": {2}}},
			Content{Present: true, Data: map[string][]byte{"a": []byte("1"), "b": {2}}, Binary: map[string]bool{"b": true}},
		},
		"a Secret, which keeps bytes in its data": {
			&corev1.Secret{Data: map[string][]byte{"a": {1}}},
			Content{Present: true, Data: map[string][]byte{"a": {1}}, Binary: map[string]bool{}},
		},
		"one that is empty, and yet there": {&corev1.ConfigMap{}, Content{Present: true, Data: map[string][]byte{}, Binary: map[string]bool{}}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, ContentOf(tc.object)); diff != "" {
				t.Errorf("content (-want +got):\n%s", diff)
			}
		})
	}
}
