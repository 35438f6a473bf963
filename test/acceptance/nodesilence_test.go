package acceptance

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/lab/client"
	"tidemark.dev/tidemark/lab/client/labtest"
	"tidemark.dev/tidemark/test/scenario"
)

const silentNode = "node-1"

// silentManifest is a service whose pods are on one node.
const silentManifest = `
apiVersion: v1
kind: ConfigMap
metadata: {name: conf}
data: {MODE: one}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      nodeSelector: {kubernetes.io/hostname: ` + silentNode + `}
      terminationGracePeriodSeconds: 1
      containers:
      - name: app
        image: tidemark-sample
        command: [/sample]
        envFrom: [{configMapRef: {name: conf}}]
`

// A kubelet that is back may give a new pod what it knew before it was cut off, of an object that another pod there uses. The node was
// never seen to be not ready.
func TestWhatAPodReadsOnANodeThatWasCutOffUnnoticedIsNotKnown(t *testing.T) {
	turn(t)
	v := venue{t, labtest.Start(t, client.Options{Nodes: 2})} // whose nodes are soon missed
	if err := scenario.Install(t.Context(), v.lab); err != nil {
		t.Fatal(err)
	}
	v.watchful()
	s := v.open("silence", "")
	s.apply(silentManifest)
	s.rolledOut("deployment/web")
	first := s.verdict("deployment/web", "in-step").Pods[0].Name

	s.must(s.Aged(t.Context(), 10*time.Second))
	s.must(s.Lab.Partition(t.Context(), silentNode))
	s.set("conf", "MODE", "two")
	s.kubectl("scale", "deployment/web", "--replicas=2")
	s.eventually("the node's silence to be known", func() error {
		silences, err := cluster.ReadSilences(t.Context(), s.API, scenario.SystemNamespace)
		if err == nil && len(silences[silentNode]) == 0 {
			err = fmt.Errorf("known are %v", silences)
		}
		return err
	})
	s.must(s.Lab.Heal(t.Context(), silentNode))
	s.rolledOut("deployment/web")

	for _, pod := range s.verdict("deployment/web", "unknown").Pods {
		loaded := pod.Containers[0].Loaded[0]
		if pod.Name == first {
			if loaded.Evidence != "inferred" || !pod.Behind {
				t.Errorf("of the pod that was there before, evidence is %s: %s; want it known, and behind", loaded.Evidence, loaded.Why)
			}
			continue
		}
		if loaded.Evidence != "unknown" || !strings.Contains(loaded.Why, silentNode+" gave no sign of life") {
			t.Errorf("of the pod that came meanwhile, evidence is %s: %s; want it unknown, with the node's silence", loaded.Evidence, loaded.Why)
		}
	}
}
