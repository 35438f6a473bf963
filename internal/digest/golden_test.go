package digest_test

import (
	"testing"

	"tidemark.dev/tidemark/internal/digest"
	"tidemark.dev/tidemark/internal/workload"
)

// TestVersionOneStaysAsItIs pins version 1 for ever. These texts are on workloads in clusters that nobody here can see: a
// change of any of them is a change of the digest's version, never a mended test. See docs/design/0004-digest.md.
func TestVersionOneStaysAsItIs(t *testing.T) {
	t.Parallel()
	settings := config{
		object: configMap("settings"),
		data:   map[string]string{"interval": "10m", "empty": "", "app.yaml": "a: 1\n"},
		binary: map[string]string{"logo.png": "\x89PNG\x00\xff"},
	}
	db := config{object: secret("db"), data: map[string]string{"user": "shop", "password": "hunter2"}, secret: secretOf('k')}
	gone := config{object: configMap("gone"), absent: true}
	goneSecret := config{object: secret("gone"), absent: true, secret: secretOf('k')}
	empty := config{object: configMap("empty")}

	consumed := func(c config, env, files workload.Keys) digest.Digest {
		return c.content(t).Consumed(workload.Consumption{Object: c.object, Env: env, Files: files})
	}
	for name, c := range map[string]struct{ got, want digest.Digest }{
		"a ConfigMap, whole":            {settings.content(t).Whole(settings.object), "v1-jfwuwd2cw3h3r6dspvlohdzq35lfgqyljn2pnmjomyvqrayhxlha"},
		"a ConfigMap, one key as env":   {consumed(settings, named("interval"), named()), "v1-isaezmj4ig23v22y5klks2ms62ppmczligjpwrz7zev77utgvgsa"},
		"a ConfigMap, all as env":       {consumed(settings, all, named()), "v1-a6rb2vgzpx4uwt7wegzeai7mmprhlbs7nqg2frndj7ed6366nrwq"},
		"a ConfigMap, some as files":    {consumed(settings, named(), named("app.yaml", "logo.png", "missing")), "v1-c2bkl6v2taa6writqc4ldpo6wqkly5hxdjpwm3ddzgz6b4vlfd2q"},
		"a ConfigMap, part env:*":       {settings.content(t).Of(settings.object, digest.Env, all), "v1-lrrbpqvvbu6j6zlysmkjscr5q5tlzeyn3hefuneg4jsagh3icvta"},
		"a ConfigMap, part file:KEY":    {settings.content(t).Of(settings.object, digest.File, named("logo.png")), "v1-gcbkfzy5vmk2owdfsdva52nutxfxs6mb3jwmamjkvw4owack2ora"},
		"a Secret, whole":               {db.content(t).Whole(db.object), "v1.e8e36500-27m3eceinietg6rjpxa7xxzpk5gwtpx3ubhbp4oiou65kflgwvrq"},
		"a Secret, one key as env":      {consumed(db, named("password"), named()), "v1.e8e36500-v5vktobghlp42anfya277o6zmnfwtkkzqvwjob7sbf3oneiyytea"},
		"an absent ConfigMap":           {gone.content(t).Whole(gone.object), "v1-hly7tkifemrajk4biccjbqkrelpc6j3bphetnsfel7mo4tgwqbaq"},
		"an absent ConfigMap, one key":  {consumed(gone, named("a"), named()), "v1-huolyczs6cc5hobhpbebqy3eakddqinrhozek4vjfu4x2thsgq5q"},
		"an absent Secret":              {goneSecret.content(t).Whole(goneSecret.object), "v1.e8e36500-y44kcizolssqbwhb3bfnpirw7eerrithcxxi7ynktupt4fliod4a"},
		"an empty ConfigMap":            {empty.content(t).Whole(empty.object), "v1-cbjgemblzuomh2zzbw7adk4l3jtpox7a2bvobm5sfdyws3fthyna"},
		"no parts":                      {digest.OfParts(nil), "v1-yptytwogog7iayoku6qablc3ovkqih5hznpw7rrwgjxncwudymeq"},
		"parts of all the above":        {digest.OfParts(partsOf(t, settings, db, gone, empty)), "v1.e8e36500-3p6c2644xxziv4nlcpwyxd5edjls2diftroir56efnzvxa5supcq"},
		"parts without a Secret's part": {digest.OfParts(partsOf(t, settings, gone)), "v1-yth65bmtcj7m4tmx3wfepfvtflra2fsailc7vxwfbj77qjql3fka"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.got != c.want {
				t.Errorf("got %s, want %s", c.got, c.want)
			}
		})
	}
	t.Run("a key's version", func(t *testing.T) {
		if got, want := mustKey(t, secretOf('k')).Version(), digest.Version("v1.e8e36500"); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

func partsOf(t *testing.T, configs ...config) []digest.Part {
	t.Helper()
	parts := make([]digest.Part, len(configs))
	for i, c := range configs {
		parts[i] = digest.Part{Object: c.object, Digest: c.content(t).Whole(c.object)}
	}
	return parts
}
