package reported

import (
	"encoding/json"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"tidemark.dev/tidemark/internal/digest"
	"tidemark.dev/tidemark/internal/fleet"
	"tidemark.dev/tidemark/internal/workload"
)

// Errors of answers that are not of the form. None repeats a part of the answer.
var (
	errNoReport  = errors.New("its answer is no report of the library loaded")
	errVersion   = errors.New("its report has digests of another version")
	errNamespace = errors.New("its report is of another namespace")
	errNames     = errors.New("its report has names that no ConfigMap and no key can have")
	errTwice     = errors.New("its report has a ConfigMap or a key twice")
	errSum       = errors.New("its report has a digest that is none")
	errTime      = errors.New("its report does not say when something was loaded")
)

// answer is the form of a report, as the library has it.
type answer struct {
	Version string `json:"version"`
	Objects []struct {
		Kind       string    `json:"kind"`
		Namespace  string    `json:"namespace"`
		Name       string    `json:"name"`
		LoadedAt   time.Time `json:"loadedAt"`
		LastFailed bool      `json:"lastFailed"`
		Env        []key     `json:"env"`
		Files      []key     `json:"files"`
	} `json:"objects"`
}

type key struct {
	Name   string `json:"name"`
	Digest string `json:"digest"`
	Partly bool   `json:"partly"`
}

// decode reads an answer of a pod of the namespace. What it says of Secrets is passed over.
func decode(body []byte, namespace string) (*fleet.Report, error) {
	var a answer
	if err := json.Unmarshal(body, &a); err != nil || a.Version == "" {
		return nil, errNoReport // whose text would repeat some of it
	}
	if a.Version != string(digest.V1) {
		return nil, errVersion
	}
	out, seen := &fleet.Report{}, map[string]bool{}
	for _, o := range a.Objects {
		if o.Kind != string(workload.ConfigMap) {
			continue
		}
		switch {
		case len(validation.IsDNS1123Subdomain(o.Name)) > 0:
			return nil, errNames
		case o.Namespace != namespace:
			return nil, errNamespace
		case seen[o.Name]:
			return nil, errTwice
		case o.LoadedAt.IsZero():
			return nil, errTime
		}
		seen[o.Name] = true
		said := fleet.ReportedObject{
			Object:   workload.Object{Kind: workload.ConfigMap, Namespace: namespace, Name: o.Name},
			LoadedAt: o.LoadedAt.UTC(), LastFailed: o.LastFailed,
		}
		var err error
		if said.Env, err = keysOf(o.Env); err != nil {
			return nil, err
		}
		if said.Files, err = keysOf(o.Files); err != nil {
			return nil, err
		}
		out.Objects = append(out.Objects, said)
	}
	return out, nil
}

func keysOf(keys []key) (map[string]fleet.ReportedKey, error) {
	out := make(map[string]fleet.ReportedKey, len(keys))
	for _, k := range keys {
		if len(validation.IsConfigMapKey(k.Name)) > 0 {
			return nil, errNames
		}
		if _, twice := out[k.Name]; twice {
			return nil, errTwice
		}
		said := fleet.ReportedKey{There: k.Digest != "", Partly: k.Partly}
		if said.There {
			var err error
			if said.Sum, err = digest.ParseSum(k.Digest); err != nil {
				return nil, errSum
			}
		}
		out[k.Name] = said
	}
	return out, nil
}
