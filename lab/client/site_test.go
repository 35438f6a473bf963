package client_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"tidemark.dev/tidemark/lab/client"
	"tidemark.dev/tidemark/lab/client/labtest"
	"tidemark.dev/tidemark/lab/wire"
)

// site is a namespace of a lab, for one test.
type site struct {
	testing.TB
	lab       *client.Lab
	api       kubernetes.Interface
	namespace string
}

func newSite(t testing.TB, lab *client.Lab, namespace string) *site {
	t.Helper()
	api, err := kubernetes.NewForConfig(lab.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	s := &site{TB: t, lab: lab, api: api, namespace: namespace}
	labtest.Kubectl(t, lab, "create", "namespace", namespace)
	return s
}

// kubectl runs kubectl in the namespace.
func (s *site) kubectl(args ...string) string {
	s.Helper()
	return labtest.Kubectl(s, s.lab, append([]string{"--namespace", s.namespace}, args...)...)
}

func (s *site) apply(manifest string) {
	s.Helper()
	if _, _, err := s.lab.KubectlWithInput(s.Context(), manifest, "--namespace", s.namespace, "apply", "-f", "-"); err != nil {
		s.Fatal(err)
	}
}

// setConfig makes or changes a ConfigMap by a list of key=value.
func (s *site) setConfig(name string, pairs ...string) {
	s.Helper()
	manifest := fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata:\n", name)
	for _, pair := range pairs {
		key, value, _ := strings.Cut(pair, "=")
		manifest += fmt.Sprintf("  %q: %q\n", key, value)
	}
	s.apply(manifest)
}

func (s *site) rolledOut(workload string) {
	s.Helper()
	s.kubectl("rollout", "status", workload, "--timeout="+labtest.Patience.String())
}

func (s *site) starts(podPrefix, container string) []wire.Start {
	s.Helper()
	starts, err := s.lab.Record(s.Context(), wire.Filter{Selector: s.selector(podPrefix, container)})
	if err != nil {
		s.Fatal(err)
	}
	return starts
}

func (s *site) running(podPrefix, container string) []wire.Container {
	s.Helper()
	containers, err := s.lab.Containers(s.Context(), s.selector(podPrefix, container))
	if err != nil {
		s.Fatal(err)
	}
	return containers
}

func (s *site) selector(podPrefix, container string) wire.Selector {
	return wire.Selector{Namespace: s.namespace, PodPrefix: podPrefix, Container: container}
}

func (s *site) exit(podPrefix, container string, code int32) {
	s.Helper()
	count, err := s.lab.Exit(s.Context(), s.selector(podPrefix, container), code)
	if err != nil {
		s.Fatal(err)
	}
	if count == 0 {
		s.Fatalf("no container %s of %s* is running", container, podPrefix)
	}
}

// theStart waits for the one start that is the attempt of a container.
func (s *site) theStart(podPrefix, container string, attempt uint32) wire.Start {
	s.Helper()
	var found wire.Start
	s.eventually(fmt.Sprintf("start %d of %s in %s*", attempt, container, podPrefix), func() error {
		for _, start := range s.starts(podPrefix, container) {
			if start.Attempt == attempt {
				found = start
				return nil
			}
		}
		return errors.New("not yet")
	})
	return found
}

func (s *site) eventually(what string, check func() error) {
	s.Helper()
	labtest.Eventually(s, what, check)
}

// podsReady returns an error unless exactly count pods with the label app are there, not deleted, and ready.
func (s *site) podsReady(app string, count int) error {
	pods, err := s.api.CoreV1().Pods(s.namespace).List(s.Context(), metav1.ListOptions{LabelSelector: "app=" + app})
	if err != nil {
		return err
	}
	ready := 0
	for _, pod := range pods.Items {
		for _, condition := range pod.Status.Conditions {
			if condition.Type == "Ready" && condition.Status == "True" && pod.DeletionTimestamp == nil {
				ready++
			}
		}
	}
	if ready != count || len(pods.Items) != count {
		return fmt.Errorf("%d of %d pods of %s are ready, want %d", ready, len(pods.Items), app, count)
	}
	return nil
}

func (s *site) equal(what string, got, want any) {
	s.Helper()
	if got != want {
		s.Errorf("%s is %v, want %v", what, got, want)
	}
}

// web is a Deployment that reads the ConfigMap conf in each way there is.
const web = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  progressDeadlineSeconds: 600
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: app
        image: sample:1.0
        command: [/sample]
        args: [--require=MODE, --know=rules, --file=/cfg/app.conf, --http=8080]
        env: [{name: MODE, valueFrom: {configMapKeyRef: {name: conf, key: MODE}}}]
        ports: [{containerPort: 8080}]
        readinessProbe: {exec: {command: [/sample, ready]}, periodSeconds: 1}
        volumeMounts:
        - {name: cfg, mountPath: /cfg}
        - {name: cfg, mountPath: /pinned/app.conf, subPath: app.conf}
      volumes:
      - name: cfg
        configMap: {name: conf, items: [{key: app.conf, path: app.conf}]}
`
