package cluster

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/fleet"
	"tidemark.dev/tidemark/internal/reported"
)

func TestWhereAPodTellsWhatItLoaded(t *testing.T) {
	app := corev1.Container{Name: "app", Ports: []corev1.ContainerPort{{ContainerPort: 8080}}}
	proxy := corev1.Container{Name: "proxy", Ports: []corev1.ContainerPort{{ContainerPort: 9090}}}
	bare := corev1.Container{Name: "bare"}
	const noPort, whose = "is no port: write PORT or CONTAINER:PORT", "does not tell which container it is of: write CONTAINER:PORT"
	for name, tc := range map[string]struct {
		value      string
		containers []corev1.Container
		container  string
		problem    string
	}{
		"the container with the port":     {"9090", []corev1.Container{app, proxy}, "proxy", ""},
		"the only container":              {"7070", []corev1.Container{app}, "app", ""},
		"a container that is named":       {"bare:7070", []corev1.Container{app, bare}, "bare", ""},
		"a port of none of several":       {"7070", []corev1.Container{app, bare}, "", whose},
		"a container that is not there":   {"web:8080", []corev1.Container{app}, "", whose},
		"a port of two":                   {"8080", []corev1.Container{app, {Name: "twin", Ports: app.Ports}}, "", whose},
		"a word":                          {"http", []corev1.Container{app}, "", noPort},
		"a port that is too large":        {"70000", []corev1.Container{app}, "", noPort},
		"no port at all":                  {"app:", []corev1.Container{app}, "", noPort},
		"a port with another host before": {"evil:80:8080", []corev1.Container{app}, "", noPort},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1.AnnotationLoadedPort: tc.value}},
				Spec:       corev1.PodSpec{Containers: tc.containers}, Status: corev1.PodStatus{PodIP: "10.0.0.1", Phase: corev1.PodRunning},
			}
			d := declaredBy(pod)
			if d == nil || d.container != tc.container || (tc.problem == "") != (d.problem == "") || !strings.Contains(d.problem, tc.problem) {
				t.Errorf("got %+v", d)
			}
		})
	}
}

func TestOnlyPodsThatDeclareAPortAreAsked(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Host)
		http.Error(w, "no", http.StatusInternalServerError)
	}))
	defer server.Close()
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, server.Listener.Addr().String())
	}
	running := func(name, ip, port string) *corev1.Pod {
		p := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name)},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app"}}},
			Status:     corev1.PodStatus{PodIP: ip, Phase: corev1.PodRunning},
		}
		if port != "" {
			p.Annotations = map[string]string{v1.AnnotationLoadedPort: port}
		}
		return p
	}
	r := &reading{Survey: Survey{Reports: reported.Direct(dial, time.Now)}, seen: []*seen{{}}}
	for _, p := range []*corev1.Pod{running("a", "10.0.0.1", "8080"), running("b", "10.0.0.2", ""), running("c", "10.0.0.3", "none"), running("d", "", "8080")} {
		r.declare(p)
		r.seen[0].pods = append(r.seen[0].pods, PodOf(p))
	}
	if err := r.readReports(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(asked) != 1 || asked[0] != "10.0.0.1:8080" {
		t.Errorf("asked %v", asked)
	}
	problem := func(p fleet.Pod) string { return p.ReportProblem }
	for i, want := range []string{"port 8080 answers with HTTP status 500", "", `annotation tidemark.dev/loaded-port: "none" is no port: write PORT or CONTAINER:PORT`, ""} {
		if got := problem(r.seen[0].pods[i]); got != want {
			t.Errorf("pod %d: %q, want %q", i, got, want)
		}
	}
	r.Reports = nil
	asked = nil
	if err := r.readReports(t.Context()); err != nil || len(asked) > 0 {
		t.Errorf("asked %v although it is switched off, %v", asked, err)
	}
}
