package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"tidemark.dev/tidemark/lab/cluster"
)

type upOptions struct {
	cluster       cluster.Options
	dieWithParent bool
}

const upHelp = `Start a cluster and keep it until SIGINT, SIGTERM, or a stop over the control socket.

When all nodes are ready, one line of JSON on standard output says where everything is:
the kubeconfig, the control socket, the log. Everything is in a directory of its own, which
is removed at the end.`

func newUpCommand() *cobra.Command {
	var o upOptions
	command := &cobra.Command{
		Use:   "up",
		Short: "Start a cluster",
		Long:  upHelp,
		Example: "  lab up --nodes 4 --kubeconfig kubeconfig &\n" +
			"  kubectl --kubeconfig kubeconfig get nodes",
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return o.run(command.Context(), command.OutOrStdout()) },
	}
	flags := command.Flags()
	flags.SortFlags = false
	flags.IntVar(&o.cluster.Nodes, "nodes", 3, "number of nodes; 0 runs the control plane only")
	flags.StringVar(&o.cluster.Kubeconfig, "kubeconfig", "", "file to write the kubeconfig to (default: in the directory)")
	flags.StringVar(&o.cluster.Control, "control", "", "unix socket of the control API (default: in the directory)")
	flags.StringVar(&o.cluster.Directory, "dir", "", "directory to make, removed at the end (default: a temporary one)")
	flags.StringVar(&o.cluster.Log, "log", "", "file for the log of every component (default: in the directory)")
	flags.DurationVar(&o.cluster.SyncFrequency, "sync-frequency", 2*time.Second, "how long an edit may take to reach mounted files")
	flags.DurationVar(&o.cluster.CrashLoopMaxGap, "crash-loop-max", 2*time.Second, "cap of the back-off between restarts of a container; 1s to 300s")
	flags.DurationVar(&o.cluster.NodeMonitorGracePeriod, "node-monitor-grace-period", 12*time.Second, "silence after which a node is NotReady; nodes renew their Leases every sixth of it")
	flags.DurationVar(&o.cluster.EvictionDelay, "eviction-delay", 300*time.Second, "how long pods that do not say otherwise stay bound to a NotReady node")
	flags.StringVar(&o.cluster.FeatureGates, "feature-gates", "PodCertificateRequest=false,PodsAPI=false", "`Name=bool,...` for all components")
	flags.BoolVar(&o.dieWithParent, "die-with-parent", false, "also stop when standard input ends")
	return command
}

func (o upOptions) run(ctx context.Context, out io.Writer) (err error) {
	if err := o.makeDirectory(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove(o.cluster.Directory)) }()
	log, err := os.Create(o.cluster.Log)
	if err != nil {
		return fmt.Errorf("create log: %w", err)
	}
	defer log.Close()
	if err := sendLogs(log); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	if o.dieWithParent {
		ctx = untilEOF(ctx, os.Stdin)
	}
	c, err := cluster.Start(ctx, o.cluster)
	if err != nil {
		return fmt.Errorf("%w%s", err, tail(o.cluster.Log))
	}
	defer c.Stop()
	if err := json.NewEncoder(out).Encode(c.Status()); err != nil {
		return fmt.Errorf("say ready: %w", err)
	}
	select {
	case <-ctx.Done():
		return nil
	case <-c.Done():
		return nil
	case <-c.Failed():
		return fmt.Errorf("a component ended%s", tail(o.cluster.Log))
	}
}

// makeDirectory settles the paths that were not given.
func (o *upOptions) makeDirectory() error {
	var err error
	if o.cluster.Directory == "" {
		o.cluster.Directory, err = os.MkdirTemp("", "lab")
	} else {
		err = os.Mkdir(o.cluster.Directory, 0o700) // one that exists is not ours to remove
	}
	if err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	for path, name := range map[*string]string{&o.cluster.Kubeconfig: "kubeconfig", &o.cluster.Control: "c.sock", &o.cluster.Log: "lab.log"} {
		if *path == "" {
			*path = filepath.Join(o.cluster.Directory, name)
		}
		if *path, err = filepath.Abs(*path); err != nil {
			return err
		}
	}
	return nil
}

// remove removes the directory while kubelets, whose loops cannot be ended, may still write to it.
func remove(directory string) error {
	var err error
	for range 20 {
		if err = os.RemoveAll(directory); err == nil {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return fmt.Errorf("remove directory: %w", err)
}

// untilEOF returns a context that ends when the reader does: a parent that died has closed its end of the pipe.
func untilEOF(ctx context.Context, in io.Reader) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, in)
		cancel()
	}()
	return ctx
}
