package cluster

import (
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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

func TestAPatchTouchesNothingButWhatItNames(t *testing.T) {
	k, err := ParseKind("example.com/v1/Machine=spec.pod")
	if err != nil {
		t.Fatal(err)
	}
	stamp, none, other := "v1:abc", "", "gpu"
	for want, p := range map[string]Patch{
		`{"metadata":{"annotations":{"a":"v1:abc","b":null},"resourceVersion":"7"}}`: {
			ResourceVersion: "7", Annotations: map[string]*string{"a": &stamp, "b": nil},
		},
		`{"metadata":{},"spec":{"pod":{"metadata":{"annotations":{"a":"v1:abc"}}}}}`: {TemplateAnnotations: map[string]*string{"a": &stamp}},
		`{"metadata":{},"spec":{"pod":{"spec":{"schedulerName":null}}}}`:             {Scheduler: &none},
		`{"metadata":{},"spec":{"pod":{"metadata":{"annotations":{"a":"v1:abc"}},"spec":{"schedulerName":"gpu"}}}}`: {
			TemplateAnnotations: map[string]*string{"a": &stamp}, Scheduler: &other,
		},
	} {
		if got, err := k.JSON(p); err != nil || string(got) != want {
			t.Errorf("got %s, %v; want %s", got, err, want)
		}
	}
}

func TestWhatAnAnswerLacksIsNotKept(t *testing.T) {
	k, err := ParseKind("example.com/v1/Machine=spec.pod")
	if err != nil {
		t.Fatal(err)
	}
	stamp := "v1:abc"
	p := Patch{TemplateAnnotations: map[string]*string{"a": &stamp, "gone": nil}}
	for answer, want := range map[string]bool{
		`{"spec":{"pod":{"metadata":{"annotations":{"a":"v1:abc"}}}}}`: true,
		`{"spec":{"pod":{"metadata":{"annotations":{"a":"v1:old"}}}}}`: false,
		`{"spec":{"pod":{"metadata":{}}}}`:                             false,
		`{"spec":{"pod":{"spec":{}}}}`:                                 false,
	} {
		u := &unstructured.Unstructured{}
		if err := json.Unmarshal([]byte(answer), &u.Object); err != nil {
			t.Fatal(err)
		}
		if got := k.Keeps(u, p); got != want {
			t.Errorf("%s keeps %v, want %v", answer, got, want)
		}
	}
}
