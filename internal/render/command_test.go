//go:build linux

package render_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"tidemark.dev/tidemark/internal/manifest"
	"tidemark.dev/tidemark/internal/render"
)

const patience = 30 * time.Second

// pidIn waits until a file has the number of a process.
func pidIn(t *testing.T, path string) string {
	t.Helper()
	for until := time.Now().Add(patience); time.Now().Before(until); time.Sleep(5 * time.Millisecond) {
		if data, err := os.ReadFile(path); err == nil && strings.HasSuffix(string(data), "\n") {
			return strings.TrimSpace(string(data))
		}
	}
	t.Fatal("the process did not begin")
	return ""
}

// dies waits until a process is no more, or a zombie that nobody has waited for yet.
func dies(t *testing.T, pid string) {
	t.Helper()
	for until := time.Now().Add(patience); time.Now().Before(until); time.Sleep(5 * time.Millisecond) {
		stat, err := os.ReadFile("/proc/" + pid + "/stat")
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) || strings.Contains(string(stat), ") Z ") {
			return
		}
	}
	t.Errorf("process %s lives on", pid)
}

// endsWithItsContext cancels what runs once it has started the process that writes its number to the file, and wants an end of both.
func endsWithItsContext(t *testing.T, file string, run func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	pid := pidIn(t, file)
	cancel()
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	case <-time.After(patience):
		t.Error("it goes on")
	}
	dies(t, pid)
}

// What a command started ends with it: that may hold its output open, or go on asking a server.
func TestWhatACommandStartedEndsWithItsContext(t *testing.T) {
	t.Parallel()
	for name, grandchild := range map[string]string{
		"one that heeds a signal": `exec sleep 600`,
		"one that does not":       `trap "" TERM; while :; do sleep 0.05; done`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			endsWithItsContext(t, filepath.Join(dir, "pid"), func(ctx context.Context) error {
				command := `sh -c 'echo $$ > pid; ` + grandchild + `' & wait; echo`
				return render.Source{Command: command, Dir: dir}.Read(ctx, &manifest.Set{})
			})
		})
	}
}

func TestWhatACommandStartedEndsWhenItWritesTooMuch(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, _, err := read(render.Source{Command: `sh -c 'echo $$ > pid; exec sleep 600' & yes 'a: bcdefg'`, Dir: dir})
	if !errors.Is(err, manifest.ErrLarge) {
		t.Errorf("got %v", err)
	}
	dies(t, pidIn(t, filepath.Join(dir, "pid")))
}

// Half of the manifests would be checked as if they were all.
func TestOutputThatIsNotReadToItsEndIsRefused(t *testing.T) {
	t.Parallel()
	dir := files(t, "config.yaml", configMap("a"))
	_, _, err := read(render.Source{Command: "(sleep 600; cat config.yaml) & cat config.yaml", Dir: dir})
	if err == nil || !strings.Contains(err.Error(), "what it left in the background holds its output open") {
		t.Errorf("got %v", err)
	}
	if placed, _, err := read(render.Source{Command: "(sleep 0.2; cat config.yaml) & true", Dir: dir}); err != nil || len(placed) != 1 {
		t.Errorf("of what ends soon: %v: %q", err, placed)
	}
}

// Git runs programs too, such as the filters of a checkout.
func TestWhatGitStartedEndsWithItsContext(t *testing.T) {
	repository(t)
	pid, err := filepath.Abs("pid")
	if err != nil {
		t.Fatal(err)
	}
	write(t, ".gitattributes", "*.yaml filter=slow\n")
	git(t, "add", "-A")
	git(t, "commit", "-q", "-m", "filtered")
	git(t, "config", "filter.slow.smudge", `sh -c 'echo $$ > `+pid+`; exec sleep 600'`)
	endsWithItsContext(t, pid, func(ctx context.Context) error {
		_, err := render.NewCheckout(ctx, "HEAD")
		return err
	})
}

// A person who has asked for the standard input and thinks better of it, or a pipe whose writer never came.
func TestReadingEndsWithItsContext(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	silent, _ := io.Pipe()
	for name, s := range map[string]render.Source{
		"the standard input": {Files: []string{render.Stdin}, In: silent}, "a pipe": {Files: []string{"pipe"}, Dir: dir},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		t.Cleanup(cancel)
		ended := make(chan error, 1)
		go func() { ended <- s.Read(ctx, &manifest.Set{}) }()
		select {
		case err := <-ended:
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("of %s: got %v", name, err)
			}
		case <-time.After(patience):
			t.Errorf("of %s: it waits", name)
		}
	}
}

// A shell gives what a command writes as a pipe: <(helm template .).
func TestAPipeIsReadLikeAFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	go func() { _ = os.WriteFile(filepath.Join(dir, "pipe"), []byte(configMap("a")), 0o600) }()
	if placed, _, err := read(render.Source{Files: []string{"pipe"}, Dir: dir}); err != nil || len(placed) != 1 {
		t.Errorf("%v: %q", err, placed)
	}
}
