package acceptance

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"
)

func TestOthersThatApplyTheirManifestAgainNeitherRemoveTheStampNorRollAnything(t *testing.T) {
	t.Parallel()
	for name, flags := range map[string][]string{
		"client-side": {"apply", "-f", "-"},
		"server-side": {"apply", "-f", "-", "--server-side", "--field-manager=gitops"},
		"forced":      {"apply", "-f", "-", "--server-side", "--field-manager=gitops", "--force-conflicts"},
	} {
		t.Run(name, func(t *testing.T) {
			turn(t)
			s := openRolling(t, "applied-"+name)
			manifest := program("deployment/web", 0, readsWeb)
			sync := func() {
				t.Helper()
				_, _, err := s.Lab.KubectlWithInput(t.Context(), manifest, append(slices.Clone(flags), "-n", s.Namespace)...)
				s.must(err)
			}
			s.apply(webConfig)
			sync()
			s.known("deployment/web")
			s.set("web", "MODE", "two")
			stamp := s.stampedAgain("deployment/web", "")

			for range 10 {
				sync()
			}

			s.caughtUp()
			if now := s.stamp("deployment/web"); now != stamp {
				t.Errorf("the stamp is %q, it was %q", now, stamp)
			}
			s.revisionsAre("deployment/web", 2)
		})
	}
}

func TestAWriterThatGetsInBetweenLosesNothingAndTheChangeRollsAllTheSame(t *testing.T) {
	turn(t)
	s := openRolling(t, "conflict")
	s.apply(webConfig + program("deployment/web", 0, readsWeb))
	s.known("deployment/web")

	s.set("web", "MODE", "two")
	writes := int64(0)
	for s.stamp("deployment/web") == "" {
		// Each write makes what Tidemark has decided on a state of before.
		writes++
		patch := fmt.Sprintf(`{"spec":{"minReadySeconds":%d}}`, writes)
		s.must(s.API.Patch(t.Context(), s.get("deployment/web"), ctrlclient.RawPatch(types.MergePatchType, []byte(patch))))
	}

	s.caughtUp()
	if got, _, _ := unstructured.NestedInt64(s.get("deployment/web").Object, "spec", "minReadySeconds"); got != writes {
		t.Errorf("minReadySeconds is %d, want the %d of the other writer's last write", got, writes)
	}
	s.revisionsAre("deployment/web", 2)
}
