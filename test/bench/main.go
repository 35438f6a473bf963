// Command bench measures Tidemark on the lab, beside a bare client-go loop that makes the same patches in the same run.
//
// What is counted must be right: a benchmark whose counts are wrong makes the program end with exit status 1. What is timed
// depends on the machine, and fails nothing.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"tidemark.dev/tidemark/test/scenario"
)

// benchmarks in the order in which they run and stand in the document.
var benchmarks = []benchmark{fanOut, manyToMany, noOp, ballast, status, look, cleanUp, kill, storm, pinPolicy, check, guard, releases}

type options struct {
	run      string
	programs string // directory of the binaries
	rounds   int
	write    bool
	large    bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out, remarks io.Writer) error {
	o, chosen, err := parse(args, remarks)
	if err != nil {
		return err
	}
	root, err := scenario.Root()
	if err != nil {
		return err
	}
	if o.programs == "" {
		o.programs = filepath.Join(root, "bin")
		if err := build(ctx, root, o.programs); err != nil {
			return err
		}
	}
	var failed []error
	for _, b := range chosen {
		fmt.Fprintf(remarks, "== %s\n", b.name)
		rep, err := b.measure(ctx, o, remarks)
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", b.name, err))
		}
		if len(rep.parts) == 0 {
			continue
		}
		text := rep.markdown()
		fmt.Fprintf(out, "## %s\n\n%s\n", b.title, text)
		if o.write && err == nil {
			if err := renew(filepath.Join(root, "docs", "benchmarks.md"), b.name, text+"\n"+circumstances()); err != nil {
				return err
			}
		}
	}
	return errors.Join(failed...)
}

func parse(args []string, remarks io.Writer) (options, []benchmark, error) {
	o := options{}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(remarks)
	flags.StringVar(&o.run, "run", "", "which benchmarks, with commas between: "+strings.Join(names(), ", ")+"; default all")
	flags.StringVar(&o.programs, "programs", "", "directory with tidemark and tidemark-controller; default bin, where they are built first")
	flags.IntVar(&o.rounds, "rounds", 3, "how often each pair of times is taken")
	flags.BoolVar(&o.write, "write", false, "renew the figures in docs/benchmarks.md")
	flags.BoolVar(&o.large, "large", false, "measure status on a cluster four times as large too")
	if err := flags.Parse(args); err != nil {
		return o, nil, err
	}
	if o.run == "" {
		return o, benchmarks, nil
	}
	var chosen []benchmark
	for name := range strings.SplitSeq(o.run, ",") {
		i := slices.Index(names(), name)
		if i < 0 {
			return o, nil, fmt.Errorf("no benchmark %q: want %s", name, strings.Join(names(), ", "))
		}
		chosen = append(chosen, benchmarks[i])
	}
	return o, chosen, nil
}

func names() []string {
	var all []string
	for _, b := range benchmarks {
		all = append(all, b.name)
	}
	return all
}

// build builds the programs as they ship, so that no old ones are measured.
func build(ctx context.Context, root, programs string) error {
	c := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-trimpath", "-ldflags=-s -w", "-o", programs+string(filepath.Separator), "./cmd/...")
	c.Dir = root
	c.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("build the programs: %w\n%s", err, out)
	}
	return nil
}
