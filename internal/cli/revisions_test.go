package cli

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/cluster/revisions"
	"tidemark.dev/tidemark/internal/revision"
	"tidemark.dev/tidemark/internal/snapshot"
	"tidemark.dev/tidemark/internal/stamp"
	"tidemark.dev/tidemark/internal/workload"
)

func object(kind workload.ObjectKind, name string) workload.Object {
	return workload.Object{Kind: kind, Namespace: "shop", Name: name}
}

// pricing are the revisions of a Deployment that changed its image and its configuration: 5 is the one in between.
func pricing(t *testing.T) *revisions.History {
	t.Helper()
	config, extra, door := object(workload.ConfigMap, "pricing"), object(workload.ConfigMap, "extra"), object(workload.Secret, "door")
	template := func(image, limit string, pins snapshot.Pins) *corev1.PodTemplateSpec {
		out := &corev1.PodTemplateSpec{}
		err := yaml.UnmarshalStrict([]byte(`
metadata: {labels: {app: pricing}, annotations: {tidemark.dev/config-hash: `+"v1-stamp-"+image+`}}
spec:
  initContainers: [{name: prepare, image: busybox}]
  containers:
  - name: app
    image: pricing:`+image+`
    args: [--limit, "`+limit+`"]
    env: [{name: PASSWORD, value: "open-`+limit+`"}, {name: DOOR, valueFrom: {secretKeyRef: {name: door, key: code}}}]
    envFrom: [{configMapRef: {name: pricing}}, {configMapRef: {name: extra, optional: true}}]
`), out)
		if err != nil {
			t.Fatal(err)
		}
		if len(pins) > 0 {
			out.Annotations[v1.AnnotationPins] = pins.String()
		}
		return out
	}
	revisionOf := func(number int64, age time.Duration, name string, template *corev1.PodTemplateSpec) revision.Revision {
		pins, err := snapshot.ParsePins("shop", template.Annotations[v1.AnnotationPins])
		if err != nil {
			t.Fatal(err)
		}
		return revision.Revision{
			Number: number, Name: "pricing-" + name, Hash: name, Created: ago(age), Namespace: "shop", Template: template, Pins: pins,
			Availability: revision.Unknown, Evidence: "nothing tells", Pods: revision.Pods{Known: true},
		}
	}
	one := snapshot.Pins{config: "pricing-aaaaaaaaaa", extra: v1.AbsentName}
	two := snapshot.Pins{config: "pricing-bbbbbbbbbb", extra: "extra-cccccccccc", door: "door-dddddddddd"}
	gone := snapshot.Pins{config: "pricing-zzzzzzzzzz"}
	first := revisionOf(2, 40*day, "2a", template("0.9", "10", nil))
	second := revisionOf(3, 30*day, "3a", template("1.0", "10", gone))
	third := revisionOf(4, 20*day, "4a", template("1.1", "10", one))
	third.Availability, third.Evidence, third.Cause, third.Former = revision.Proven, "Tidemark saw an available pod of it", "release 1.1", []int64{1}
	between := revisionOf(5, time.Hour, "5a", template("2.0", "20", one))
	current := revisionOf(6, time.Hour-time.Second, "6a", template("2.0", "20", two))
	current.Current, current.Pods = true, revision.Pods{Known: true, All: 4, Ready: 2, Available: 1}
	return &revisions.History{
		Target: cluster.Target{Kind: cluster.BuiltinKinds()[0], Namespace: "shop", Name: "pricing"}, UID: "uid-4",
		Now: now, Mode: stamp.Pin, Revisions: []revision.Revision{first, second, third, between, current},
		Copies: revision.Copies{
			object(workload.ConfigMap, "pricing-aaaaaaaaaa"): {State: revision.CopyThere, Revision: 3},
			object(workload.ConfigMap, "pricing-bbbbbbbbbb"): {State: revision.CopyThere, Revision: 4},
			object(workload.ConfigMap, "pricing-zzzzzzzzzz"): {State: revision.CopyGone, Why: "configmap/pricing-zzzzzzzzzz does not exist"},
			object(workload.ConfigMap, "extra-cccccccccc"):   {State: revision.CopyThere},
			object(workload.Secret, "door-dddddddddd"):       {State: revision.CopyThere, Revision: 1},
		},
	}
}

func TestHistoryPrints(t *testing.T) {
	for format, file := range map[string]string{"": "history.txt", "wide": "history.wide", "json": "history.json", "name": "history.name"} {
		t.Run("as "+format, func(t *testing.T) {
			out := &bytes.Buffer{}
			o := &historyOptions{output: format, look: func(context.Context) (*revisions.History, error) { return pricing(t), nil }}
			o.Out = out
			if err := o.run(t.Context()); err != nil {
				t.Fatal(err)
			}
			golden(t, file, out.String())
		})
	}
}

// contents are what config objects hold, by their names.
type contents map[string]map[string]string

func (c contents) Read(_ context.Context, o workload.Object) (revisions.Held, error) {
	data, has := c[o.Name]
	if why, refused := data["refused"]; refused {
		return revisions.Held{Problem: why}, nil
	}
	held := revisions.Held{Content: revision.Content{Present: has, Data: map[string][]byte{}}}
	for key, value := range data {
		held.Data[key] = []byte(value)
	}
	return held, nil
}

func (c contents) ReadCopy(ctx context.Context, r revision.Reading) (revisions.Held, error) {
	copied, _ := r.Copy()
	return c.Read(ctx, copied)
}

// stored has what the copies of pricing hold, and what is applied.
func stored() contents {
	file := func(lease, password, end string) string {
		return "server:\n  port: 8080\n  host: all\n  lines: 3\n  more: 4\n  lease: " + lease + "\n  a: 1\n  b: 2\n  c: 3\n  d: 4\n  e: 5\n" +
			"  password: " + password + "\n  f: 6\n" + end
	}
	return contents{
		"pricing-aaaaaaaaaa": {
			"MODE": "one", "OLD": "x", "API_TOKEN": "t1", "same": "1", "app.yaml": file("10m", "open-sesame", ""), "unicode": "grün",
			"keys.pem": "-----BEGIN KEY-----\nMARKER1\n-----END KEY-----\n", "raw": "\x00\x01",
		},
		"pricing-bbbbbbbbbb": {
			"MODE": "two", "NEW": "y", "API_TOKEN": "t2", "same": "1", "app.yaml": file("2m", "open-barley", "  g: 7\n"), "unicode": "blau",
			"keys.pem": "-----BEGIN KEY-----\nMARKER2\n-----END KEY-----\n", "raw": "\x00\x02",
		},
		"extra-cccccccccc": {"MORE": "1"},
		"door-dddddddddd":  {"code": "MARKER3", "gone": "MARKER4"},
		"door":             {"code": "MARKER5", "fresh": "MARKER6"},
		"pricing":          {"MODE": "three"},
	}
}

func sides(t *testing.T, h *revisions.History, from, to string) (side, side) {
	t.Helper()
	a, err := sideOf(h, from)
	if err != nil {
		t.Fatal(err)
	}
	b, err := sideOf(h, to)
	if err != nil {
		t.Fatal(err)
	}
	return a, b
}

func TestDiffPrints(t *testing.T) {
	for name, tc := range map[string][2]string{
		"revisions": {"4", "6"}, "applied": {"current", "applied"}, "none": {"6", "current"}, "between": {"5", "6"},
	} {
		t.Run(name, func(t *testing.T) {
			h := pricing(t)
			from, to := sides(t, h, tc[0], tc[1])
			d, err := compare(t.Context(), h, stored(), from, to)
			if err != nil {
				t.Fatal(err)
			}
			text, document := &bytes.Buffer{}, &bytes.Buffer{}
			if err := printDifference(text, d); err != nil {
				t.Fatal(err)
			}
			if err := printDocument(document, "json", d.Difference); err != nil {
				t.Fatal(err)
			}
			golden(t, "diff-"+name+".txt", text.String())
			golden(t, "diff-"+name+".json", document.String())
			if all := text.String() + document.String(); strings.Contains(all, "MARKER") || strings.Contains(all, "open-") {
				t.Error("a value is shown that must not be")
			}
		})
	}
}

func TestDiffOfWhatMayNotBeReadSaysSo(t *testing.T) {
	h, c := pricing(t), stored()
	c["door"] = map[string]string{"refused": "missing the right to get secrets in namespace shop"}
	from, to := sides(t, h, "current", "applied")
	d, err := compare(t.Context(), h, c, from, to)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range d.Configuration {
		if o.Object == "secret/shop/door" && o.Note == "not compared: missing the right to get secrets in namespace shop" && len(o.Keys) == 0 {
			return
		}
	}
	t.Errorf("configuration %+v", d.Configuration)
}

func TestDiffChoosesItsSides(t *testing.T) {
	for args, want := range map[string]string{
		"":                "revision 4 > revision 6 (current)",
		"5":               "revision 5 > revision 6 (current)",
		"3 4":             "revision 3 > revision 4",
		"applied":         "what is applied > revision 6 (current)",
		"current applied": "revision 6 (current) > what is applied",
		"9":               "error: there is no revision 9",
		"1":               "error: it is revision 4 now",
		"web":             "error: write its number",
	} {
		t.Run(args, func(t *testing.T) {
			from, to, err := (&diffOptions{sides: strings.Fields(args)}).choose(pricing(t))
			got := from.text() + " > " + to.text()
			if part, is := strings.CutPrefix(want, "error: "); is {
				if err == nil || !strings.Contains(err.Error(), part) {
					t.Errorf("error %v, want %q", err, part)
				}
				return
			}
			if err != nil || got != want {
				t.Errorf("%s, error %v; want %s", got, err, want)
			}
		})
	}
}

func TestValuesThatLookLikeCredentialsAreMasked(t *testing.T) {
	for name, tc := range map[string]struct{ key, value, want string }{
		"a plain value":                      {"MODE", "one", "one"},
		"a file without any":                 {"app.yaml", "a: 1\nb: 2\n", "a: 1\nb: 2\n"},
		"a key that names one":               {"API_TOKEN", "a\nb", ""},
		"a value of one line":                {"url", "postgres://user:open@host/db", ""},
		"a line of a file":                   {"app.yaml", "a: 1\npassword: open\nb: 2", "a: 1\n" + maskedLine + "\nb: 2"},
		"a line of properties":               {"app.properties", "a=1\ndb.password=open\n", "a=1\n" + maskedLine + "\n"},
		"a line of JSON":                     {"app.json", "{\n \"a\": 1,\n \"token\": \"open\",\n \"b\": 2\n}", "{\n \"a\": 1,\n" + maskedLine + "\n \"b\": 2\n}"},
		"an address with a password":         {"app.yaml", "a: 1\nurl: postgres://user:open@host\n", "a: 1\n" + maskedLine + "\n"},
		"a block that follows":               {"app.yaml", "password: |\n  open\n", ""},
		"a list that follows":                {"app.yaml", "tokens:\n- open\n- sesame\n", ""},
		"a value on the next line":           {"app.yaml", "password: open\n  sesame\n", ""},
		"a name with its value below":        {"app.yaml", "- name: PASSWORD\n  value: open\n", ""},
		"the same without deeper lines":      {"app.yaml", "name: PASSWORD\nvalue: open\n", ""},
		"a list in brackets":                 {"app.json", "{\"tokens\": [\n\"open\"\n]}", ""},
		"a line that goes on":                {"app.properties", "password=op\\\nen\n", ""},
		"a key in PEM":                       {"app.yaml", "a: 1\n-----BEGIN KEY-----\nopen\n-----END KEY-----\n", ""},
		"a key in PEM that a line begins":    {"app.yaml", "key: -----BEGIN KEY-----\nopen\n", ""},
		"a comment, which gives no value":    {"app.yaml", "# the token is below\nx: open\n", ""},
		"a setting of XML":                   {"app.xml", "<password>\nopen\n</password>", ""},
		"bytes":                              {"raw", "\x00", ""},
		"words that only look like a secret": {"app.yaml", "a: 1\nsecretName: web\n", "a: 1\n" + maskedLine + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got, note := maskedValue(tc.key, tc.value)
			if got != tc.want {
				t.Errorf("%q (%s), want %q", got, note, tc.want)
			}
			if (got == tc.value) != (note == "") {
				t.Errorf("note %q", note)
			}
		})
	}
}

func TestFieldsThatLookLikeCredentialsAreMasked(t *testing.T) {
	for _, tc := range []struct {
		path, value string
		want        bool
	}{
		{"spec.containers[app].env[PASSWORD].value", "open", true},
		{"spec.containers[token-service].env[MODE].value", "one", false},
		{"spec.containers[app].env[PASSWORD].valueFrom.secretKeyRef.name", "door-password", false},
		{"spec.containers[app].envFrom[0].secretRef.name", "token", false},
		{"spec.volumes[secrets].secret.secretName", "credentials", false},
		{"spec.containers[app].args", `["--password","open"]`, true},
		{"spec.containers[app].volumeMounts[/etc/secrets].readOnly", "true", false},
		{"metadata.annotations[example.com/api-key]", "open", true},
		{"metadata.annotations.token", "open", true},
		{"metadata.labels.app", "web", false},
	} {
		if got := fieldLooksLikeCredential(tc.path, tc.value); got != tc.want {
			t.Errorf("%s = %s: %t, want %t", tc.path, tc.value, got, tc.want)
		}
	}
}

func TestVersionsOfCopiesAreShort(t *testing.T) {
	h := pricing(t)
	var got []string
	for _, r := range h.Revisions[4].Readings() {
		got = append(got, version(h, r))
	}
	if diff := cmp.Diff([]string{"cccccccccc", "4", "1"}, got); diff != "" {
		t.Error(diff)
	}
}
