package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

// tailSize is how much of the log an error shows.
const tailSize = 4 << 10

// sendLogs sends every component's log to one writer.
func sendLogs(to io.Writer) error {
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	for name, value := range map[string]string{
		"logtostderr":     "false",
		"alsologtostderr": "false",
		"stderrthreshold": "FATAL",
		"one_output":      "true",
	} {
		if err := flags.Set(name, value); err != nil {
			return fmt.Errorf("set up logging: %w", err)
		}
	}
	klog.SetOutput(to)
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
	return nil
}

// tail returns the end of a log, as an addition to an error.
func tail(path string) string {
	klog.Flush()
	content, err := os.ReadFile(path)
	if err != nil || len(content) == 0 {
		return ""
	}
	if len(content) > tailSize {
		content = content[len(content)-tailSize:]
		content = content[bytes.IndexByte(content, '\n')+1:]
	}
	return fmt.Sprintf("\nend of the log:\n%s", bytes.TrimRight(content, "\n"))
}
