package acceptance

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	v1 "tidemark.dev/tidemark/api/v1"
)

func TestABundleThatManyReadRollsAFewAtATimeUntilAllHaveRolled(t *testing.T) {
	const n, atOnce = 6, 2
	v := alone(t)
	v.control(fmt.Sprintf("--max-rolling=%d", atOnce))
	s := v.open("bundle", v1.ModeRoll)
	manifest := webConfig
	var workloads []string
	for i := range n {
		name := fmt.Sprintf("deployment/web-%d", i)
		workloads = append(workloads, name)
		manifest += program(name, 1, readsWeb)
	}
	s.apply(manifest)
	s.rolledOut(workloads...)
	s.known(workloads...)

	s.set("web", "MODE", "two")

	most := 0
	s.eventually("all to have rolled", func() error {
		rolling, left := 0, 0
		for _, name := range workloads {
			switch u := s.get(name); {
			case stampOn(u, templatePath(name)) == "":
				left++
			case !rolloutDone(u):
				rolling++
			}
		}
		most = max(most, rolling)
		if rolling+left > 0 {
			return fmt.Errorf("%d roll and %d wait", rolling, left)
		}
		return nil
	})
	// The Deployments are read one after the other, in which time one that was read as rolling can have made room for the next.
	if most > atOnce+1 {
		t.Errorf("at one time %d rolled, want %d at most", most, atOnce)
	}
	s.loads(mode, map[string]int{"two": n})
}

// rolloutDone reports whether every pod of a Deployment is of its newest revision.
func rolloutDone(u *unstructured.Unstructured) bool {
	number := func(fields ...string) int64 {
		n, _, _ := unstructured.NestedInt64(u.Object, fields...)
		return n
	}
	return number("status", "observedGeneration") >= u.GetGeneration() &&
		number("status", "updatedReplicas") == number("spec", "replicas") &&
		number("status", "replicas") == number("status", "updatedReplicas")
}

// release is a Helm release that is being upgraded, as Helm records it.
const release = `---
apiVersion: v1
kind: Secret
metadata:
  name: sh.helm.release.v1.shop.v2
  labels: {owner: helm, name: shop, status: pending-upgrade, version: "2"}
type: helm.sh/release.v1
stringData: {release: not read}
`

func TestARolloutWaitsForTheHelmReleaseThatOwnsTheWorkload(t *testing.T) {
	turn(t)
	s := openRolling(t, "helm")
	s.apply(webConfig + release + program("deployment/web", 0, readsWeb))
	s.kubectl("annotate", "deployment/web", "meta.helm.sh/release-name=shop", "meta.helm.sh/release-namespace="+s.Namespace)
	s.known("deployment/web")

	s.set("web", "MODE", "two")
	s.tells("deployment/web", "Held", "Helm release")
	if stamp := s.stamp("deployment/web"); stamp != "" {
		t.Errorf("it was stamped %q while its release is pending", stamp)
	}

	s.kubectl("label", "secret", "sh.helm.release.v1.shop.v2", "status=deployed", "--overwrite")
	s.stampedAgain("deployment/web", "")
	s.caughtUp()
	s.revisionsAre("deployment/web", 2)
}
