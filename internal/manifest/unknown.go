package manifest

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// reading matches what a pod template that reads configuration has.
var reading = regexp.MustCompile(`\b(configMapKeyRef|secretKeyRef|configMapRef|secretRef|configMap|secretName)"?:`)

// mayHaveTemplate reports whether an object of a kind that nobody asks for is worth a look: a definition describes templates, and has
// none.
func mayHaveTemplate(kind, text string) bool {
	return kind != "CustomResourceDefinition" && strings.Contains(text, "containers") && reading.MatchString(text)
}

// unknown remarks an object of a kind that nobody asks for, if it has a pod template all the same: what that reads is not looked at.
func (r *reader) unknown(kind string, m map[string]any) {
	if path := templatePath(m); len(path) > 0 {
		version := text(m, "apiVersion")
		if !strings.Contains(version, "/") {
			version = "/" + version
		}
		r.remarks = append(r.remarks, fmt.Sprintf("what objects of kind %s read is not looked at: name the kind by --kind %s/%s=%s",
			kind, version, kind, strings.Join(path, ".")))
	}
}

// templatePath are the fields that lead to the pod template in an object; none where there is none. In a list there may be many, to
// which no path leads.
func templatePath(m map[string]any) []string {
	if _, has := object(m, "spec")["containers"].([]any); has {
		return []string{}
	}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		below, isMap := m[key].(map[string]any)
		if !isMap || key == "metadata" || key == "status" {
			continue
		}
		if path := templatePath(below); path != nil {
			return append([]string{key}, path...)
		}
	}
	return nil
}
