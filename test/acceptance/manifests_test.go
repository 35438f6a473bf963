package acceptance

import (
	"fmt"
	"strings"
)

// sample is the fields of a container that runs the sample program and requires MODE.
const sample = `
name: app
image: tidemark-sample
command: [/sample]
args: [--require=MODE]
readinessProbe: {exec: {command: [/sample, ready]}, periodSeconds: 1}
`

// webConfig is the ConfigMap that most scenes turn on.
const webConfig = `
apiVersion: v1
kind: ConfigMap
metadata: {name: web}
data: {MODE: one, OTHER: untouched}
`

// readsWeb makes the sample program's container read all of it.
const readsWeb = sample + "envFrom: [{configMapRef: {name: web}}]\n"

// program is the manifest of a workload whose pods have one container with the fields given, and the further fields of
// their spec given after it.
func program(object string, replicas int, container string, pod ...string) string {
	kind, name, _ := strings.Cut(object, "/")
	head := map[string]string{
		"deployment":  fmt.Sprintf("kind: Deployment\nspec:\n  replicas: %d\n", replicas),
		"statefulset": fmt.Sprintf("kind: StatefulSet\nspec:\n  replicas: %d\n  serviceName: %s\n", replicas, name),
		"daemonset":   "kind: DaemonSet\nspec:\n",
	}[kind]
	spec := "containers:\n- " + strings.TrimSpace(indent("  ", container)) + "\n" + strings.Join(pod, "\n")
	return "---\napiVersion: apps/v1\nmetadata: {name: " + name + "}\n" + head +
		"  selector: {matchLabels: {app: " + name + "}}\n" +
		"  template:\n    metadata: {labels: {app: " + name + "}}\n    spec:\n" + indent("      ", spec)
}

// cronJob is the manifest of a CronJob that does not start a Job by itself while a test runs. Further fields of the spec of its
// pods are given after their container.
func cronJob(name string, suspend bool, container string, pod ...string) string {
	return fmt.Sprintf(`---
apiVersion: batch/v1
kind: CronJob
metadata: {name: %s}
spec:
  schedule: "0 0 29 2 *"
  suspend: %t
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never
          containers:
          - %s
%s`, name, suspend, strings.TrimSpace(indent("            ", container)), indent("          ", strings.Join(pod, "\n")))
}

func indent(by, text string) string {
	var out strings.Builder
	for line := range strings.Lines(strings.Trim(text, "\n") + "\n") {
		out.WriteString(by + line)
	}
	return out.String()
}
