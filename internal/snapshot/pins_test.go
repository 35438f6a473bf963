package snapshot_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tidemark.dev/tidemark/internal/snapshot"
	"tidemark.dev/tidemark/internal/workload"
)

func object(kind workload.ObjectKind, name string) workload.Object {
	return workload.Object{Kind: kind, Namespace: "shop", Name: name}
}

func TestParsePins(t *testing.T) {
	a, s := object(workload.ConfigMap, "a"), object(workload.Secret, "a")
	for text, want := range map[string]snapshot.Pins{
		"":                                       nil,
		"configmap/a=a-1":                        {a: "a-1"},
		"configmap/a=a-1,secret/a=a-2":           {a: "a-1", s: "a-2"},
		"secret/a=a-2,configmap/a=a-1":           {a: "a-1", s: "a-2"},
		"configmap/a.b=absent.tidemark.dev":      {object(workload.ConfigMap, "a.b"): "absent.tidemark.dev"},
		"configmap/shop.example=shop.example-q2": {object(workload.ConfigMap, "shop.example"): "shop.example-q2"},
	} {
		got, err := snapshot.ParsePins("shop", text)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%q: error %v, pins (-want +got):\n%s", text, err, diff)
		}
	}
}

func TestParsePinsRefusesWhatItDoesNotUnderstand(t *testing.T) {
	for text, want := range map[string]string{
		"configmap/a":                    `entry "configmap/a"`,
		"configmap/a=":                   `entry "configmap/a="`,
		"configmap/a=A":                  `entry "configmap/a=A"`,
		"configmap/a=b=c":                `entry "configmap/a=b=c"`,
		"configmap/a=b,":                 `entry ""`,
		"configmap/a=b, secret/a=b":      `entry " secret/a=b"`,
		"pod/a=b":                        `entry "pod/a=b"`,
		"a=b":                            `entry "a=b"`,
		"configmap/shop/a=b":             "other namespaces",
		"configmap/other/a=b":            "other namespaces",
		"configmap/a=b,configmap/a=c":    "configmap/a is named twice",
		"configmap/a=b\nconfigmap/c=d":   "configmap/a=b",
		"configmap/a=" + long("b", 254):  "entry",
		"configmap/" + long("a", 254):    "entry",
		"configmap/a=b,configmap/a=b":    "named twice",
		"ConfigMap/a=b":                  `entry "ConfigMap/a=b"`,
		"configmap/kube-root-ca.crt /=b": "entry",
	} {
		got, err := snapshot.ParsePins("shop", text)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "tidemark.dev/pins") || got != nil {
			t.Errorf("%q: pins %v, error %v, want none and one with %q and the annotation", text, got, err, want)
		}
	}
}

func long(s string, n int) string { return strings.Repeat(s, n) }

func FuzzPins(f *testing.F) {
	f.Add("configmap/a=a-1,secret/a=absent.tidemark.dev")
	f.Fuzz(func(t *testing.T, text string) {
		pins, err := snapshot.ParsePins("shop", text)
		if err != nil {
			return
		}
		again, err := snapshot.ParsePins("shop", pins.String())
		if diff := cmp.Diff(pins, again); diff != "" || err != nil {
			t.Errorf("error %v, read back (-want +got):\n%s", err, diff)
		}
	})
}
