package revision

import (
	"testing"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/snapshot"
	"tidemark.dev/tidemark/internal/workload"
)

const reads = `
spec:
  containers:
  - name: app
    envFrom: [{configMapRef: {name: a}}, {configMapRef: {name: b}}, {secretRef: {name: s}}]
`

func TestReachedSaysHowMuchComesBack(t *testing.T) {
	object := func(name string) workload.Object {
		return workload.Object{Kind: workload.ConfigMap, Namespace: "shop", Name: name}
	}
	pinned := func(names ...string) snapshot.Pins {
		pins := snapshot.Pins{}
		for i := 0; i < len(names); i += 2 {
			pins[object(names[i])] = names[i+1]
		}
		return pins
	}
	there := Copies{object("a-1"): {State: CopyThere, Revision: 1}, object("b-1"): {State: CopyThere, Revision: 1}}
	with := func(name string, state CopyState) Copies {
		c := Copies{object("a-1"): {State: CopyThere}, object("b-1"): {State: CopyThere}}
		c[object(name)] = Copy{State: state, Why: "because"}
		return c
	}
	for name, tc := range map[string]struct {
		template string
		pins     snapshot.Pins
		problem  string
		copies   Copies
		want     Reach
	}{
		"every ConfigMap is pinned":            {reads, pinned("a", "a-1", "b", "b-1"), "", there, InFull},
		"one is pinned to nothing":             {reads, pinned("a", "a-1", "b", v1.AbsentName), "", there, InFull},
		"none is pinned":                       {reads, nil, "", nil, NotPinned},
		"one is not pinned":                    {reads, pinned("a", "a-1"), "", there, InPart},
		"a template that reads nothing":        {"spec: {containers: [{name: app}]}", nil, "", nil, InFull},
		"a copy is gone":                       {reads, pinned("a", "a-1", "b", "b-1"), "", with("b-1", CopyGone), OutOf},
		"something else has the copy's name":   {reads, pinned("a", "a-1", "b", "b-1"), "", with("b-1", CopyForeign), OutOf},
		"a copy cannot be looked for":          {reads, pinned("a", "a-1", "b", "b-1"), "", with("b-1", CopyUnknown), ReachOpen},
		"a copy was not looked for":            {reads, pinned("a", "a-1", "b", "b-1"), "", nil, ReachOpen},
		"one is gone, another not looked for":  {reads, pinned("a", "a-2", "b", "b-1"), "", with("b-1", CopyGone), OutOf},
		"pins that cannot be read":             {reads, nil, "garbage", there, ReachOpen},
		"a pin that nothing refers to is gone": {"spec: {containers: [{name: app}]}", pinned("a", "a-1"), "", with("a-1", CopyGone), OutOf},
	} {
		t.Run(name, func(t *testing.T) {
			r := Revision{Namespace: "shop", Template: template(t, tc.template), Pins: tc.pins, PinsProblem: tc.problem}
			if got := r.Reached(tc.copies).Reach; got != tc.want {
				t.Errorf("reach %s, want %s", got, tc.want)
			}
		})
	}
}
