package main

import (
	"bytes"
	"log"
	"strings"
	"testing"
)

func TestWhatLibrariesLogIsNotShown(t *testing.T) {
	var out bytes.Buffer
	log.New(withheld{&out}, "", 0).Printf("bad replacement val=%v", "MARKER")
	if text := out.String(); strings.Contains(text, "MARKER") || !strings.HasPrefix(text, "remark: ") || strings.Count(text, "\n") != 1 {
		t.Errorf("got %q", text)
	}
}

func TestColoursAreNotForced(t *testing.T) {
	for name, tc := range map[string]struct {
		noColor, term string
		want          bool
	}{
		"a terminal with colours": {"", "xterm-256color", true},
		"NO_COLOR is set":         {"1", "xterm-256color", false},
		"a terminal without":      {"", "dumb", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("NO_COLOR", tc.noColor)
			t.Setenv("TERM", tc.term)
			if got := colours(); got != tc.want {
				t.Errorf("got %t", got)
			}
			if s := screen(); s.Colour || s.Terminal {
				t.Errorf("a test's output is no terminal: %+v", s)
			}
		})
	}
}
