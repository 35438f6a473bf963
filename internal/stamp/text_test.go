package stamp

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"

	"tidemark.dev/tidemark/internal/digest"
)

func TestFreshStamp(t *testing.T) {
	d := digest.OfParts(nil)
	other := string(digest.OfParts([]digest.Part{{Object: configMap("a"), Digest: d}}))
	plain := string(d)
	for name, tc := range map[string]struct {
		used []string
		want string
	}{
		"no stamp yet":                            {used: []string{""}, want: plain},
		"another stamp":                           {used: []string{other, other + ".7"}, want: plain},
		"the same stamp":                          {used: []string{plain}, want: plain + ".2"},
		"the same stamp with a counter":           {used: []string{plain + ".2"}, want: plain + ".3"},
		"the highest counter of earlier stamps":   {used: []string{other, plain + ".9", plain, plain + ".10"}, want: plain + ".11"},
		"a counter that nobody writes":            {used: []string{plain + ".x", plain + ".1", plain + ".-4"}, want: plain},
		"a counter that would overflow":           {used: []string{plain + ".99999999999999999999", plain + ".999999"}, want: plain},
		"the last counter starts again, not same": {used: []string{plain + ".999998"}, want: plain + ".999999"},
		"a foreign text":                          {used: []string{"manual", "a.b-c", "."}, want: plain},
	} {
		t.Run(name, func(t *testing.T) {
			got := freshStamp(d, tc.used...)
			if got != tc.want {
				t.Errorf("stamp %q, want %q", got, tc.want)
			}
			if problems := validation.IsValidLabelValue(got); len(problems) > 0 {
				t.Errorf("stamp %q: %s", got, strings.Join(problems, ", "))
			}
		})
	}
}

func TestSplitStampOfAKeyedVersion(t *testing.T) {
	for text, want := range map[string]int{"v1.5f2a9c01-abc": 1, "v1.5f2a9c01-abc.12": 12} {
		if base, n := splitStamp(text); base != "v1.5f2a9c01-abc" || n != want {
			t.Errorf("%q splits into %q and %d, want the digest and %d", text, base, n, want)
		}
	}
}
