package check_test

import (
	"fmt"
	"testing"

	"tidemark.dev/tidemark/internal/check"
)

func TestExcusesAreParted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text, want string // the rules with their reasons, then errors
	}{
		"two on a line":                 {"key-missing A until 2026-12-31: soon; items-key-missing until 2026-12-31: later", "key-missing A: soon|items-key-missing : later|"},
		"two on two lines":              {"key-missing until 2026-12-31: soon\n\nitems-key-missing until 2026-12-31: later;\n", "key-missing : soon|items-key-missing : later|"},
		"a reason with a semicolon":     {"key-missing until 2026-12-31: old pods are gone; see OPS-12", "key-missing : old pods are gone; see OPS-12|"},
		"a misspelt rule is not lost":   {"key-missing until 2026-12-31: soon; kye-missing until 2026-12-31: soon", "key-missing : soon|there is no such rule: see tidemark check --list-rules"},
		"a rule with nothing behind it": {"key-missing until 2026-12-31: soon; items-key-missing", "key-missing : soon|want RULE [KEY] until YYYY-MM-DD: REASON"},
		"nothing":                       {" ; \n;", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			excuses, errs := check.ParseExcuses(c.text)
			got := ""
			for _, e := range excuses {
				got += fmt.Sprintf("%s %s: %s|", e.Rule, e.Key, e.Reason)
			}
			for _, err := range errs {
				got += err.Error()
			}
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}
