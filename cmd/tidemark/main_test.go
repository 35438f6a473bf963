package main

import "testing"

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
