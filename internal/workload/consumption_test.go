package workload_test

import (
	"testing"

	"tidemark.dev/tidemark/internal/workload"
)

func TestKeys(t *testing.T) {
	t.Parallel()
	all, none, some := workload.Keys{All: true}, workload.Keys{}, workload.Keys{Names: []string{"a", "c"}}
	for name, c := range map[string]struct {
		keys  workload.Keys
		has   map[string]bool
		empty bool
	}{
		"all keys have every key, also the empty name": {all, map[string]bool{"a": true, "": true}, false},
		"no keys have none":                            {none, map[string]bool{"a": false, "": false}, true},
		"named keys have those named":                  {some, map[string]bool{"a": true, "b": false, "c": true, "d": false}, false},
	} {
		t.Run(name, func(t *testing.T) {
			for key, want := range c.has {
				if got := c.keys.Has(key); got != want {
					t.Errorf("has %q: got %v, want %v", key, got, want)
				}
			}
			if got := c.keys.Empty(); got != c.empty {
				t.Errorf("empty: got %v, want %v", got, c.empty)
			}
		})
	}
}

func TestConsumedOfNamedObjects(t *testing.T) {
	t.Parallel()
	settings := workload.Object{Kind: workload.ConfigMap, Namespace: namespace, Name: "settings"}
	named := workload.Reference{Object: settings, Source: workload.SourceNamed, Optional: true}
	env := workload.Reference{Object: settings, Source: workload.SourceEnv, Keys: []string{"a"}, Required: []string{"a"}}
	for name, c := range map[string]struct {
		refs []workload.Reference
		want []string
	}{
		"nothing referenced is nothing consumed": {nil, nil},
		"an object that is named only is read as files and required by nothing": {
			[]workload.Reference{named}, []string{"configmap/settings env=- files=* named"},
		},
		"an object that is named and referenced is not one that is named only": {
			[]workload.Reference{named, env}, []string{"configmap/settings env=a files=* required keys=a envkeys=a"},
		},
	} {
		t.Run(name, func(t *testing.T) { sameLines(t, "consumed", workload.Consumed(c.refs), describeUse, c.want...) })
	}
}

func TestWholeCountsEveryKeyAndRequiresNoMore(t *testing.T) {
	t.Parallel()
	refs := workload.References(namespace, template(t, `{containers: [{name: app, env: [
		{name: A, valueFrom: {configMapKeyRef: {name: settings, key: a}}}]}]}`))
	sameLines(t, "whole", []workload.Consumption{workload.Consumed(refs)[0].Whole()}, describeUse,
		"configmap/settings env=* files=* required keys=a envkeys=a")
}
