package cluster

import (
	"strings"
	"testing"
)

func TestParseKind(t *testing.T) {
	for text, want := range map[string]string{
		"example.com/v1/Machine":                  "example.com/v1/Machine=spec.template",
		"example.com/v1/Machine=.spec.job.pod":    "example.com/v1/Machine=spec.job.pod",
		"/v1/PodTemplate=template":                "/v1/PodTemplate=template",
		"example.com/v1/Machine=spec..pod":        "error: an empty field",
		"example.com/Machine":                     "error: want GROUP/VERSION/KIND",
		"example.com/v1/":                         "error: want GROUP/VERSION/KIND",
		"example.com/v1/Machine=metadata.pod":     "error: no pod template is in metadata",
		"example.com/v1/Machine=status.lastKnown": "error: no pod template is in status",
	} {
		k, err := ParseKind(text)
		got := k.String()
		if err != nil {
			got = "error: " + err.Error()
		}
		if failure, wantsError := strings.CutPrefix(want, "error: "); wantsError {
			if err == nil || !strings.Contains(got, failure) {
				t.Errorf("%s: got %s, want an error that says %q", text, got, failure)
			}
		} else if got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}
