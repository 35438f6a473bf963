package workload_test

import (
	"slices"
	"testing"

	"tidemark.dev/tidemark/internal/workload"
)

func TestParseObject(t *testing.T) {
	t.Parallel()
	configMap := func(ns, name string) workload.Object {
		return workload.Object{Kind: workload.ConfigMap, Namespace: ns, Name: name}
	}
	for name, c := range map[string]struct {
		text string
		want workload.Object
		bad  bool
	}{
		"a name alone is of the given namespace":   {text: "configmap/settings", want: configMap("shop", "settings")},
		"a name with a namespace is of that one":   {text: "configmap/billing/rates.v1", want: configMap("billing", "rates.v1")},
		"a secret is a Secret":                     {text: "secret/db", want: workload.Object{Kind: workload.Secret, Namespace: "shop", Name: "db"}},
		"nothing is no object":                     {text: "", bad: true},
		"a kind alone is no object":                {text: "configmap", bad: true},
		"a kind without a name is no object":       {text: "configmap/", bad: true},
		"an empty namespace is no object":          {text: "configmap//settings", bad: true},
		"an empty name is no object":               {text: "configmap/billing/", bad: true},
		"four parts are no object":                 {text: "configmap/a/b/c", bad: true},
		"another kind is no object":                {text: "pod/app", bad: true},
		"the kind is written in lower case":        {text: "ConfigMap/settings", bad: true},
		"a path is no object":                      {text: "configmap/../settings", bad: true},
		"a name that no object can have is no one": {text: "configmap/a,b=c", bad: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := workload.ParseObject(c.text, namespace)
			if (err != nil) != c.bad || got != c.want {
				t.Errorf("got %v, %v; want %v, error %v", got, err, c.want, c.bad)
			}
		})
	}
}

func TestObjectsAreOrderedByKindNamespaceAndName(t *testing.T) {
	t.Parallel()
	want := []string{"configmap/a/x", "configmap/a/y", "configmap/b/x", "secret/a/x", "secret/b/a"}
	got := make([]workload.Object, 0, len(want))
	for _, s := range want {
		o, err := workload.ParseObject(s, namespace)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, o)
	}
	slices.Reverse(got)
	slices.SortFunc(got, workload.Object.Compare)
	sameLines(t, "order", got, workload.Object.String, want...)
}

func FuzzParseObject(f *testing.F) {
	for _, s := range []string{"", "/", "configmap/settings", "secret/billing/db", "configmap//x", "configmap/a/b/c", "secret/..", "configmap/é"} {
		f.Add(s, namespace)
	}
	f.Fuzz(func(t *testing.T, s, ns string) {
		o, err := workload.ParseObject(s, ns)
		if err != nil {
			return
		}
		for _, text := range []string{o.String(), o.Relative(ns), o.Relative("elsewhere")} {
			if again, err := workload.ParseObject(text, ns); err != nil || (again != o && text != o.Relative("elsewhere")) {
				t.Errorf("%q reads as %v, written as %q it reads as %v, %v", s, o, text, again, err)
			}
		}
	})
}
