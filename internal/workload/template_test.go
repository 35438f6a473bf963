package workload_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	"tidemark.dev/tidemark/internal/workload"
)

const namespace = "shop"

// template reads the spec of a pod template, and knows every field of it.
func template(t *testing.T, spec string) *corev1.PodTemplateSpec {
	t.Helper()
	// The document mark keeps a spec in braces from being taken for JSON, and YAML knows no tabs.
	data, err := yaml.ToJSON([]byte("---\n" + strings.ReplaceAll(spec, "\t", "  ")))
	if err != nil {
		t.Fatalf("read template: %v", err)
	}
	var out corev1.PodTemplateSpec
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&out.Spec); err != nil {
		t.Fatalf("read template: %v", err)
	}
	return &out
}

// describe writes a reference as one line, leaving out what is not set.
func describe(r workload.Reference) string {
	var words []string
	say := func(format string, args ...any) { words = append(words, fmt.Sprintf(format, args...)) }
	if r.Container != "" {
		say("%s/%s", r.Role, r.Container)
	} else {
		say("pod")
	}
	say("%s %s", r.Source, r.Object.Relative(namespace))
	say("keys=%s", list(r.Keys))
	if r.Required != nil {
		say("required=%s", list(r.Required))
	}
	if r.Optional {
		say("optional")
	}
	if r.Prefix != "" {
		say("prefix=%s", r.Prefix)
	}
	if r.EnvName != "" {
		say("as=%s", r.EnvName)
	}
	if r.Volume != "" {
		say("volume=%s", r.Volume)
	}
	if r.MountPath != "" {
		say("at=%s", r.MountPath)
	}
	if r.SubPath != "" {
		say("sub=%s", r.SubPath)
	}
	if r.Refreshed {
		say("refreshed")
	}
	return strings.Join(words, " ")
}

// list writes keys as "a,b", none as "-", and all as "*".
func list(keys []string) string {
	switch {
	case keys == nil:
		return "*"
	case len(keys) == 0:
		return "-"
	}
	return strings.Join(keys, ",")
}

// describeUse writes a consumption as one line.
func describeUse(c workload.Consumption) string {
	words := []string{c.Object.Relative(namespace), "env=" + describeKeys(c.Env), "files=" + describeKeys(c.Files)}
	say := func(yes bool, word string) {
		if yes {
			words = append(words, word)
		}
	}
	say(c.Required, "required")
	say(len(c.RequiredKeys) > 0, "keys="+list(c.RequiredKeys))
	say(len(c.RequiredEnv) > 0, "envkeys="+list(c.RequiredEnv))
	say(c.Refreshed, "refreshed")
	say(c.Named, "named")
	return strings.Join(words, " ")
}

func describeKeys(k workload.Keys) string {
	if k.All {
		return "*"
	}
	return list(append([]string{}, k.Names...))
}

// sameLines compares what was got, line by line, with what was wanted.
func sameLines[T any](t *testing.T, what string, got []T, describe func(T) string, want ...string) {
	t.Helper()
	lines := make([]string, len(got))
	for i, g := range got {
		lines[i] = describe(g)
	}
	if g, w := strings.Join(lines, "\n  "), strings.Join(want, "\n  "); g != w {
		t.Errorf("%s: got\n  %s\nwant\n  %s", what, g, w)
	}
}
