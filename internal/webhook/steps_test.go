package webhook

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
)

// applied carries the steps out, as the API server does.
func applied(t *testing.T, raw []byte, steps []operation) []byte {
	t.Helper()
	var root any
	if err := json.Unmarshal(raw, &root); err != nil {
		t.Fatal(err)
	}
	for _, step := range steps {
		fields := strings.Split(strings.TrimPrefix(step.Path, "/"), "/")
		at := root
		for i, field := range fields {
			field = strings.NewReplacer("~1", "/", "~0", "~").Replace(field)
			last := i == len(fields)-1
			switch inner := at.(type) {
			case []any:
				n, err := strconv.Atoi(field)
				if err != nil || n >= len(inner) {
					t.Fatalf("%s: there is no %s", step.Path, field)
				}
				if last {
					t.Fatalf("%s: no step replaces an entry of a list", step.Path)
				}
				at = inner[n]
			case map[string]any:
				_, has := inner[field]
				switch {
				case !last && !has, last && !has && step.Op != "add":
					t.Fatalf("%s %s: there is no %s", step.Op, step.Path, field)
				case !last:
					at = inner[field]
				case step.Op == "remove":
					delete(inner, field)
				default:
					inner[field] = step.Value
				}
			default:
				t.Fatalf("%s: %s is below %T", step.Path, field, at)
			}
		}
	}
	out, err := json.Marshal(root)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
