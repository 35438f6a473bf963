package record

import (
	"fmt"
	"testing"
	"time"

	"tidemark.dev/tidemark/lab/wire"
)

func TestStore(t *testing.T) {
	var store Store
	for _, start := range []wire.Start{
		{Namespace: "a", Pod: "web-1", Container: "app"},
		{Namespace: "a", Pod: "web-1", Container: "side"},
		{Namespace: "b", Pod: "web-1", Container: "app"},
		{Namespace: "a", Pod: "job-1", Container: "app"},
	} {
		store.Append(start)
	}
	for name, test := range map[string]struct {
		filter wire.Filter
		want   string
	}{
		"everything":        {want: "[1 2 3 4]"},
		"a namespace":       {filter: wire.Filter{Selector: wire.Selector{Namespace: "a"}}, want: "[1 2 4]"},
		"after a number":    {filter: wire.Filter{Since: 2}, want: "[3 4]"},
		"after the last":    {filter: wire.Filter{Since: 9}, want: "[]"},
		"all fields at one": {filter: wire.Filter{Since: 1, Selector: wire.Selector{Namespace: "a", PodPrefix: "web", Container: "side"}}, want: "[2]"},
	} {
		t.Run(name, func(t *testing.T) {
			got := []uint64{}
			for _, start := range store.List(test.filter) {
				got = append(got, start.Seq)
			}
			if fmt.Sprint(got) != test.want {
				t.Errorf("got %v, want %s", got, test.want)
			}
		})
	}
}

func TestFinishDoesNotChangeWhatWasListed(t *testing.T) {
	var store Store
	seq := store.Append(wire.Start{Pod: "web"})
	before := store.List(wire.Filter{})
	store.Finish(seq, time.Unix(9, 0), 78, "FATAL")
	if !before[0].Running() {
		t.Error("the list changed")
	}
	after := store.Get(seq)
	if after.Running() || *after.ExitCode != 78 || after.Message != "FATAL" || after.Finished != time.Unix(9, 0) {
		t.Errorf("the record is %+v", after)
	}
}
