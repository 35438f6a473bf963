package controller

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tidemark.dev/tidemark/internal/fleet"
	"tidemark.dev/tidemark/internal/notify"
	"tidemark.dev/tidemark/internal/workload"
)

func TestValuesAreShownWhereTheObjectSaysSoAndOnlyThere(t *testing.T) {
	t.Parallel()
	kept := func(text string) fleet.Value { return fleet.Value{There: true, Kept: true, Text: text} }
	change := func(o workload.Object, key string, from, to fleet.Value) fleet.KeyChange {
		return fleet.KeyChange{Object: o, Key: key, Pods: 18, Change: fleet.Changed, From: from, To: to}
	}
	secret := workload.Object{Kind: workload.Secret, Namespace: "mail", Name: "door"}
	silent := workload.Object{Kind: workload.ConfigMap, Namespace: "mail", Name: "silent"}
	for name, c := range map[string]struct {
		change fleet.KeyChange
		want   string
	}{
		"both values":                {change(sender, "LEASE", kept("10m"), kept("2m")), `"10m" → "2m" (18 pods)`},
		"one that was not kept":      {change(sender, "LEASE", fleet.Value{There: true}, kept("2m")), `(value not kept) → "2m" (18 pods)`},
		"a key that is new":          {change(sender, "LEASE", fleet.Value{}, kept("2m")), `(none) → "2m" (18 pods)`},
		"a long one, of many lines":  {change(sender, "LEASE", kept(strings.Repeat("x", 100)+"\nmore"), kept("a\nb")), `"` + strings.Repeat("x", 80) + `…" → "a" (18 pods)`},
		"a password by its name":     {change(sender, "DB_PASSWORD", kept("10m"), kept("2m")), "(not shown) → (not shown: it looks like a credential) (18 pods)"},
		"a token by its shape":       {change(sender, "LEASE", kept("xoxb-1-planted"), kept("2m")), "(not shown) → (not shown: it looks like a credential) (18 pods)"},
		"an object that is silent":   {change(silent, "LEASE", kept("10m"), kept("2m")), ""},
		"a Secret, whatever it says": {change(secret, "LEASE", kept("10m"), kept("2m")), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var want []notify.Fact
			if c.want != "" {
				want = []notify.Fact{{Name: "configmap/sender-config " + c.change.Key, Value: c.want}}
			}
			if diff := cmp.Diff(want, factsOfValues("mail", []fleet.KeyChange{c.change}, []workload.Object{sender, secret})); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	var many []fleet.KeyChange
	for i := range 9 {
		many = append(many, change(sender, fmt.Sprint("K", i), kept("1"), kept("2")))
	}
	if got := factsOfValues("mail", many, []workload.Object{sender}); len(got) != maxShown+1 || got[maxShown].Value != "4 keys more" {
		t.Errorf("got %v", got)
	}
}
