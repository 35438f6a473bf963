package revision

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// history reads revisions such as "1:available", "2:unknown", "3:never:current".
func history(texts ...string) []Revision {
	var out []Revision
	for _, text := range texts {
		parts := strings.Split(text, ":")
		r := Revision{Availability: Availability(parts[1]), Current: len(parts) > 2}
		for _, digit := range parts[0] {
			r.Number = r.Number*10 + int64(digit-'0')
		}
		out = append(out, r)
	}
	return out
}

func TestPreviousChoosesWhereARollbackGoes(t *testing.T) {
	for name, tc := range map[string]struct {
		revisions []string
		want      string // number, then those passed over; "" for none
	}{
		"the newest that was available":                    {[]string{"1:available", "2:available", "3:unknown:current"}, "2"},
		"the one in between is passed over":                {[]string{"1:available", "2:unknown", "3:available:current"}, "1 2"},
		"one that never had a pod is passed over":          {[]string{"1:available", "2:never", "3:available:current"}, "1 2"},
		"several are passed over, newest first":            {[]string{"1:available", "2:never", "3:unknown", "4:unknown:current"}, "1 3 2"},
		"the current one is never chosen":                  {[]string{"1:unknown", "2:unknown", "3:available:current"}, "2"},
		"where nothing is known it is the newest":          {[]string{"1:unknown", "2:unknown", "3:unknown:current"}, "2"},
		"what never had a pod is no choice":                {[]string{"1:unknown", "2:never", "3:unknown:current"}, "1 2"},
		"nothing but what never had a pod":                 {[]string{"1:never", "2:unknown:current"}, ""},
		"a workload with one revision":                     {[]string{"1:available:current"}, ""},
		"after a rollback it is the one that was left":     {[]string{"2:available", "3:available", "4:available:current"}, "3"},
		"before the controller has renumbered a rollback":  {[]string{"1:available:current", "2:available", "3:available"}, "3"},
		"a template without a revision is the current one": {[]string{"1:available", "2:unknown", "0:unknown:current"}, "1 2"},
		"a revision without a number yet is the newest":    {[]string{"0:available", "1:available", "2:unknown:current"}, "0"},
		"no revision at all":                               {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			if choice, has := Previous(history(tc.revisions...)); has {
				got = append(got, Number(choice.Target.Number))
				for _, r := range choice.Passed {
					got = append(got, Number(r.Number))
				}
			}
			if diff := cmp.Diff(tc.want, strings.Join(got, " ")); diff != "" {
				t.Errorf("choice, then what is passed over (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPreviousLeavesItsArgumentInOrder(t *testing.T) {
	revisions := history("1:unknown", "3:unknown:current", "2:available")
	Previous(revisions)
	if diff := cmp.Diff(history("1:unknown", "3:unknown:current", "2:available"), revisions); diff != "" {
		t.Error(diff)
	}
}

func TestFindSaysWhatThereIs(t *testing.T) {
	revisions := history("2:unknown", "5:unknown:current", "0:unknown")
	revisions[1].Former = []int64{1, 3}
	for number, want := range map[int64]string{
		2: "", 5: "",
		3: "it is revision 5 now",
		4: "there is no revision 4; there are 2, 5",
	} {
		_, err := Find(revisions, number)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("revision %d: %v, want %q", number, err, want)
		}
	}
	if _, err := Find(nil, 1); err == nil || !strings.Contains(err.Error(), "nor any other") {
		t.Errorf("of none: %v", err)
	}
}

func TestSeenAndNote(t *testing.T) {
	value, changed := Note("", "a", "", "b")
	if value != "a,b" || !changed {
		t.Errorf("noted %q, changed %t", value, changed)
	}
	if again, changed := Note(value, "b", "a"); again != value || changed {
		t.Errorf("noted again %q, changed %t", again, changed)
	}
	for i := range maxSeen {
		value, _ = Note(value, Number(int64(i)))
	}
	if n := strings.Count(value, ",") + 1; n != maxSeen || !strings.HasSuffix(value, ",31") {
		t.Errorf("%d are noted: %s", n, value)
	}
	want := map[string]bool{"a": true, "b": true, "c": true}
	if diff := cmp.Diff(want, Seen("a,b", "", "b,c")); diff != "" {
		t.Error(diff)
	}
}
