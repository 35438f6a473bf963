package app

import (
	"testing"

	"k8s.io/apimachinery/pkg/fields"

	"tidemark.dev/tidemark/internal/helmrecord"
)

// Whoever may write a Secret may label it as Helm's: rollouts would wait for it. Its type is not so easily mistaken.
func TestSecretsOfOtherTypesAreNotWatchedAsRecords(t *testing.T) {
	kinds := ofHelmsType()
	if len(kinds) != 1 {
		t.Fatalf("%d kinds are selected by type", len(kinds))
	}
	for o, by := range kinds {
		if gvk := o.GetObjectKind().GroupVersionKind(); gvk.Kind != "Secret" || gvk.Version != "v1" {
			t.Errorf("by type are selected %s", gvk)
		}
		if by.Label != nil {
			t.Error("the selector of labels is overridden")
		}
		if !by.Field.Matches(fields.Set{"type": string(helmrecord.SecretType)}) || by.Field.Matches(fields.Set{"type": "Opaque"}) {
			t.Errorf("selected are %s", by.Field)
		}
	}
}
