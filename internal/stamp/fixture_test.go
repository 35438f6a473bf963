package stamp

import (
	"strings"
	"testing"

	"tidemark.dev/tidemark/internal/digest"
	"tidemark.dev/tidemark/internal/workload"
)

const namespace = "shop"

func configMap(name string) workload.Object {
	return workload.Object{Kind: workload.ConfigMap, Namespace: namespace, Name: name}
}

func secret(name string) workload.Object {
	return workload.Object{Kind: workload.Secret, Namespace: namespace, Name: name}
}

func testKey(t *testing.T, seed string) *digest.Key {
	t.Helper()
	key, err := digest.NewKey([]byte(strings.Repeat(seed, digest.KeySize)))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func all() workload.Keys { return workload.Keys{All: true} }

func keys(names ...string) workload.Keys { return workload.Keys{Names: names} }

// pairs reads "KEY=VALUE" items.
func pairs(items []string) map[string]string {
	m := map[string]string{}
	for _, item := range items {
		k, v, _ := strings.Cut(item, "=")
		m[k] = v
	}
	return m
}

// envFrom is a ConfigMap that a pod requires and reads into its environment as a whole.
func envFrom(name string, data ...string) Object {
	o := configMap(name)
	return Object{
		Use:     workload.Consumption{Object: o, Env: all(), Required: true},
		Applied: digest.OfConfigMap(o.Namespace, o.Name, pairs(data), nil),
	}
}

// with changes the consumption of an object.
func (o Object) with(change func(*workload.Consumption)) Object {
	change(&o.Use)
	return o
}

func (o Object) optional() Object {
	return o.with(func(c *workload.Consumption) { c.Required, c.RequiredKeys, c.RequiredEnv = false, nil, nil })
}

// envKeys narrows to keys that are each read into a variable, and required.
func (o Object) envKeys(names ...string) Object {
	return o.with(func(c *workload.Consumption) { c.Env, c.RequiredKeys, c.RequiredEnv = keys(names...), names, names })
}

// mounted reads the object as files instead.
func (o Object) mounted(k workload.Keys) Object {
	return o.with(func(c *workload.Consumption) {
		c.Env, c.Files, c.RequiredKeys, c.RequiredEnv = workload.Keys{}, k, k.Names, nil
	})
}

func (o Object) live() Object {
	o.Live = true
	return o
}

func (o Object) absent() Object {
	o.Applied = digest.AbsentIn(workload.ConfigMap, nil)
	return o
}

func (o Object) binary(data ...string) Object {
	binary := map[string][]byte{}
	for k, v := range pairs(data) {
		binary[k] = []byte(v)
	}
	more := digest.OfConfigMap(o.Use.Object.Namespace, o.Use.Object.Name, nil, binary)
	o.Applied.Binary = more.Binary
	return o
}

// secretFrom is the Secret "s" of which a pod reads all keys, digested under the key.
func secretFrom(key *digest.Key, data ...string) Object {
	o := secret("s")
	bytes := map[string][]byte{}
	for k, v := range pairs(data) {
		bytes[k] = []byte(v)
	}
	return Object{
		Use:     workload.Consumption{Object: o, Env: all(), Required: true},
		Applied: digest.OfSecret(key, o.Namespace, o.Name, bytes),
	}
}

// rolls is the state of a workload in mode roll that Tidemark has not seen yet.
func rolls(objects ...Object) State {
	return State{Namespace: namespace, Mode: Roll, Images: []string{"pricing:1"}, Objects: objects}
}

// then is the state with other objects.
func (s State) then(objects ...Object) State {
	s.Objects = objects
	return s
}

func (s State) image(image string) State {
	s.Images = []string{image}
	return s
}

// carry is what the API would hold after the decision: the record goes through its annotation and label.
func carry(t *testing.T, s State, d Decision) State {
	t.Helper()
	if d.Action == Nothing {
		return s
	}
	annotation, sum := Encode(d.Record)
	record, intact, err := Parse(annotation, sum)
	if err != nil || !intact {
		t.Fatalf("parse what was encoded: intact %t, error %v", intact, err)
	}
	s.Record, s.Intact, s.Marked = record, intact, true
	if d.Action == WriteStamp {
		s.Stamp = d.Stamp
	}
	return s
}

// decided is the state after Tidemark has decided on it and written.
func decided(t *testing.T, s State) State {
	t.Helper()
	return carry(t, s, Decide(s))
}

// putBackFrom is the state after a rollback of a Deployment to the template and the annotations of an older state; the
// label stays. The older revision is the only other one, and was not renumbered yet.
func (s State) putBackFrom(older State) State {
	s.Record, s.Intact, s.Stamp, s.Images = older.Record, false, older.Stamp, older.Images
	s.Revisions = []Revision{{Name: "new", Number: 2}, {Name: "old", Number: 1, Matches: true}}
	return s
}

// patchedFrom is the state after a rollback of a StatefulSet or DaemonSet: only the template is the older one's, and its
// revision has been renumbered.
func (s State) patchedFrom(older State) State {
	s.Stamp, s.Images = older.Stamp, older.Images
	s.Revisions = []Revision{{Name: "old", Number: 3, Created: second(1), Matches: true}, {Name: "new", Number: 2, Created: second(2)}}
	return s
}
