//go:build unix

package cli

import (
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"
)

// As under nohup.
func TestASignalThatIsIgnoredStaysIgnored(t *testing.T) {
	signal.Ignore(syscall.SIGHUP)
	t.Cleanup(func() { signal.Reset(syscall.SIGHUP, syscall.SIGWINCH) })
	signals := make(chan os.Signal, 2)
	notify(signals, syscall.SIGHUP, syscall.SIGWINCH)
	defer signal.Stop(signals)
	for _, s := range []syscall.Signal{syscall.SIGHUP, syscall.SIGWINCH} {
		if err := syscall.Kill(os.Getpid(), s); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case got := <-signals:
		if got != syscall.SIGWINCH || !signal.Ignored(syscall.SIGHUP) {
			t.Errorf("it got %v", got)
		}
	case <-time.After(10 * time.Second):
		t.Error("it got no signal")
	}
}
