package client_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidemark.dev/tidemark/lab/client/labtest"
	"tidemark.dev/tidemark/lab/sample"
	"tidemark.dev/tidemark/lab/wire"
)

// annotate changes the pod template, which makes a new revision.
func (s *site) annotate(workload, value string) {
	s.Helper()
	s.kubectl("patch", workload, "--patch", fmt.Sprintf(`{"spec": {"template": {"metadata": {"annotations": {"change": %q}}}}}`, value))
}

// waitingFor returns nil when a pod with the label app has a container that waits for the reason.
func (s *site) waitingFor(app, reason string) error {
	pods, err := s.api.CoreV1().Pods(s.namespace).List(s.Context(), metav1.ListOptions{LabelSelector: "app=" + app})
	if err != nil {
		return err
	}
	var seen []string
	for _, pod := range pods.Items {
		for _, status := range pod.Status.ContainerStatuses {
			if status.State.Waiting != nil {
				seen = append(seen, status.State.Waiting.Reason)
			}
		}
	}
	if !slices.Contains(seen, reason) {
		return fmt.Errorf("containers wait for %v", seen)
	}
	return nil
}

func rollingUpdate(s *site) {
	s.setConfig("conf", "MODE=v1", "app.conf=rules=one\n")
	s.apply(web)
	s.rolledOut("deployment/web")
	s.setConfig("conf", "MODE=v2", "app.conf=rules=two\n")
	s.annotate("deployment/web", "2")
	s.rolledOut("deployment/web")
	s.eventually("only the new pods", func() error { return s.podsReady("web", 2) })
	for _, c := range s.running("web-", "app") {
		s.equal("environment", c.Env("MODE"), "v2")
	}
	s.kubectl("rollout", "undo", "deployment/web")
	s.rolledOut("deployment/web")
	s.eventually("only the old revision's pods", func() error { return s.podsReady("web", 2) })
	s.equal("starts", len(s.starts("web-", "app")), 6)
	s.equal("revision", strings.TrimSpace(s.kubectl("get", "deployment", "web", "-o",
		`jsonpath={.metadata.annotations.deployment\.kubernetes\.io/revision}`)), "3")
}

func badConfiguration(s *site) {
	s.setConfig("conf", "MODE=v1", "app.conf=rules=one\n")
	s.apply(web)
	s.rolledOut("deployment/web")
	old := s.running("web-", "app")
	s.setConfig("conf", "MODE=v1", "app.conf=rulez=two\n")
	s.annotate("deployment/web", "2")
	s.eventually("a crash loop", func() error {
		if err := s.waitingFor("web", "CrashLoopBackOff"); err != nil {
			return err
		}
		crashes := 0
		for _, start := range s.starts("web-", "app") {
			if start.ExitCode != nil && *start.ExitCode == sample.ExitConfig {
				crashes++
			}
		}
		if crashes < 3 {
			return fmt.Errorf("%d crashes", crashes)
		}
		return nil
	})
	last := s.starts("web-", "app")[len(old)]
	s.equal("termination message", last.Message, `FATAL unknown setting "rulez" in /cfg/app.conf`)
	s.equal("log", s.kubectl("logs", last.Pod), last.Message+"\n")
	s.equal("pods that serve", s.kubectl("get", "deployment", "web", "-o", "jsonpath={.status.availableReplicas}"), "2")
	for _, c := range old {
		s.equal("state of "+c.Pod, len(s.running(c.Pod, "app")), 1)
	}
	s.setConfig("conf", "MODE=v1", "app.conf=rules=three\n")
	s.rolledOut("deployment/web")
}

func drainWithBudget(s *site) {
	s.setConfig("conf", "MODE=v1", "app.conf=rules=one\n")
	s.apply(strings.Replace(web, "replicas: 2", "replicas: 4", 1))
	s.apply(`
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec: {minAvailable: 3, selector: {matchLabels: {app: web}}}
`)
	s.rolledOut("deployment/web")
	node := s.running("web-", "app")[0].Node
	s.eventually("the budget to be counted", func() error {
		budget, err := s.api.PolicyV1().PodDisruptionBudgets(s.namespace).Get(s.Context(), "web", metav1.GetOptions{})
		if err != nil {
			return err
		}
		return labtest.Equal("disruptions allowed", budget.Status.DisruptionsAllowed, 1)
	})
	// Only this namespace's pods: other tests use the node as well. The label is the namespace's own.
	s.kubectl("label", "pods", "-l", "app=web", "drain="+s.namespace)
	s.kubectl("drain", node, "--ignore-daemonsets", "--pod-selector=drain="+s.namespace, "--timeout="+labtest.Patience.String())
	defer s.kubectl("uncordon", node)
	s.rolledOut("deployment/web")
	s.eventually("four pods ready", func() error { return s.podsReady("web", 4) })
	for _, c := range s.running("web-", "app") {
		if c.Node == node {
			s.Errorf("%s still runs on %s", c.Pod, node)
		}
	}
}

func delays(s *site) {
	s.setConfig("conf", "MODE=v1", "app.conf=rules=one\n")
	hold := func(prefix string, stage wire.Stage) {
		selector := wire.Selector{Namespace: s.namespace, PodPrefix: prefix}
		if err := s.lab.Delay(s.Context(), wire.Delay{Selector: selector, Stage: stage, Duration: labtest.Patience}); err != nil {
			s.Fatal(err)
		}
	}
	hold("before-environment-", wire.BeforeEnvironment)
	hold("before-start-", wire.BeforeStart)
	named := func(name string) string {
		return strings.ReplaceAll(strings.Replace(web, "replicas: 2", "replicas: 1", 1), "web", name)
	}
	s.apply(named("free"))
	s.apply(named("before-environment"))
	s.apply(named("before-start"))
	s.rolledOut("deployment/free")
	s.eventually("both pods to be held", func() error {
		return errors.Join(s.hasEvent("Pulling", "before-environment-"), s.hasEvent("Created", "before-start-"))
	})
	s.setConfig("conf", "MODE=v2", "app.conf=rules=two\n")
	s.eventually("a file to change", func() error {
		return labtest.Equal("the file", s.running("free-", "app")[0].FileNow("/cfg/app.conf"), "rules=two\n")
	})
	s.equal("starts that are held", len(s.starts("before-", "app")), 0)
	if err := s.lab.ClearDelays(s.Context()); err != nil {
		s.Fatal(err)
	}
	s.rolledOut("deployment/before-environment")
	s.rolledOut("deployment/before-start")
	late := s.theStart("before-environment-", "app", 0)
	s.equal("environment read after the edit", late.Env("MODE"), "v2")
	early := s.theStart("before-start-", "app", 0)
	s.equal("environment read before the edit", early.Env("MODE"), "v1")

	refused := wire.Delay{Selector: wire.Selector{Container: "app"}, Stage: wire.BeforeEnvironment}
	if err := s.lab.Delay(s.Context(), refused); err == nil {
		s.Error("a delay before the environment took a container")
	}
}

// hasEvent returns nil when a pod with the prefix has an event with the reason.
func (s *site) hasEvent(reason, podPrefix string) error {
	events, err := s.api.CoreV1().Events(s.namespace).List(s.Context(), metav1.ListOptions{FieldSelector: "reason=" + reason})
	if err != nil {
		return err
	}
	for _, event := range events.Items {
		if strings.HasPrefix(event.InvolvedObject.Name, podPrefix) {
			return nil
		}
	}
	return fmt.Errorf("no event %s of %s*", reason, podPrefix)
}
