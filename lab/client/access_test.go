package client_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"tidemark.dev/tidemark/lab/sample"
	"tidemark.dev/tidemark/lab/wire"
)

func execAndLogs(s *site) {
	s.setConfig("conf", "MODE=v1", "app.conf=rules=one\n")
	s.apply(web)
	s.rolledOut("deployment/web")
	pod := s.running("web-", "app")[0].Pod
	s.equal("log", s.kubectl("logs", pod), "loaded MODE=\"v1\" rules=\"one\"\nready\n")
	s.equal("cat", s.kubectl("exec", pod, "--", "cat", "/cfg/app.conf"), "rules=one\n")
	if env := s.kubectl("exec", pod, "--", "env"); !strings.Contains(env, "MODE=v1\n") {
		s.Errorf("env prints %s", env)
	}
	_, _, err := s.lab.Kubectl(s.Context(), "--namespace", s.namespace, "exec", pod, "--", "vi")
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 127 {
		s.Errorf("a command that is not there: %v", err)
	}
	s.kubectl("exec", pod, "--", "/sample", "exit", "9")
	s.theStart(pod, "app", 1)
	s.equal("exit code", *s.theStart(pod, "app", 0).ExitCode, int32(9))
	s.eventually("the log of the run before", func() error {
		out, _, err := s.lab.Kubectl(s.Context(), "--namespace", s.namespace, "logs", "--previous", pod)
		if err != nil || !strings.Contains(out, "told to exit with code 9") {
			return fmt.Errorf("%s %w", out, err)
		}
		return nil
	})
}

func dialPod(s *site) {
	s.setConfig("conf", "MODE=v1", "app.conf=rules=one\n")
	s.apply(web)
	s.rolledOut("deployment/web")
	web := http.Client{Transport: &http.Transport{DialContext: s.lab.DialPod, DisableKeepAlives: true}}
	address := net.JoinHostPort(s.running("web-", "app")[0].PodIP, "8080")
	response, err := web.Get("http://" + address + "/work")
	if err != nil {
		s.Fatal(err)
	}
	defer response.Body.Close()
	var state sample.State
	if err := json.NewDecoder(response.Body).Decode(&state); err != nil {
		s.Fatal(err)
	}
	s.equal("settings", fmt.Sprint(state.Settings), "map[MODE:v1 rules:one]")
	if _, err := s.lab.DialPod(s.Context(), "tcp", "10.1.2.3:80"); err == nil {
		s.Error("dialled an address that no pod has")
	}
}

func requestCounts(s *site) {
	config := s.lab.RESTConfig()
	config.UserAgent = "counted/" + s.namespace
	api, err := kubernetes.NewForConfig(config)
	if err != nil {
		s.Fatal(err)
	}
	maps := api.CoreV1().ConfigMaps(s.namespace)
	if _, err := maps.List(s.Context(), metav1.ListOptions{}); err != nil {
		s.Fatal(err)
	}
	if _, err := maps.Get(s.Context(), "nothing", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		s.Fatal(err)
	}
	watch, err := maps.Watch(s.Context(), metav1.ListOptions{})
	if err != nil {
		s.Fatal(err)
	}
	defer watch.Stop()
	counts := func() (list []wire.Request) {
		all, err := s.lab.Requests(s.Context())
		if err != nil {
			s.Fatal(err)
		}
		for _, request := range all {
			if request.UserAgent == config.UserAgent {
				list = append(list, request)
			}
		}
		return list
	}
	var got []string
	for _, r := range counts() {
		got = append(got, fmt.Sprintf("%s %s %s %d ×%d writes=%t", r.User, r.Verb, r.Resource, r.Code, r.Count, r.Writes()))
		if r.Bytes == 0 && r.Verb != "watch" {
			s.Errorf("no bytes: %+v", r)
		}
	}
	s.equal("requests", strings.Join(got, "\n"),
		"admin get configmaps 404 ×1 writes=false\nadmin list configmaps 200 ×1 writes=false\nadmin watch configmaps 200 ×1 writes=false")
	if err := maps.Delete(s.Context(), "nothing", metav1.DeleteOptions{}); !apierrors.IsNotFound(err) {
		s.Fatal(err)
	}
	if first := counts()[0]; first.Verb != "delete" || !first.Writes() {
		s.Errorf("the delete is not counted as a write: %+v", first)
	}
}

func serviceAccount(s *site) {
	s.kubectl("create", "serviceaccount", "robot")
	config, err := s.lab.RESTConfigForServiceAccount(s.Context(), s.namespace, "robot")
	if err != nil {
		s.Fatal(err)
	}
	config.UserAgent = "robot/" + s.namespace
	api, err := kubernetes.NewForConfig(config)
	if err != nil {
		s.Fatal(err)
	}
	if _, err := api.CoreV1().Secrets(s.namespace).List(s.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		s.Fatalf("without a role it may list Secrets: %v", err)
	}
	s.kubectl("create", "role", "reader", "--verb=list", "--resource=secrets")
	s.kubectl("create", "rolebinding", "reader", "--role=reader", "--serviceaccount="+s.namespace+":robot")
	s.eventually("the role to count", func() error {
		_, err := api.CoreV1().Secrets(s.namespace).List(s.Context(), metav1.ListOptions{})
		return err
	})
	all, err := s.lab.Requests(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	codes := map[int]bool{}
	for _, r := range all {
		if r.UserAgent == config.UserAgent && r.User == "system:serviceaccount:"+s.namespace+":robot" && r.Resource == "secrets" {
			codes[r.Code] = true
		}
	}
	s.equal("codes", fmt.Sprint(codes), "map[200:true 403:true]")
}

// kubeletEvents fails when the event recorder is not handed to the kubelet, which hangs on the order of statements
// in Kubernetes 1.37: see withholdRecorder in lab/cluster/node.
func kubeletEvents(s *site) {
	s.apply("apiVersion: v1\nkind: Pod\nmetadata: {name: quiet}\nspec: {containers: [{name: app, image: anything}]}\n")
	s.eventually("an event of the kubelet", func() error {
		events, err := s.api.CoreV1().Events(s.namespace).List(s.Context(), metav1.ListOptions{FieldSelector: "reason=Started"})
		if err != nil {
			return err
		}
		for _, event := range events.Items {
			if event.Source.Component == "kubelet" && event.InvolvedObject.Name == "quiet" {
				return nil
			}
		}
		return fmt.Errorf("%d events", len(events.Items))
	})
}
