package digest_test

import (
	"strings"
	"testing"

	"tidemark.dev/tidemark/internal/digest"
)

// hash is the text of a hash: 51 characters of any kind and one of two.
var hash = strings.Repeat("a2z7", 12) + "bcdq"

func TestParse(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text    string
		version digest.Version // "" for a text that is no digest
	}{
		"a digest":                            {"v1-" + hash, "v1"},
		"a keyed digest":                      {"v1.5f2a9c01-" + hash, "v1.5f2a9c01"},
		"a digest of several keys":            {"v1.5f2a9c01.0a0b0c0d-" + hash, "v1.5f2a9c01.0a0b0c0d"},
		"a digest of a version still to come": {"v12.x9-" + hash, "v12.x9"},
		"nothing":                             {"", ""},
		"a hash without a version":            {hash, ""},
		"a version without a hash":            {"v1-", ""},
		"no number in the version":            {"v-" + hash, ""},
		"a word for a version":                {"vault-" + hash, ""},
		"an empty id":                         {"v1.-" + hash, ""},
		"an empty id among others":            {"v1.a..b-" + hash, ""},
		"something odd in an id":              {"v1.a,b-" + hash, ""},
		"upper case":                          {"v1-" + strings.ToUpper(hash), ""},
		"too short a hash":                    {"v1-" + hash[1:], ""},
		"too long a hash":                     {"v1-a" + hash, ""},
		"a hash with padding":                 {"v1-" + hash + "====", ""},
		"a hash with a line break":            {"v1-" + hash[:10] + "\n" + hash[10:], ""},
		"a hash that would decode to one written otherwise": {"v1-" + hash[:51] + "r", ""},
		"a blank in front": {" v1-" + hash, ""},
		"a counter behind": {"v1-" + hash + "-2", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := digest.Parse(c.text)
			if bad := c.version == ""; (err != nil) != bad {
				t.Fatalf("got %q, %v", got, err)
			}
			if v := digest.Digest(c.text).Version(); v != c.version {
				t.Errorf("version: got %q, want %q", v, c.version)
			}
			if c.version != "" && string(got) != c.text {
				t.Errorf("got %q back", got)
			}
		})
	}
}

func TestComparable(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		a, b digest.Digest
		want bool
	}{
		"two of one version":         {digest.Digest("v1-" + hash), digest.Digest("v1-" + strings.Repeat("a", 52)), true},
		"two of two versions":        {digest.Digest("v1-" + hash), digest.Digest("v2-" + hash), false},
		"one with a key, one not":    {digest.Digest("v1-" + hash), digest.Digest("v1.aa-" + hash), false},
		"two with two keys":          {digest.Digest("v1.aa-" + hash), digest.Digest("v1.bb-" + hash), false},
		"two with the same key":      {digest.Digest("v1.aa-" + hash), digest.Digest("v1.aa-" + hash), true},
		"a digest and none":          {digest.Digest("v1-" + hash), "", false},
		"none twice":                 {"", "", false},
		"two texts that are no ones": {"v1-x", "v1-x", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := digest.Comparable(c.a, c.b); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
			if digest.Comparable(c.b, c.a) != c.want {
				t.Error("the order matters")
			}
		})
	}
}

func TestShort(t *testing.T) {
	t.Parallel()
	for text, want := range map[digest.Digest]string{
		digest.Digest("v1-" + hash): hash[:8], digest.Digest("v1.5f2a9c01-" + hash): hash[:8],
		"": "", "v1": "v1", "v1-short": "v1-short", "-": "-",
	} {
		if got := text.Short(); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
