package cri

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	internalapi "k8s.io/cri-api/pkg/apis"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"
	utilexec "k8s.io/utils/exec"

	"tidemark.dev/tidemark/lab/cluster/delay"
	"tidemark.dev/tidemark/lab/cluster/record"
	"tidemark.dev/tidemark/lab/sample"
	"tidemark.dev/tidemark/lab/wire"
)

var (
	_ internalapi.RuntimeService      = (*Runtime)(nil)
	_ internalapi.ImageManagerService = Images{}
)

// bench is a runtime with one pod.
type bench struct {
	*testing.T
	runtime *Runtime
	starts  *record.Store
	delays  *delay.Table
	pod     *rt.PodSandboxConfig
	sandbox string
}

func newBench(t *testing.T) *bench {
	b := &bench{T: t, starts: &record.Store{}, delays: delay.NewTable()}
	kinds := map[string]wire.Kind{"app": wire.Regular, "first": wire.Init, "side": wire.Sidecar}
	var err error
	b.runtime, err = New(Options{
		Node: "node-0", NodeIP: "10.77.0.1", PodPrefix: "10.100", Directory: t.TempDir(), Starts: b.starts, Delays: b.delays,
		Kinds: func(context.Context, string, string, string) (map[string]wire.Kind, error) { return kinds, nil },
	})
	try(t, err)
	t.Cleanup(b.runtime.Shutdown)
	b.pod = &rt.PodSandboxConfig{Metadata: &rt.PodSandboxMetadata{Namespace: "shop", Name: "web-1", Uid: "u1"}, LogDirectory: t.TempDir()}
	b.sandbox, err = b.runtime.RunPodSandbox(t.Context(), b.pod, "")
	try(t, err)
	return b
}

func (b *bench) create(name string, command ...string) string {
	b.Helper()
	id, err := b.runtime.CreateContainer(b.Context(), b.sandbox, &rt.ContainerConfig{
		Metadata: &rt.ContainerMetadata{Name: name}, Image: &rt.ImageSpec{Image: "any:latest", UserSpecifiedImage: "any"},
		Command: command, Envs: []*rt.KeyValue{{Key: "MODE", Value: []byte("v1\xff")}}, LogPath: name + ".log",
	}, b.pod)
	try(b.T, err)
	return id
}

func (b *bench) start(name string, command ...string) string {
	b.Helper()
	id := b.create(name, command...)
	try(b.T, b.runtime.StartContainer(b.Context(), id))
	return id
}

func (b *bench) status(id string) *rt.ContainerStatus {
	b.Helper()
	response, err := b.runtime.ContainerStatus(b.Context(), id, false)
	try(b.T, err)
	return response.Status
}

// ended waits until the container has ended by itself.
func (b *bench) ended(id string) *rt.ContainerStatus {
	b.Helper()
	c, err := b.runtime.find(id)
	try(b.T, err)
	<-c.ended
	return b.status(id)
}

func TestPlainContainersByKind(t *testing.T) {
	b := newBench(t)
	if s := b.ended(b.start("first", "sh")); s.ExitCode != 0 || s.Reason != "Completed" {
		t.Errorf("an init container: %v", s)
	}
	for _, name := range []string{"app", "side"} {
		if s := b.status(b.start(name, "nginx")); s.State != rt.ContainerState_CONTAINER_RUNNING {
			t.Errorf("%s: %v", name, s)
		}
	}
	var kinds []wire.Kind
	for _, start := range b.starts.List(wire.Filter{}) {
		kinds = append(kinds, start.Kind)
	}
	if len(kinds) != 3 || kinds[0] != wire.Init || kinds[1] != wire.Regular || kinds[2] != wire.Sidecar {
		t.Errorf("kinds are %v", kinds)
	}
}

func TestRefusedConfigurationEndsTheContainer(t *testing.T) {
	b := newBench(t)
	s := b.ended(b.start("app", "/sample", "--require=ABSENT"))
	if s.ExitCode != sample.ExitConfig || s.Reason != "Error" || s.Message != `FATAL required setting "ABSENT" is missing` {
		t.Errorf("status is %v", s)
	}
	start := b.starts.Get(1)
	if *start.ExitCode != sample.ExitConfig || start.Message != s.Message || start.Finished.UnixNano() != s.FinishedAt {
		t.Errorf("record is %+v", start)
	}
	if start.Env("MODE") != "v1\xff" || start.Image != "any" || start.Pod != "web-1" || start.PodIP != "10.100.0.2" {
		t.Errorf("record is %+v", start)
	}
	log, err := os.ReadFile(filepath.Join(b.pod.LogDirectory, "app.log"))
	try(t, err)
	if !strings.HasSuffix(string(log), " stdout F "+s.Message+"\n") {
		t.Errorf("log is %q", log)
	}
}

func TestBadCommandLineEndsTheContainer(t *testing.T) {
	b := newBench(t)
	if s := b.ended(b.start("app", "/sample", "--nonsense")); s.ExitCode != sample.ExitUsage {
		t.Errorf("status is %v", s)
	}
}

func TestStopAndExit(t *testing.T) {
	b := newBench(t)
	id := b.start("app", "/sample")
	try(t, b.runtime.StopContainer(t.Context(), id, 30))
	if s := b.status(id); s.State != rt.ContainerState_CONTAINER_EXITED || s.ExitCode != 0 {
		t.Errorf("stopped: %v", s)
	}
	id = b.start("app", "nginx")
	if n := b.runtime.Exit(wire.Selector{Namespace: "shop", Container: "app"}, 9); n != 1 {
		t.Errorf("%d containers ended", n)
	}
	if s := b.status(id); s.ExitCode != 9 {
		t.Errorf("made to exit: %v", s)
	}
	id = b.start("app", "nginx")
	try(t, b.runtime.StopPodSandbox(t.Context(), b.sandbox))
	if s := b.status(id); s.ExitCode != exitKilled {
		t.Errorf("pod stopped: %v", s)
	}
	try(t, b.runtime.RemovePodSandbox(t.Context(), b.sandbox))
	if n := len(b.starts.List(wire.Filter{})); n != 3 {
		t.Errorf("the record has %d starts", n)
	}
}

func TestUnknownIDs(t *testing.T) {
	b := newBench(t)
	_, statusErr := b.runtime.ContainerStatus(t.Context(), "none", false)
	_, sandboxErr := b.runtime.PodSandboxStatus(t.Context(), "none", false)
	for _, err := range []error{statusErr, sandboxErr, b.runtime.StartContainer(t.Context(), "none")} {
		if status.Code(err) != codes.NotFound {
			t.Errorf("error is %v", err)
		}
	}
	for _, err := range []error{b.runtime.StopContainer(t.Context(), "none", 1), b.runtime.RemoveContainer(t.Context(), "none"), b.runtime.StopPodSandbox(t.Context(), "none")} {
		if err != nil {
			t.Errorf("what is gone cannot be ended: %v", err)
		}
	}
}

func TestStartThatIsGivenUpLeavesTheContainerExited(t *testing.T) {
	b := newBench(t)
	b.delays.Add(wire.Delay{Stage: wire.BeforeStart, Duration: time.Hour})
	id := b.create("app", "nginx")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.runtime.StartContainer(ctx, id); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
	if s := b.status(id); s.State != rt.ContainerState_CONTAINER_EXITED || s.ExitCode != exitStartFailed || s.Reason != "StartError" {
		t.Errorf("status is %v", s)
	}
	if n := len(b.starts.List(wire.Filter{})); n != 0 {
		t.Errorf("the record has %d starts", n)
	}
}

func TestImagesAreAbsentWhilePullsAreHeld(t *testing.T) {
	b := newBench(t)
	present := func() bool {
		response, err := b.runtime.Images().ImageStatus(t.Context(), &rt.ImageSpec{Image: "any:latest"}, false)
		try(t, err)
		return response.Image != nil
	}
	if !present() {
		t.Error("absent without a delay")
	}
	b.delays.Add(wire.Delay{Stage: wire.BeforeEnvironment, Duration: time.Hour, Selector: wire.Selector{PodPrefix: "web-"}})
	if present() {
		t.Error("present with a delay")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.runtime.Images().PullImage(ctx, &rt.ImageSpec{}, nil, b.pod); !errors.Is(err, context.Canceled) {
		t.Errorf("the pull is not held: %v", err)
	}
	if _, err := b.runtime.Images().PullImage(ctx, &rt.ImageSpec{}, nil, &rt.PodSandboxConfig{}); err != nil {
		t.Errorf("the pull of another pod is held: %v", err)
	}
}

func TestExec(t *testing.T) {
	b := newBench(t)
	plain, program := b.start("app", "nginx"), b.start("side", "/sample", "--boot-delay=1h")
	for name, test := range map[string]struct {
		id      string
		command string
		code    int
		out     string
	}{
		"env":                               {id: plain, command: "env", out: "MODE=v1\xff\n"},
		"true":                              {id: plain, command: "/bin/true"},
		"false":                             {id: plain, command: "false", code: 1},
		"any probe of a plain container":    {id: plain, command: "curl localhost"},
		"the same in the sample program":    {id: program, command: "curl localhost", code: exitNoCommand},
		"readiness follows the program":     {id: program, command: "/sample ready", code: 1},
		"liveness follows the program":      {id: program, command: "/sample live"},
		"readiness of what is not a sample": {id: plain, command: "/sample ready", code: 1},
		"sleep":                             {id: plain, command: "sleep 0.001"},
	} {
		t.Run(name, func(t *testing.T) {
			out, _, err := b.runtime.ExecSync(t.Context(), test.id, strings.Fields(test.command), time.Minute)
			code := 0
			if exit, ok := errors.AsType[utilexec.CodeExitError](err); ok {
				code = exit.Code
			} else if err != nil {
				t.Fatal(err)
			}
			if code != test.code || string(out) != test.out {
				t.Errorf("exit code %d, output %q", code, out)
			}
		})
	}
}

func TestSampleArgs(t *testing.T) {
	for name, test := range map[string]struct {
		image         string
		command, args []string
		want          string
		is            bool
	}{
		"by the command":           {image: "any", command: []string{"/bin/sample", "--a"}, args: []string{"--b"}, want: "--a --b", is: true},
		"another command":          {image: "sample", command: []string{"sh"}},
		"by the image":             {image: "registry:5000/x/sample:1.0", args: []string{"--b"}, want: "--b", is: true},
		"by the end of the image":  {image: "x/tidemark-sample@sha256:0", is: true},
		"by neither":               {image: "nginx:latest", args: []string{"sample"}, want: "sample"},
		"an image that begins so":  {image: "sample-app:1"},
		"a word that only ends so": {image: "resample"},
	} {
		t.Run(name, func(t *testing.T) {
			got, is := sampleArgs(test.image, test.command, test.args)
			if is != test.is || is && strings.Join(got, " ") != test.want {
				t.Errorf("got %q %t", got, is)
			}
		})
	}
}

func TestPortsArePodsOwn(t *testing.T) {
	b := newBench(t)
	id := b.start("app", "/sample", "--http=80")
	address := wire.Address{PodIP: "10.100.0.2", Port: 80}
	for range 1000 { // the program listens soon after the start
		if _, ok := b.runtime.Socket(address); ok {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if _, ok := b.runtime.Socket(address); !ok {
		t.Fatal("nothing listens")
	}
	if s := b.ended(b.start("side", "/sample", "--http=80")); s.ExitCode != 1 {
		t.Errorf("a second listener on the port: %v", s)
	}
	try(t, b.runtime.StopContainer(t.Context(), id, 1))
	if path, ok := b.runtime.Socket(address); ok {
		t.Errorf("%s is left", path)
	}
}
