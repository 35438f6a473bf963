package webhook

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// The API server drops a warning that it cannot put into a header.
func TestAWarningReachesTheWriter(t *testing.T) {
	for name, text := range map[string]string{
		"one line":       "configmap/prices cannot be read",
		"joined errors":  errors.Join(errors.New("read configmap/prices: timeout"), errors.New("read configmap/rules:\ttimeout")).Error(),
		"too long a one": strings.Repeat("ä", maxRemark),
	} {
		t.Run(name, func(t *testing.T) {
			r, err := answer{remarks: []string{text}}.response()
			if err != nil || len(r.Warnings) != 1 {
				t.Fatalf("warnings %q, %v", r.Warnings, err)
			}
			got := r.Warnings[0]
			if _, err := utilnet.NewWarningHeader(299, "", got); err != nil || len(got) > maxRemark || !utf8.ValidString(got) {
				t.Errorf("the API server drops %q: %v", got, err)
			}
			if !strings.HasPrefix(got, "tidemark: "+text[:8]) || strings.Contains(text, "rules") && !strings.Contains(got, "; read configmap/rules:; timeout") {
				t.Errorf("it says %q", got)
			}
		})
	}
}
