package client_test

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidemark.dev/tidemark/lab/client"
	"tidemark.dev/tidemark/lab/client/labtest"
	"tidemark.dev/tidemark/lab/wire"
)

// nodeIs returns nil when the node's Ready condition has the status.
func (s *site) nodeIs(name string, want v1.ConditionStatus) error {
	node, err := s.api.CoreV1().Nodes().Get(s.Context(), name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == v1.NodeReady {
			return labtest.Equal("Ready of "+name, condition.Status, want)
		}
	}
	return fmt.Errorf("%s has no Ready condition", name)
}

func TestPartitionedNodeRestartsContainersFromItsCache(t *testing.T) {
	lab := labtest.Start(t, client.Options{Nodes: 2, NodeMonitorGracePeriod: 9 * time.Second, EvictionDelay: 2 * time.Second})
	s := newSite(t, lab, "cut")
	s.setConfig("conf", "MODE=v1", "app.conf=rules=one\n")
	s.apply(web)
	s.rolledOut("deployment/web")
	victim := s.running("web-", "app")[0]
	if err := lab.Partition(t.Context(), victim.Node); err != nil {
		t.Fatal(err)
	}
	s.setConfig("conf", "MODE=v2", "app.conf=rules=two\n")
	s.exit(victim.Pod, "app", 1)
	second := s.theStart(victim.Pod, "app", 1)
	s.equal("environment from the cache", second.Env("MODE"), "v1")
	s.eventually("the node to be NotReady", func() error { return s.nodeIs(victim.Node, v1.ConditionUnknown) })
	s.eventually("the other node to replace the pod", func() error {
		starts, err := lab.Record(t.Context(), wire.Filter{Since: second.Seq, Selector: s.selector("web-", "app")})
		if err != nil || len(starts) == 0 {
			return fmt.Errorf("%d starts %w", len(starts), err)
		}
		return labtest.Equal("environment", starts[0].Env("MODE"), "v2")
	})
	s.equal("containers on the lost node", len(s.running(victim.Pod, "app")), 1)
	if err := lab.Heal(t.Context(), victim.Node); err != nil {
		t.Fatal(err)
	}
	s.eventually("the node to be Ready", func() error { return s.nodeIs(victim.Node, v1.ConditionTrue) })
	s.eventually("the evicted pod to end", func() error { return s.podsReady("web", 2) })
	if err := lab.Partition(t.Context(), "node-9"); err == nil {
		t.Error("partitioned a node that is not there")
	}
}
