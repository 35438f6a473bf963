package digest_test

import (
	"slices"
	"testing"

	"tidemark.dev/tidemark/internal/digest"
	"tidemark.dev/tidemark/internal/workload"
)

// TestWhatADigestTellsApart compares two states of configuration as one reader sees them.
func TestWhatADigestTellsApart(t *testing.T) {
	t.Parallel()
	settings := func(data, binary map[string]string) config {
		return config{object: configMap("settings"), data: data, binary: binary}
	}
	type text = map[string]string
	for name, c := range map[string]struct {
		a, b       config
		env, files workload.Keys
		required   bool
		same       bool
	}{
		"a value changes":                                            {a: settings(text{"a": "1"}, nil), b: settings(text{"a": "2"}, nil), env: all},
		"nothing changes":                                            {a: settings(text{"a": "1", "b": "2"}, nil), b: settings(text{"b": "2", "a": "1"}, nil), env: all, files: all, same: true},
		"a separator in a value is no separator":                     {a: settings(text{"a": "1;b=2"}, nil), b: settings(text{"a": "1", "b": "2"}, nil), env: all},
		"a line break in a value is no separator":                    {a: settings(text{"a": "1\nb: 2"}, nil), b: settings(text{"a": "1", "b": "2"}, nil), files: all},
		"bytes wander from a value into its key":                     {a: settings(text{"ab": "c"}, nil), b: settings(text{"a": "bc"}, nil), env: all},
		"two values are swapped":                                     {a: settings(text{"a": "1", "b": "2"}, nil), b: settings(text{"a": "2", "b": "1"}, nil), env: all},
		"absent is not empty where a pod needs it":                   {a: config{object: configMap("settings"), absent: true}, b: settings(nil, nil), env: all, required: true},
		"absent is empty to who may do without":                      {a: config{object: configMap("settings"), absent: true}, b: settings(nil, nil), env: all, same: true},
		"absent is what has only other keys, to who may do without":  {a: config{object: configMap("settings"), absent: true}, b: settings(text{"b": "1"}, text{"c": "1"}), env: named("a"), files: named("a"), same: true},
		"absent is what has it as a file, to who may do without":     {a: config{object: configMap("settings"), absent: true}, b: settings(nil, text{"a": "1"}), env: named("a"), same: true},
		"absent is not what has an empty value":                      {a: config{object: configMap("settings"), absent: true}, b: settings(text{"a": ""}, nil), env: named("a")},
		"a missing key is not an empty one":                          {a: settings(text{}, nil), b: settings(text{"a": ""}, nil), env: named("a")},
		"a missing file is not an empty one":                         {a: settings(nil, nil), b: settings(nil, text{"a": ""}), files: named("a")},
		"a key that nobody reads changes":                            {a: settings(text{"a": "1", "b": "1"}, nil), b: settings(text{"a": "1", "b": "2"}, nil), env: named("a"), files: named("a"), same: true},
		"a key that nobody reads appears":                            {a: settings(text{"a": "1"}, nil), b: settings(text{"a": "1", "b": "2"}, text{"c": "3"}), env: named("a"), same: true},
		"a key appears where all are read":                           {a: settings(text{"a": "1"}, nil), b: settings(text{"a": "1", "b": ""}, nil), env: all},
		"binary data changes under the environment":                  {a: settings(text{"a": "1"}, text{"b": "1"}), b: settings(text{"a": "1"}, text{"b": "2"}), env: all, same: true},
		"binary data changes under files":                            {a: settings(text{"a": "1"}, text{"b": "1"}), b: settings(text{"a": "1"}, text{"b": "2"}), files: all},
		"a key moves to binary data under files":                     {a: settings(text{"a": "1"}, nil), b: settings(nil, text{"a": "1"}), files: named("a"), same: true},
		"a key moves to binary data under files that read all":       {a: settings(text{"a": "1"}, nil), b: settings(nil, text{"a": "1"}), files: all, same: true},
		"a key moves to binary data under the environment":           {a: settings(text{"a": "1"}, nil), b: settings(nil, text{"a": "1"}), env: named("a")},
		"a key moves to binary data under all of the environment":    {a: settings(text{"a": "1"}, nil), b: settings(nil, text{"a": "1"}), env: all},
		"the same content in another object":                         {a: settings(text{"a": "1"}, nil), b: config{object: configMap("other"), data: text{"a": "1"}}, env: all},
		"the same content in another namespace":                      {a: settings(text{"a": "1"}, nil), b: config{object: workload.Object{Kind: workload.ConfigMap, Namespace: "billing", Name: "settings"}, data: text{"a": "1"}}, env: all},
		"names and namespaces that read alike when joined":           {a: config{object: workload.Object{Kind: workload.ConfigMap, Namespace: "a", Name: "b/c"}}, b: config{object: workload.Object{Kind: workload.ConfigMap, Namespace: "a/b", Name: "c"}}, env: all},
		"the same content in a Secret is another digest and version": {a: settings(text{"a": "1"}, nil), b: config{object: secret("settings"), data: text{"a": "1"}, secret: secretOf(1)}, env: all},
		"a Secret's value changes":                                   {a: config{object: secret("s"), data: text{"a": "1"}, secret: secretOf(1)}, b: config{object: secret("s"), data: text{"a": "2"}, secret: secretOf(1)}, env: all},
		"a Secret stays under its key":                               {a: config{object: secret("s"), data: text{"a": "1"}, secret: secretOf(1)}, b: config{object: secret("s"), data: text{"a": "1"}, secret: secretOf(1)}, env: all, same: true},
		"a Secret comes under another key":                           {a: config{object: secret("s"), data: text{"a": "1"}, secret: secretOf(1)}, b: config{object: secret("s"), data: text{"a": "1"}, secret: secretOf(2)}, env: all},
		"an absent Secret is not an empty one":                       {a: config{object: secret("s"), absent: true, secret: secretOf(1)}, b: config{object: secret("s"), secret: secretOf(1)}, files: all, required: true},
	} {
		t.Run(name, func(t *testing.T) {
			da := c.a.content(t).Consumed(workload.Consumption{Object: c.a.object, Env: c.env, Files: c.files, Required: c.required})
			db := c.b.content(t).Consumed(workload.Consumption{Object: c.b.object, Env: c.env, Files: c.files, Required: c.required})
			if (da == db) != c.same {
				t.Errorf("got %s and %s, want same: %v", da, db, c.same)
			}
		})
	}
}

func TestASecretUnderAnotherKeyIsNotComparable(t *testing.T) {
	t.Parallel()
	under := func(b byte, value string) digest.Digest {
		c := config{object: secret("db"), data: map[string]string{"password": value}, secret: secretOf(b)}
		return c.content(t).Whole(c.object)
	}
	if a, b := under(1, "x"), under(2, "x"); digest.Comparable(a, b) || a.Version() == b.Version() {
		t.Errorf("%s and %s are comparable", a, b)
	}
	if a, b := under(1, "x"), under(1, "y"); !digest.Comparable(a, b) || a == b {
		t.Errorf("%s and %s do not tell a change", a, b)
	}
	whole := func(d digest.Digest) digest.Digest {
		return digest.OfParts([]digest.Part{{Object: secret("db"), Digest: d}})
	}
	if a, b := whole(under(1, "x")), whole(under(2, "x")); digest.Comparable(a, b) {
		t.Errorf("made of digests under two keys, %s and %s are comparable", a, b)
	}
}

func TestEqualValuesHaveSumsOfTheirOwn(t *testing.T) {
	t.Parallel()
	key := mustKey(t, secretOf(1))
	data := map[string][]byte{"password": []byte("hunter2"), "again": []byte("hunter2")}
	a, b := digest.OfSecret(key, "shop", "a", data), digest.OfSecret(key, "shop", "b", data)
	elsewhere := digest.OfSecret(key, "billing", "a", data)
	plain := digest.OfConfigMap("shop", "a", map[string]string{"password": "hunter2", "again": "hunter2"}, nil)
	seen := map[digest.Sum]bool{}
	for _, c := range []digest.Content{a, b, elsewhere, plain} {
		for _, sum := range c.Data {
			if seen[sum] {
				t.Error("two equal values have one sum")
			}
			seen[sum] = true
		}
	}
}

func TestTheOrderAndRepetitionOfKeysDoNotMatter(t *testing.T) {
	t.Parallel()
	c := config{object: configMap("settings"), data: map[string]string{"a": "1", "b": "2"}}
	content, given := c.content(t), []string{"b", "a", "b"}
	if got, want := content.Of(c.object, digest.Env, named(given...)), content.Of(c.object, digest.Env, named("a", "b")); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if !slices.Equal(given, []string{"b", "a", "b"}) {
		t.Errorf("the caller's keys were put in order: %v", given)
	}
	if got, want := content.Of(c.object, digest.Env, all), content.Of(c.object, digest.Env, named("a", "b")); got != want {
		t.Errorf("all keys and each of them differ: %s, %s", got, want)
	}
}

func TestViewsAndPurposesAreKeptApart(t *testing.T) {
	t.Parallel()
	c := config{object: configMap("settings"), data: map[string]string{"a": "1"}}
	content := c.content(t)
	seen := map[digest.Digest]bool{
		content.Of(c.object, digest.Env, all):                                             true,
		content.Of(c.object, digest.File, all):                                            true,
		content.Consumed(workload.Consumption{Object: c.object, Env: all}):                true,
		content.Consumed(workload.Consumption{Object: c.object, Files: all}):              true,
		content.Whole(c.object):                                                           true,
		digest.OfParts([]digest.Part{{Object: c.object, Digest: ""}}):                     true,
		digest.OfParts([]digest.Part{{Object: c.object, Digest: "present"}}):              true,
		digest.OfParts([]digest.Part{{Object: c.object}, {Object: c.object}}):             true,
		content.Consumed(workload.Consumption{Object: c.object, Env: named("a")}.Whole()): true,
	}
	if len(seen) != 8 { // the last is the whole again
		t.Errorf("got %d digests, want 8", len(seen))
	}
}

func TestAbsence(t *testing.T) {
	t.Parallel()
	key := mustKey(t, secretOf(1))
	t.Run("an absent ConfigMap needs no key and no statement of its version", func(t *testing.T) {
		o := configMap("gone")
		got, want := digest.Content{}.Whole(o), digest.AbsentIn(workload.ConfigMap, nil).Whole(o)
		if got != want || got.Version() != digest.V1 {
			t.Errorf("got %s, want %s", got, want)
		}
	})
	t.Run("an absent Secret compares with a present one", func(t *testing.T) {
		o := secret("gone")
		a, b := digest.AbsentIn(workload.Secret, key).Whole(o), digest.OfSecret(key, o.Namespace, o.Name, nil).Whole(o)
		if !digest.Comparable(a, b) || a == b {
			t.Errorf("got %s and %s", a, b)
		}
	})
	t.Run("a Secret of which no key is known has no digest", func(t *testing.T) {
		o := secret("gone")
		if a, b := (digest.Content{}).Whole(o), (digest.Content{}).Of(o, digest.Env, all); a != "" || b != "" {
			t.Errorf("got %q and %q", a, b)
		}
	})
}

func TestContent(t *testing.T) {
	t.Parallel()
	c := config{object: configMap("settings"), data: map[string]string{"b": "1"}, binary: map[string]string{"a": "2"}}
	content := c.content(t)
	if got := content.Keys(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("keys: got %v", got)
	}
	for key, want := range map[string]bool{"a": true, "b": true, "c": false} {
		if _, ok := content.Value(key); ok != want {
			t.Errorf("value of %s: got %v, want %v", key, ok, want)
		}
	}
	other := config{object: configMap("settings"), data: map[string]string{"b": "1", "a": "2"}}.content(t)
	if !content.Equal(c.content(t)) || content.Equal(other) || other.Equal(content) {
		t.Error("contents are equal when, and only when, data and binary data are")
	}
	none := digest.OfConfigMap("shop", "settings", nil, nil)
	if !none.Equal(digest.Content{Version: digest.V1, Present: true, Data: map[string]digest.Sum{}, Binary: map[string]digest.Sum{}}) {
		t.Error("no data and none differ")
	}
	if none.Equal(digest.AbsentIn(workload.ConfigMap, nil)) {
		t.Error("empty and absent are equal")
	}
}

func TestMissing(t *testing.T) {
	t.Parallel()
	use := workload.Consumption{
		Object: configMap("settings"), Required: true,
		RequiredKeys: []string{"a", "b", "c"}, RequiredEnv: []string{"a", "b"},
	}
	type text = map[string]string
	for name, c := range map[string]struct {
		config config
		use    workload.Consumption
		object bool
		keys   []string
	}{
		"all is there":                      {config: config{data: text{"a": "", "b": "", "c": ""}}, use: use},
		"a file may be binary":              {config: config{data: text{"a": "", "b": ""}, binary: text{"c": ""}}, use: use},
		"the environment reads data only":   {config: config{data: text{"a": ""}, binary: text{"b": "", "c": ""}}, use: use, keys: []string{"b"}},
		"each missing key is said once":     {config: config{data: text{"b": ""}}, use: use, keys: []string{"a", "c"}},
		"the whole object is missing":       {config: config{absent: true}, use: use, object: true},
		"an optional object may be missing": {config: config{absent: true}, use: workload.Consumption{Object: configMap("settings")}},
	} {
		t.Run(name, func(t *testing.T) {
			c.config.object = c.use.Object
			object, keys := c.config.content(t).Missing(c.use)
			if object != c.object || !slices.Equal(keys, c.keys) {
				t.Errorf("got %v, %v; want %v, %v", object, keys, c.object, c.keys)
			}
		})
	}
}
