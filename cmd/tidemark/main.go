// Command tidemark shows how far the pods of a cluster are from the configuration that is applied. Under the name
// kubectl-tidemark it is a plugin of kubectl; deploy/helm-plugin makes it one of helm.
package main

import (
	"context"
	"io"
	stdlog "log"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/go-logr/logr"
	"golang.org/x/term"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"tidemark.dev/tidemark/internal/cli"
)

// Set by the build with -ldflags "-X main.version=… -X main.commit=…".
var (
	version = "devel"
	commit  = ""
)

func main() {
	log.SetLogger(logr.Discard())  // what the client libraries log says nothing to the person at the terminal,
	klog.SetLogger(logr.Discard()) // who is told by the error
	stdlog.SetFlags(0)
	stdlog.SetOutput(withheld{os.Stderr})
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // so that a second signal ends what does not heed the first
	status := cli.Run(ctx, cli.Config{
		IOStreams:  genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr},
		Clock:      clock.RealClock{},
		Plugin:     strings.HasPrefix(filepath.Base(os.Args[0]), "kubectl-"),
		HelmPlugin: os.Getenv("HELM_PLUGIN_NAME") == "tidemark",
		Build:      cli.Build{Version: version, Commit: commit},
		Screen:     screen(),
	}, os.Args[1:])
	stop()
	os.Exit(status)
}

// withheld says, of what libraries log, only that they do: kustomize logs values that it is given, those of Secrets among them.
type withheld struct{ to io.Writer }

func (w withheld) Write(message []byte) (int, error) {
	if _, err := io.WriteString(w.to, "remark: a library logs something that is not shown, because it may have values\n"); err != nil {
		return 0, err
	}
	return len(message), nil
}

// screen looks at where the output goes. The variable against colours is heeded as no-color.org has it: set to anything but nothing.
func screen() cli.Screen {
	out := int(os.Stdout.Fd())
	if !term.IsTerminal(out) {
		return cli.Screen{}
	}
	width, _, err := term.GetSize(out)
	if err != nil {
		width = 0
	}
	return cli.Screen{Terminal: true, Colour: colours(), Width: width}
}

func colours() bool { return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" }
