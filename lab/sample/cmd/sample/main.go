// Command sample is the scenario program for real clusters.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"

	"tidemark.dev/tidemark/lab/sample"
)

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	box := container{state: "/tmp/sample-state.json", exit: "/tmp/sample-exit"}
	if sample.IsCommand(args) {
		return sample.Exec(args, box.beside(), os.Stdout, os.Stderr)
	}
	options, err := sample.Parse(args, os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return sample.ExitUsage
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	process := sample.Start(options, sample.Host{
		Env:       environment(),
		Files:     sample.Disk{},
		Out:       os.Stdout,
		Listen:    func(port int) (net.Listener, error) { return listen(ctx, port) },
		Terminate: writeTerminationMessage,
		Publish:   box.publish,
	}, sample.Disk{})
	code := process.Run(ctx)
	if asked, ok := box.exitCode(); ok && ctx.Err() != nil {
		return asked
	}
	return code
}

func listen(ctx context.Context, port int) (net.Listener, error) {
	var config net.ListenConfig
	return config.Listen(ctx, "tcp", fmt.Sprintf(":%d", port))
}
