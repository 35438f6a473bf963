package webhook

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tidemark.dev/tidemark/internal/cluster"
)

func TestStepsSetWhatAPatchSets(t *testing.T) {
	text := func(s string) *string { return &s }
	deployment := cluster.BuiltinKinds()[0]
	for name, tc := range map[string]struct {
		object string
		patch  cluster.Patch
		want   string
	}{
		"a map that is there gets the keys": {
			object: `{"metadata":{"annotations":{"a":"1"}}}`,
			patch:  cluster.Patch{Annotations: map[string]*string{"tidemark.dev/record": text("r")}},
			want:   `[{"op":"add","path":"/metadata/annotations/tidemark.dev~1record","value":"r"}]`,
		},
		"a map that is not there is made": {
			object: `{"metadata":{}}`,
			patch:  cluster.Patch{Labels: map[string]*string{"a~b": text("1"), "c": nil}},
			want:   `[{"op":"add","path":"/metadata","value":{"labels":{"a~b":"1"}}}]`,
		},
		"a template without metadata gets some": {
			object: `{"metadata":{"name":"x"},"spec":{"template":{"spec":{}}}}`,
			patch:  cluster.Patch{TemplateAnnotations: map[string]*string{"h": text("1")}},
			want:   `[{"op":"add","path":"/spec/template/metadata","value":{"annotations":{"h":"1"}}}]`,
		},
		"a map that is null is made": {
			object: `{"metadata":{"annotations":null,"name":"x"}}`,
			patch:  cluster.Patch{Annotations: map[string]*string{"a": text("1")}},
			want:   `[{"op":"add","path":"/metadata/annotations","value":{"a":"1"}}]`,
		},
		"what is there already needs no step": {
			object: `{"metadata":{"annotations":{"a":"1"}}}`,
			patch:  cluster.Patch{Annotations: map[string]*string{"a": text("1")}},
			want:   `null`,
		},
		"an empty value is a value": {
			object: `{"metadata":{"annotations":{"a":"1"}}}`,
			patch:  cluster.Patch{Annotations: map[string]*string{"a": text("")}},
			want:   `[{"op":"add","path":"/metadata/annotations/a","value":""}]`,
		},
		"what is not there need not be removed": {
			object: `{"metadata":{"annotations":{"a":"1"}}}`,
			patch:  cluster.Patch{Annotations: map[string]*string{"b": nil}, Labels: map[string]*string{"c": nil}},
			want:   `null`,
		},
		"nil removes": {
			object: `{"spec":{"template":{"metadata":{"annotations":{"tidemark.dev/pins":"p"}}}}}`,
			patch:  cluster.Patch{TemplateAnnotations: map[string]*string{"tidemark.dev/pins": nil}},
			want:   `[{"op":"remove","path":"/spec/template/metadata/annotations/tidemark.dev~1pins"}]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var object map[string]any
			if err := json.Unmarshal([]byte(tc.object), &object); err != nil {
				t.Fatal(err)
			}
			got, err := json.Marshal(operations(object, deployment, tc.patch))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
