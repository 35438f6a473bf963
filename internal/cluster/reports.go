package cluster

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/fleet"
	"tidemark.dev/tidemark/internal/reported"
)

// declared is where a pod's program tells what it loaded, as the pod declares it.
type declared struct {
	reported.Pod
	// container is the one whose program it is.
	container string
	// problem is why it cannot be asked.
	problem string
}

// declare notes where a pod's program tells what it loaded.
func (r *reading) declare(pod *corev1.Pod) {
	if r.Reports == nil {
		return
	}
	if d := declaredBy(pod); d != nil {
		if r.declared == nil {
			r.declared = map[string]*declared{}
		}
		r.declared[string(pod.UID)] = d
	}
}

// declaredBy reads the annotation of a pod; nil where it has none, or cannot be asked because it does not run.
func declaredBy(pod *corev1.Pod) *declared {
	text := pod.Annotations[v1.AnnotationLoadedPort]
	if text == "" || pod.Status.PodIP == "" || pod.Status.Phase != corev1.PodRunning {
		return nil
	}
	d := &declared{Pod: reported.Pod{Namespace: pod.Namespace, Name: pod.Name, IP: pod.Status.PodIP}}
	name, number, named := strings.Cut(text, ":")
	if !named {
		name, number = "", text
	}
	port, err := strconv.ParseUint(number, 10, 16)
	if err != nil || port == 0 {
		d.problem = fmt.Sprintf("annotation %s: %q is no port: write PORT or CONTAINER:PORT", v1.AnnotationLoadedPort, text)
		return d
	}
	d.Port = int(port)
	if d.container = containerOf(&pod.Spec, name, int32(port)); d.container == "" {
		d.problem = fmt.Sprintf("annotation %s: %q does not tell which container it is of: write CONTAINER:PORT", v1.AnnotationLoadedPort, text)
	}
	return d
}

// containerOf is the container that is named, else the one that has the port, else the only one; "" when there is none.
func containerOf(spec *corev1.PodSpec, name string, port int32) string {
	var fits []string
	for i := range spec.Containers {
		c := &spec.Containers[i]
		has := slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.ContainerPort == port })
		if name != "" && c.Name == name || name == "" && has {
			fits = append(fits, c.Name)
		}
	}
	switch {
	case len(fits) == 1:
		return fits[0]
	case name == "" && len(fits) == 0 && len(spec.Containers) == 1:
		return spec.Containers[0].Name
	}
	return ""
}

// readReports asks the pods that declare a port what their programs loaded, where that is asked for.
func (r *reading) readReports(ctx context.Context) error {
	if r.Reports == nil {
		return nil
	}
	var ask []reported.Pod
	var of []*fleet.Pod
	for _, s := range r.seen {
		for i := range s.pods {
			d := r.declared[s.pods[i].UID]
			switch {
			case d == nil:
			case d.problem != "":
				s.pods[i].ReportProblem = d.problem
			default:
				ask, of = append(ask, d.Pod), append(of, &s.pods[i])
			}
		}
	}
	for i, a := range r.Reports.Ask(ctx, ask) {
		of[i].ReportProblem = a.Problem
		for j := range of[i].Containers {
			if c := &of[i].Containers[j]; c.Name == r.declared[of[i].UID].container {
				c.Report = a.Report
			}
		}
	}
	return ctx.Err()
}
