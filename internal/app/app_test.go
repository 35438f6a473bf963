package app

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"

	"tidemark.dev/tidemark/internal/helmrecord"
)

// A Secret that the cache leaves out looks absent, and a workload that requires it would never roll again.
func TestTheCacheHasEverySecretThatAPodMayRead(t *testing.T) {
	for kind, want := range map[corev1.SecretType]bool{
		corev1.SecretTypeOpaque:              true,
		corev1.SecretTypeTLS:                 true,
		corev1.SecretTypeDockerConfigJson:    true,
		corev1.SecretTypeServiceAccountToken: true,
		helmrecord.SecretType:                false,
	} {
		if got := configSecrets().Matches(fields.Set{"type": string(kind)}); got != want {
			t.Errorf("of type %s: cached %t, want %t", kind, got, want)
		}
	}
}
