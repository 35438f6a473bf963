package cli

import (
	"strings"
	"testing"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/fleet"
	"tidemark.dev/tidemark/internal/workload"
)

func TestValuesOfTheNextStart(t *testing.T) {
	config := workload.Object{Kind: workload.ConfigMap, Namespace: "mail", Name: "mailer"}
	secret := workload.Object{Kind: workload.Secret, Namespace: "mail", Name: "smtp"}
	has := func(text string) fleet.Value { return fleet.Value{There: true, Text: text, Kept: true} }
	lost := fleet.Value{There: true}
	change := func(o workload.Object, key string, c fleet.Change, from, to fleet.Value) fleet.KeyChange {
		return fleet.KeyChange{Object: o, Key: key, Change: c, Pods: 2, From: from, To: to}
	}
	blocked := change(config, "MODE", fleet.Removed, has("fast"), fleet.Value{})
	blocked.Blocks = true
	for name, tc := range map[string]struct {
		change fleet.KeyChange
		want   string
	}{
		"both kept":                    {change(config, "LEASE", fleet.Changed, has("10m"), has("2m")), `LEASE "10m" -> "2m" (2 pods)`},
		"the old one not kept":         {change(config, "LEASE", fleet.Changed, lost, has("2m")), `LEASE (value not kept) -> "2m" (2 pods)`},
		"none kept":                    {change(config, "LEASE", fleet.Changed, lost, lost), `LEASE changed, value not kept (2 pods)`},
		"an empty one":                 {change(config, "LEASE", fleet.Changed, has(""), has("2m")), `LEASE "" -> "2m" (2 pods)`},
		"a key that is new":            {change(config, "LEASE", fleet.Added, fleet.Value{}, has("2m")), `LEASE (none) -> "2m" (2 pods)`},
		"a key without which none":     {blocked, `MODE "fast" -> (none) (2 pods), would not start`},
		"what became a credential":     {change(config, "URL", fleet.Changed, has("db:5432"), has("pg://u:hunter2@db")), `URL changed, value not shown: it looks like a credential (2 pods)`},
		"of a Secret":                  {change(secret, "password", fleet.Changed, lost, lost), `password of secret/smtp changed (2 pods)`},
		"of a Secret, were there some": {change(secret, "user", fleet.Changed, has("MARKER"), has("MARKER")), `user of secret/smtp changed (2 pods)`},
		"not known":                    {change(config, "", fleet.Unsure, fleet.Value{}, fleet.Value{}), `configmap/mailer not known (2 pods)`},
	} {
		t.Run(name, func(t *testing.T) {
			k := v1.NextStartKey{Object: tc.change.Object.String(), Key: tc.change.Key, Change: string(tc.change.Change), Pods: 2, Blocks: tc.change.Blocks}
			k.From, k.FromNote, k.To, k.ToNote = shownValues(tc.change)
			if got := keyText("mail", k); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
			for _, text := range []*string{k.From, k.To} {
				if text != nil && (strings.Contains(*text, "hunter2") || strings.Contains(*text, "MARKER")) {
					t.Errorf("it shows %q", *text)
				}
			}
		})
	}
}
