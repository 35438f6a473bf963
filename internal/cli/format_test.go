package cli

import "testing"

func TestWhatTheClusterSaysActsOnNoTerminal(t *testing.T) {
	if got, want := row([]string{"3", "kubectl apply\nby ci\tat noon", "a\x1b[2Jb", "\u202eabc"}), "3\tkubectl apply by ci at noon\ta\ufffd[2Jb\t\ufffdabc"; got != want {
		t.Errorf("a row is %q, want %q", got, want)
	}
	if got, want := plainLine("\tlevel:\tinfo\x1b[2J\rwarn"), "\tlevel:\tinfo\ufffd[2J\ufffdwarn"; got != want {
		t.Errorf("a line is %q, want %q", got, want)
	}
}
