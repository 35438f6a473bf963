package sample

import (
	"flag"
	"fmt"
	"io"
	"strings"
	"time"
)

// Options is the command line of a process.
type Options struct {
	Require []string `json:"require,omitempty"` // settings that must be present
	Know    []string `json:"know,omitempty"`    // with it, any other key in a file is refused
	Env     []string `json:"env,omitempty"`     // environment variables that are settings
	Files   []string `json:"files,omitempty"`   // files of key=value lines, or directories with a file per key

	BootDelay time.Duration `json:"bootDelay,omitempty"` // from the load until the process is ready
	Reload    bool          `json:"reload,omitempty"`    // read the files again when they change
	HTTP      int           `json:"http,omitempty"`      // port, 0 for none

	Exits     bool          `json:"exits,omitempty"` // the process ends by itself
	ExitAfter time.Duration `json:"exitAfter,omitempty"`
	ExitCode  int           `json:"exitCode,omitempty"`
}

// Parse reads a command line without the program's name. Help and complaints go to out.
func Parse(args []string, out io.Writer) (Options, error) {
	var o Options
	flags := flag.NewFlagSet("sample", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.Var((*list)(&o.Require), "require", "`KEY,...` that must be present in the environment or the files; else exit 78")
	flags.Var((*list)(&o.Know), "know", "`KEY,...` that the files may hold beside the required ones; any other makes the process exit 78")
	flags.Var((*list)(&o.Env), "env", "environment variables `KEY,...` that are settings; they win over files")
	flags.Var((*list)(&o.Files), "file", "`PATH` of a file of key=value lines or of a directory with a file per key (repeatable)")
	flags.DurationVar(&o.BootDelay, "boot-delay", 0, "time from reading the settings until ready")
	flags.BoolVar(&o.Reload, "reload", false, "read the files again when they change")
	flags.IntVar(&o.HTTP, "http", 0, "`PORT` that serves /healthz, /metrics and /work")
	flags.DurationVar(&o.ExitAfter, "exit-after", 0, "end by itself after this long, with --exit-code")
	flags.IntVar(&o.ExitCode, "exit-code", 0, "exit code of a process that ends by itself")
	if err := flags.Parse(args); err != nil {
		return Options{}, err
	}
	if flags.NArg() > 0 {
		return Options{}, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	flags.Visit(func(f *flag.Flag) {
		if f.Name == "exit-after" || f.Name == "exit-code" {
			o.Exits = true
		}
	})
	return o, nil
}

// list is a flag of comma-separated words that may be given more than once.
type list []string

func (l *list) String() string { return strings.Join(*l, ",") }

func (l *list) Set(value string) error {
	for word := range strings.SplitSeq(value, ",") {
		if word = strings.TrimSpace(word); word != "" {
			*l = append(*l, word)
		}
	}
	return nil
}
