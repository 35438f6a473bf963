package fleet

import (
	"strings"

	"tidemark.dev/tidemark/internal/digest"
	"tidemark.dev/tidemark/internal/stamp"
	"tidemark.dev/tidemark/internal/workload"
)

// missingOf lists what the consumption requires and the content does not have.
func missingOf(use workload.Consumption, c digest.Content) []stamp.Missing {
	switch {
	case !use.Required:
		return nil
	case !c.Present:
		return []stamp.Missing{{Object: use.Object}}
	}
	var out []stamp.Missing
	for _, key := range use.RequiredKeys {
		if _, ok := c.Value(key); !ok {
			out = append(out, stamp.Missing{Object: use.Object, Key: key})
		}
	}
	for _, key := range use.RequiredEnv {
		_, file := c.Value(key)
		if _, ok := c.Data[key]; !ok && file {
			out = append(out, stamp.Missing{Object: use.Object, Key: key}) // in binaryData, which no environment sees
		}
	}
	return out
}

// describeMissing words what is missing: "configmap/a, key b of secret/c".
func describeMissing(missing []stamp.Missing, namespace string) string {
	words := make([]string, 0, len(missing))
	for _, m := range missing {
		name := m.Object.Relative(namespace)
		if m.Key != "" {
			name = "key " + m.Key + " of " + name
		}
		words = append(words, name)
	}
	return strings.Join(words, ", ")
}
