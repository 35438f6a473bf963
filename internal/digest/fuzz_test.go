package digest_test

import (
	"maps"
	"strings"
	"testing"

	"tidemark.dev/tidemark/internal/digest"
	"tidemark.dev/tidemark/internal/workload"
)

// reader takes what a fuzzer gives apart into configuration.
type reader struct{ rest []byte }

func (r *reader) byte() byte {
	if len(r.rest) == 0 {
		return 0
	}
	b := r.rest[0]
	r.rest = r.rest[1:]
	return b
}

// text is short, so that separators, lengths and repetitions meet often.
func (r *reader) text() string {
	n := min(int(r.byte()%12), len(r.rest))
	s := string(r.rest[:n])
	r.rest = r.rest[n:]
	return s
}

func (r *reader) values() map[string]string {
	out := map[string]string{}
	for range r.byte() % 5 {
		out[r.text()] = r.text()
	}
	return out
}

func (r *reader) config() config {
	if r.byte()%8 == 0 {
		return config{object: configMap("settings"), absent: true}
	}
	c := config{object: configMap("settings"), data: r.values(), binary: r.values()}
	for k := range c.data {
		delete(c.binary, k) // the API refuses a key in both
	}
	return c
}

func (r *reader) keys() workload.Keys {
	if r.byte()%2 == 0 {
		return all
	}
	names := map[string]string{}
	for range r.byte() % 4 {
		names[r.text()] = ""
	}
	return named(config{data: names}.sortedKeys()...)
}

func (c config) sortedKeys() []string {
	return digest.OfConfigMap("", "", c.data, bytesOf(c.binary)).Keys()
}

// seen is what the views show of the object, compared without any digest.
func (c config) seen(env, files workload.Keys) [2]map[string]string {
	pick := func(values map[string]string, keys workload.Keys) map[string]string {
		out := map[string]string{}
		for k, v := range values {
			if keys.Has(k) {
				out[k] = v
			}
		}
		return out
	}
	both := maps.Clone(c.binary)
	if both == nil {
		both = map[string]string{}
	}
	maps.Copy(both, c.data)
	return [2]map[string]string{pick(c.data, env), pick(both, files)}
}

// FuzzContents holds two contents against each other: their digests are equal when, and only when, what is read is.
func FuzzContents(f *testing.F) {
	f.Add([]byte(""))
	f.Add([]byte("\x01\x01\x01a\x051;b=2\x00\x01\x02\x01a\x011\x01b\x012\x00"))
	f.Add([]byte("\x01\x01\x02ab\x01c\x00\x01\x01\x01a\x02bc\x00"))
	f.Add([]byte("\x01\x01\x01a\x011\x00\x01\x00\x01\x01a\x011\x01\x01\x01a\x01\x01\x01a"))
	f.Add([]byte("\x00\x01\x00\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := reader{data}
		a, b, env, files := r.config(), r.config(), r.keys(), r.keys()
		ca, cb := a.content(t), b.content(t)
		if same := a.absent == b.absent && maps.Equal(a.data, b.data) && maps.Equal(a.binary, b.binary); ca.Equal(cb) != same {
			t.Fatalf("contents equal: %v, want %v, of %v and %v", !same, same, a, b)
		}
		use := workload.Consumption{Object: a.object, Env: env, Files: files}
		needed := use
		needed.Required = true
		sa, sb := a.seen(env, files), b.seen(env, files)
		sameEnv, sameFiles := maps.Equal(sa[0], sb[0]), maps.Equal(sa[1], sb[1])
		for what, c := range map[string]struct {
			equal, want bool
		}{
			"consumed":       {ca.Consumed(use) == cb.Consumed(use), sameEnv && sameFiles},
			"needed":         {ca.Consumed(needed) == cb.Consumed(needed), sameEnv && sameFiles && a.absent == b.absent},
			"as environment": {ca.Of(a.object, digest.Env, env) == cb.Of(a.object, digest.Env, env), sameEnv},
			"as files":       {ca.Of(a.object, digest.File, files) == cb.Of(a.object, digest.File, files), sameFiles},
		} {
			if c.equal != c.want {
				t.Errorf("%s: digests equal: %v, want %v, of %v and %v by %v", what, c.equal, c.want, a, b, use)
			}
		}
		for _, use := range []workload.Consumption{use, needed} {
			if got, want := ca.Consumed(use), a.slowConsumed(use.Required, env, files); got != want {
				t.Errorf("got %s, want %s as the design says, of %v by %v", got, want, a, use)
			}
		}
	})
}

// FuzzParts holds two lists of parts against each other.
func FuzzParts(f *testing.F) {
	f.Add("a", "b", "c", "d")
	f.Add("", "", "", "")
	f.Add("ab", "c", "a", "bc")
	f.Fuzz(func(t *testing.T, name1, digest1, name2, digest2 string) {
		p := digest.Part{Object: configMap(name1), Digest: digest.Digest(digest1)}
		q := digest.Part{Object: configMap(name2), Digest: digest.Digest(digest2)}
		of := func(parts ...digest.Part) digest.Digest { return digest.OfParts(parts) }
		if of(p, q) != of(q, p) {
			t.Error("the order of parts matters")
		}
		if (of(p) == of(q)) != (p == q) {
			t.Errorf("%v and %v: equal digests: %v", p, q, p != q)
		}
		if of(p) == of(p, q) {
			t.Errorf("%v is lost behind %v", q, p)
		}
		if _, err := digest.Parse(string(of(p, q))); err != nil {
			t.Error(err)
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"", "-", "v1", "v1-", "v1-" + hash, "v1.5f2a9c01-" + hash, "v1-" + strings.ToUpper(hash), "v1-" + hash + "-2", "v1-\n" + hash, "\xff-" + hash} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, err := digest.Parse(s)
		version := digest.Digest(s).Version()
		_ = digest.Digest(s).Short()
		if err != nil {
			if d != "" || version != "" {
				t.Errorf("%q is refused and gives %q, version %q", s, d, version)
			}
			return
		}
		if string(d) != s || string(version)+"-"+s[len(version)+1:] != s || !digest.Comparable(d, d) {
			t.Errorf("%q is read as %q, version %q", s, d, version)
		}
	})
}
