package client_test

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"tidemark.dev/tidemark/lab/client/labtest"
)

func editInPlace(s *site) {
	s.setConfig("conf", "MODE=v1", "app.conf=rules=one\n")
	s.apply(web)
	s.rolledOut("deployment/web")
	s.setConfig("conf", "MODE=v2", "app.conf=rules=two\n")
	s.eventually("the mounted files to change", func() error {
		for _, c := range s.running("web-", "app") {
			if err := labtest.Equal("the file of "+c.Pod, c.FileNow("/cfg/app.conf"), "rules=two\n"); err != nil {
				return err
			}
		}
		return nil
	})
	containers := s.running("web-", "app")
	s.equal("count of containers", len(containers), 2)
	for _, c := range containers {
		s.equal("environment", c.Env("MODE"), "v1")
		s.equal("file as read at the start", c.File("/cfg/app.conf"), "rules=one\n")
		s.equal("subPath file", c.FileNow("/pinned/app.conf"), "rules=one\n")
		s.equal("attempt", c.Attempt, uint32(0))
	}
}

func exitReadsAnew(s *site) {
	s.setConfig("conf", "MODE=v1", "app.conf=rules=one\n")
	s.apply(web)
	s.rolledOut("deployment/web")
	s.setConfig("conf", "MODE=v2", "app.conf=rules=two\n")
	s.eventually("the mounted files to change", func() error {
		for _, c := range s.running("web-", "app") {
			if err := labtest.Equal("the file of "+c.Pod, c.FileNow("/cfg/app.conf"), "rules=two\n"); err != nil {
				return err
			}
		}
		return nil
	})
	pod := s.running("web-", "app")[0].Pod
	s.exit(pod, "app", 3)
	second := s.theStart(pod, "app", 1)
	s.equal("environment", second.Env("MODE"), "v2")
	s.equal("file", second.File("/cfg/app.conf"), "rules=two\n")
	s.equal("subPath file", second.File("/pinned/app.conf"), "rules=two\n")
	first := s.theStart(pod, "app", 0)
	if first.ExitCode == nil {
		s.Fatal("the first start has no exit code")
	}
	s.equal("exit code", *first.ExitCode, int32(3))
	for _, order := range []bool{
		!first.Started.Before(first.Created), !first.Read.Before(first.Started), !first.Finished.Before(first.Read),
		!second.Created.Before(first.Finished), second.Seq > first.Seq,
	} {
		if !order {
			s.Errorf("times are out of order: %+v %+v", first, second)
		}
	}
	for _, other := range s.running("web-", "app") {
		if other.Pod != pod {
			s.equal("environment of the other pod", other.Env("MODE"), "v1")
		}
	}
	s.eventually("both pods ready", func() error { return s.podsReady("web", 2) })
}

func projectedVolumes(s *site) {
	s.setConfig("conf", "app.conf=rules=one\n", "other=x")
	s.kubectl("create", "secret", "generic", "login", "--from-literal=user=ann", "--from-literal=password=p=1")
	s.apply(`
apiVersion: v1
kind: Pod
metadata: {name: reader, labels: {app: reader}}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: app
    image: anything
    env: [{name: PASSWORD, valueFrom: {secretKeyRef: {name: login, key: password}}}]
    volumeMounts:
    - {name: all, mountPath: /all}
    - {name: secret, mountPath: /secret}
    - {name: secret, mountPath: /one/user, subPath: user}
    - {name: absent, mountPath: /absent}
    - {name: scratch, mountPath: /scratch}
  volumes:
  - name: all
    projected:
      sources:
      - configMap: {name: conf, items: [{key: app.conf, path: deep/er/app.conf}]}
      - secret: {name: login, items: [{key: user, path: user}]}
  - {name: secret, secret: {secretName: login}}
  - {name: absent, configMap: {name: not-there, optional: true}}
  - {name: scratch, emptyDir: {}}
`)
	start := s.theStart("reader", "app", 0)
	s.equal("environment", start.Env("PASSWORD"), "p=1")
	var files []string
	for path, content := range start.Files {
		files = append(files, fmt.Sprintf("%s: %s", path, strings.TrimSpace(string(content))))
	}
	slices.Sort(files)
	s.equal("the files", strings.Join(files, "\n"), strings.Join([]string{
		"/all/deep/er/app.conf: rules=one",
		"/all/user: ann",
		"/one/user: ann",
		"/secret/password: p=1",
		"/secret/user: ann",
	}, "\n"))
}

func reloadingProcess(s *site) {
	s.setConfig("conf", "MODE=v1", "app.conf=rules=one\n")
	s.apply(strings.Replace(web, "--require=MODE", "--require=MODE, --reload", 1))
	s.rolledOut("deployment/web")
	s.setConfig("conf", "MODE=v1", "app.conf=rules=two\n")
	pod := s.running("web-", "app")[0].Pod
	s.eventually("a reload in the log", func() error {
		log, err := s.api.CoreV1().Pods(s.namespace).GetLogs(pod, &v1.PodLogOptions{}).DoRaw(s.Context())
		if err != nil || !strings.Contains(string(log), `reloaded MODE="v1" rules="two"`) {
			return fmt.Errorf("log: %s %w", log, err)
		}
		return nil
	})
	s.equal("the file as read at the start", s.starts("web-", "app")[0].File("/cfg/app.conf"), "rules=one\n")
}

func missingKey(s *site) {
	s.setConfig("conf", "app.conf=rules=one\n")
	s.apply(web)
	s.eventually("a configuration error", func() error { return s.waitingFor("web", "CreateContainerConfigError") })
	s.equal("starts", len(s.starts("web-", "app")), 0)
	s.setConfig("conf", "MODE=v1", "app.conf=rules=one\n")
	s.rolledOut("deployment/web")
}

func livenessRestart(s *site) {
	s.setConfig("conf", "MODE=v1", "app.conf=rules=one\n")
	s.apply(web)
	s.kubectl("patch", "deployment", "web", "--patch", `{"spec": {"template": {"spec": {"containers": [{"name": "app",
		"livenessProbe": {"exec": {"command": ["/sample", "fresh"]}, "periodSeconds": 1, "failureThreshold": 1}}]}}}}`)
	s.rolledOut("deployment/web")
	s.eventually("only the new pods", func() error { return s.podsReady("web", 2) })
	s.setConfig("conf", "MODE=v1", "app.conf=rules=two\n")
	second := s.theStart(s.running("web-", "app")[0].Pod, "app", 1)
	s.equal("file", second.File("/cfg/app.conf"), "rules=two\n")
}
