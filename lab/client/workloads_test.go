package client_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidemark.dev/tidemark/lab/client/labtest"
	"tidemark.dev/tidemark/lab/wire"
)

func containerKinds(s *site) {
	s.apply(`
apiVersion: v1
kind: Pod
metadata: {name: many, labels: {app: many}}
spec:
  terminationGracePeriodSeconds: 1
  initContainers:
  - {name: plain, image: busybox, command: [sh, -c, "echo hello"]}
  - {name: slow, image: sample, command: [/sample], args: [--exit-after=500ms]}
  - {name: side, image: sample, command: [/sample], restartPolicy: Always, startupProbe: {exec: {command: [/sample, ready]}, periodSeconds: 1}}
  - {name: look, image: sample, command: [/sample, cat, /nowhere]}
  containers:
  - {name: app, image: "nginx:1.29", readinessProbe: {exec: {command: [sh, -c, "curl localhost"]}}}
`)
	crash := s.theStart("many", "look", 0)
	s.eventually("the init container that fails to run again", func() error {
		return labtest.Equal("it", len(s.starts("many", "look")) > 1, true)
	})
	s.equal("kind of an init container", crash.Kind, wire.Init)
	s.equal("the app has started", len(s.starts("many", "app")), 0)

	s.kubectl("delete", "pod", "many")
	s.apply(strings.Join([]string{`
apiVersion: v1
kind: Pod
metadata: {name: fine, labels: {app: fine}}
spec:
  terminationGracePeriodSeconds: 1
  initContainers:
  - {name: plain, image: busybox, command: [sh, -c, "echo hello"]}
  - {name: slow, image: sample, command: [/sample], args: [--exit-after=500ms]}
  - {name: side, image: sample, command: [/sample], restartPolicy: Always, startupProbe: {exec: {command: [/sample, ready]}, periodSeconds: 1}}
  containers:
  - {name: app, image: "nginx:1.29", readinessProbe: {exec: {command: [sh, -c, "curl localhost"]}}}
`}, ""))
	s.eventually("the pod to be ready", func() error { return s.podsReady("fine", 1) })
	plain, slow := s.theStart("fine", "plain", 0), s.theStart("fine", "slow", 0)
	side, app := s.theStart("fine", "side", 0), s.theStart("fine", "app", 0)
	s.equal("kinds", fmt.Sprint([]wire.Kind{plain.Kind, slow.Kind, side.Kind, app.Kind}), "[init init sidecar regular]")
	s.equal("running", fmt.Sprint(plain.Running(), slow.Running(), side.Running(), app.Running()), "false false true true")
	s.equal("order", plain.Finished.Before(slow.Created) && slow.Finished.Before(side.Created) && side.Started.Before(app.Created), true)

	s.exit("fine", "side", 1)
	s.eventually("the sidecar to run again", func() error {
		return labtest.Equal("count of sidecars", len(s.running("fine", "side")), 1)
	})
	s.equal("attempt of the sidecar", s.running("fine", "side")[0].Attempt, uint32(1))
	s.equal("attempts of the app", len(s.starts("fine", "app")), 1)
}

func jobs(s *site) {
	s.setConfig("conf", "MODE=v1")
	job := func(name, args string) string {
		return fmt.Sprintf(`
apiVersion: batch/v1
kind: Job
metadata: {name: %s}
spec:
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      containers:
      - {name: app, image: sample, command: [/sample], args: [%s], envFrom: [{configMapRef: {name: conf}}]}
`, name, args)
	}
	s.apply(job("good", "--exit-after=200ms"))
	s.apply(job("bad", "--exit-code=5"))
	s.kubectl("wait", "job/good", "--for=condition=Complete", "--timeout="+labtest.Patience.String())
	s.kubectl("wait", "job/bad", "--for=condition=Failed", "--timeout="+labtest.Patience.String())
	start := s.theStart("good-", "app", 0)
	s.equal("environment", start.Env("MODE"), "v1")
	s.equal("exit code", *s.theStart("bad-", "app", 0).ExitCode, int32(5))
}

func cronJob(s *site) {
	s.apply(`
apiVersion: batch/v1
kind: CronJob
metadata: {name: tick}
spec:
  schedule: "* * * * *"
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never
          containers: [{name: app, image: sample, command: [/sample], args: [--exit-after=10ms]}]
`)
	start := s.theStart("tick-", "app", 0)
	s.eventually("the run to end", func() error {
		return labtest.Equal("state", s.starts(start.Pod, "app")[0].Running(), false)
	})
}

func statefulAndDaemonSet(s *site) {
	set := func(kind, name, more string) string {
		return fmt.Sprintf(`
apiVersion: apps/v1
kind: %s
metadata: {name: %s}
spec:
  %s
  selector: {matchLabels: {app: %s}}
  template:
    metadata: {labels: {app: %s}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - {name: app, image: sample, command: [/sample], readinessProbe: {exec: {command: [/sample, ready]}, periodSeconds: 1}}
`, kind, name, more, name, name)
	}
	s.apply(set("StatefulSet", "store", "replicas: 3\n  serviceName: store"))
	s.apply(set("DaemonSet", "agent", "updateStrategy: {type: RollingUpdate}"))
	s.rolledOut("statefulset/store")
	s.rolledOut("daemonset/agent")
	var pods, nodes []string
	for _, start := range s.starts("store-", "app") {
		pods = append(pods, start.Pod)
	}
	for _, c := range s.running("agent-", "app") {
		nodes = append(nodes, c.Node)
	}
	s.equal("order of the stateful set", fmt.Sprint(pods), "[store-0 store-1 store-2]")
	slices.Sort(nodes)
	s.equal("nodes of the daemon set", fmt.Sprint(nodes), fmt.Sprint(s.lab.Nodes()))
	s.annotate("statefulset/store", "2")
	s.rolledOut("statefulset/store")
}

func serviceEndpoints(s *site) {
	s.setConfig("conf", "MODE=v1", "app.conf=rules=one\n")
	s.apply(web)
	s.apply("apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}\n")
	s.rolledOut("deployment/web")
	s.eventually("both addresses", func() error {
		list, err := s.api.DiscoveryV1().EndpointSlices(s.namespace).List(s.Context(),
			metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=web"})
		if err != nil {
			return err
		}
		var got, want []string
		for _, slice := range list.Items {
			for _, endpoint := range slice.Endpoints {
				if endpoint.Conditions.Ready != nil && *endpoint.Conditions.Ready {
					got = append(got, endpoint.Addresses...)
				}
			}
		}
		for _, c := range s.running("web-", "app") {
			want = append(want, c.PodIP)
		}
		slices.Sort(got)
		slices.Sort(want)
		return labtest.Equal("addresses", fmt.Sprint(got), fmt.Sprint(want))
	})
}

func apiSurface(s *site) {
	out := s.kubectl("get", "--raw", "/apis/admissionregistration.k8s.io/v1")
	var list metav1.APIResourceList
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		s.Fatal(err)
	}
	for _, want := range []string{"mutatingadmissionpolicies", "validatingadmissionpolicies"} {
		if !slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == want }) {
			s.Errorf("the API does not serve %s", want)
		}
	}
	// Aggregated by a controller: empty until it ran.
	s.eventually("the default roles to be aggregated", func() error {
		role, err := s.api.RbacV1().ClusterRoles().Get(s.Context(), "view", metav1.GetOptions{})
		if err != nil {
			return err
		}
		return labtest.Equal("count of rules above a few", len(role.Rules) > 3, true)
	})
}
