package cluster

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidemark.dev/tidemark/internal/workload"
)

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

func managed(manager string, at time.Time, fields string) metav1.ManagedFieldsEntry {
	when := metav1.NewTime(at)
	f := &metav1.FieldsV1{}
	f.SetRawBytes([]byte(fields))
	return metav1.ManagedFieldsEntry{Manager: manager, Time: &when, FieldsV1: f}
}

func TestWritesOf(t *testing.T) {
	env := func(keys ...string) workload.Consumption {
		return workload.Consumption{Env: workload.Keys{Names: keys}}
	}
	files := func(keys ...string) workload.Consumption {
		return workload.Consumption{Files: workload.Keys{Names: keys}}
	}
	status := managed("status", noon.Add(9*time.Hour), `{"f:data":{"f:level":{}}}`)
	status.Subresource = "status"
	meta := &metav1.ObjectMeta{
		CreationTimestamp: metav1.NewTime(noon),
		ManagedFields: []metav1.ManagedFieldsEntry{
			managed("helm", noon, `{"f:data":{".":{},"f:level":{},"f:name":{}},"f:metadata":{"f:labels":{}}}`),
			managed("kubectl-edit", noon.Add(time.Hour), `{"f:data":{"f:level":{}}}`),
			managed("image", noon.Add(2*time.Hour), `{"f:binaryData":{"f:logo":{}}}`),
			managed("vault", noon.Add(3*time.Hour), `{"f:stringData":{"f:password":{}}}`),
			managed("labeller", noon.Add(4*time.Hour), `{"f:metadata":{"f:labels":{"f:a":{}}}}`),
			managed("broken", noon.Add(5*time.Hour), `{"f:data":`),
			status,
		},
	}
	for name, tc := range map[string]struct {
		use  workload.Consumption
		want Write
	}{
		"a key that was edited":                      {env("level"), Write{noon.Add(time.Hour), "kubectl-edit"}},
		"a key that was not edited":                  {env("name"), Write{noon, "helm"}},
		"binary data as a file":                      {files("logo"), Write{noon.Add(2 * time.Hour), "image"}},
		"binary data is not seen by the environment": {env("logo"), Write{noon, "its creator"}},
		"a Secret written with stringData":           {env("password"), Write{noon.Add(3 * time.Hour), "vault"}},
		"every key":                                  {workload.Consumption{Files: workload.Keys{All: true}}, Write{noon.Add(3 * time.Hour), "vault"}},
		"every key of the environment":               {workload.Consumption{Env: workload.Keys{All: true}}, Write{noon.Add(3 * time.Hour), "vault"}},
		"a key that nobody owns":                     {env("absent"), Write{noon, "its creator"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := WritesOf(meta).Newest(tc.use); got.By != tc.want.By || !got.At.Equal(tc.want.At) {
				t.Errorf("newest write %v, want %v", got, tc.want)
			}
		})
	}
	if got, want := WritesOf(meta).Keys(), []string{"level", "logo", "name", "password"}; !slices.Equal(got, want) {
		t.Errorf("keys %v, want %v", got, want)
	}
}
