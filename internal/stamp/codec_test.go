package stamp

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation"

	"tidemark.dev/tidemark/internal/digest"
	"tidemark.dev/tidemark/internal/workload"
)

func fullRecord() Record {
	return Record{
		Version: 1, Mode: Roll, Stamp: "v1-abc.2", Images: []string{"pricing:1", "sidecar:2"},
		Objects: map[string]ObjectRecord{
			"configmap/a": {Baseline: map[string]digest.Digest{"env:*": "v1-x", "file:K": "v1-y"}, Stamped: "v1-z", HeldBack: true},
			"secret/b":    {Baseline: map[string]digest.Digest{"env:P": "v1.0-p"}},
		},
		Earlier: []EarlierStamp{{Stamp: "v1-abc", Objects: map[string]digest.Digest{"configmap/a": "v1-q"}}, {}},
		Rolls:   []time.Time{second(1), second(2)},
		Hold:    &Hold{Reason: HoldStorm, Since: second(3)},
		Last:    &Last{Time: second(2), Action: WriteStamp, Reason: ContentChanged, Changed: []string{"configmap/a"}},
	}
}

func TestARecordSurvivesItsAnnotation(t *testing.T) {
	want := fullRecord()
	annotation, sum := Encode(want)
	got, intact, err := Parse(annotation, sum)
	if err != nil || !intact {
		t.Fatalf("intact %t, error %v, want an intact record", intact, err)
	}
	if diff := cmp.Diff(&want, got); diff != "" {
		t.Errorf("record (-want +got):\n%s", diff)
	}
	if problems := validation.IsValidLabelValue(sum); len(problems) > 0 {
		t.Errorf("checksum %q: %s", sum, strings.Join(problems, ", "))
	}
}

func TestParse(t *testing.T) {
	annotation, sum := Encode(fullRecord())
	older, _ := Encode(Record{Mode: Roll})
	for name, tc := range map[string]struct {
		annotation, sum string
		found, intact   bool
		err             error
	}{
		"no annotation is no record":                    {},
		"no annotation under a checksum is no record":   {sum: sum},
		"a record with its checksum":                    {annotation: annotation, sum: sum, found: true, intact: true},
		"a record without checksum":                     {annotation: annotation, found: true},
		"a record that a rollback put back":             {annotation: older, sum: sum, found: true},
		"an edited record":                              {annotation: strings.Replace(annotation, "pricing:1", "pricing:2", 1), sum: sum, found: true},
		"a newer format":                                {annotation: `{"v":2,"mode":{"name":"roll"}}`, sum: sum, err: ErrNewer},
		"garbage":                                       {annotation: "yes", err: ErrGarbage},
		"a record cut short":                            {annotation: annotation[:len(annotation)-1], sum: sum, err: ErrGarbage},
		"a record without a format":                     {annotation: `{"mode":"roll"}`, err: ErrGarbage},
		"another type under a known name":               {annotation: `{"v":1,"objects":[]}`, err: ErrGarbage},
		"null":                                          {annotation: `null`, err: ErrGarbage},
		"a field of a later release of the same format": {annotation: `{"v":1,"mode":"roll","more":1}`, found: true},
	} {
		t.Run(name, func(t *testing.T) {
			r, intact, err := Parse(tc.annotation, tc.sum)
			if (r != nil) != tc.found || intact != tc.intact || !errors.Is(err, tc.err) {
				t.Errorf("found %t, intact %t, error %v, want %t, %t, %v", r != nil, intact, err, tc.found, tc.intact, tc.err)
			}
			if err != nil && !strings.Contains(err.Error(), "annotation tidemark.dev/record") {
				t.Errorf("error %q does not name the annotation", err)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	annotation, sum := Encode(fullRecord())
	f.Add(annotation, sum)
	f.Add(`{"v":1}`, "")
	f.Add(`{"v":1,"rolls":["0000-01-01T00:00:00+23:59"],"earlier":[null],"hold":{}}`, "v1-")
	f.Add("\x00", "x")
	f.Fuzz(func(t *testing.T, annotation, sum string) {
		r, _, err := Parse(annotation, sum)
		if err != nil || r == nil {
			return
		}
		text, own := Encode(*r)
		again, intact, err := Parse(text, own)
		if err != nil || !intact {
			t.Fatalf("encoded as %q: intact %t, error %v", text, intact, err)
		}
		if text2, _ := Encode(*again); text2 != text {
			t.Errorf("encoded as %q, then as %q", text, text2)
		}
	})
}

func TestNoted(t *testing.T) {
	now := time.Date(2026, 6, 1, 14, 0, 0, 999, time.FixedZone("CEST", 2*60*60))
	r := Record{Rolls: []time.Time{second(1)}}
	changed := []workload.Object{configMap("a"), {Kind: workload.Secret, Namespace: "other", Name: "b"}}

	rolled := r.Noted(now, namespace, Decision{Action: WriteStamp, Reason: ContentChanged, Changed: changed})
	want := Record{
		Rolls: []time.Time{second(1), second(0)},
		Last: &Last{
			Time: second(0).Add(999), Action: WriteStamp, Reason: ContentChanged, Changed: []string{"configmap/a", "secret/other/b"},
		},
	}
	if diff := cmp.Diff(want, rolled); diff != "" {
		t.Errorf("a roll noted (-want +got):\n%s", diff)
	}
	if noted := r.Noted(now, namespace, Decision{Action: WriteRecord, Reason: NewRelease}); len(noted.Rolls) != 1 || noted.Last.Reason != NewRelease {
		t.Errorf("noted %+v, want no further roll", noted)
	}
	if len(r.Rolls) != 1 || r.Last != nil {
		t.Errorf("the record itself became %+v", r)
	}
}

func TestNotedIsBounded(t *testing.T) {
	var r Record
	d := Decision{Action: WriteStamp}
	for i := range 40 {
		d.Changed = append(d.Changed, configMap(fmt.Sprint(i)))
	}
	for i := range 30 {
		r = r.Noted(second(i), namespace, d)
	}
	if len(r.Rolls) != MaxRolls || !r.Rolls[MaxRolls-1].Equal(second(29)) || len(r.Last.Changed) != MaxLastChanged {
		t.Errorf("%d rolls and %d changed, want the latest %d and %d", len(r.Rolls), len(r.Last.Changed), MaxRolls, MaxLastChanged)
	}
}

func TestHold(t *testing.T) {
	held := Record{}.WithHold(HoldStorm, second(1))
	if again := held.WithHold(HoldStorm, second(5)); !again.Hold.Since.Equal(second(1)) {
		t.Errorf("held since %s, want the beginning kept", again.Hold.Since)
	}
	if held.WithoutHold().Hold != nil {
		t.Error("held, want no hold")
	}
}

func TestARecordStaysWithinItsBound(t *testing.T) {
	var many []string
	for i := range 3600 {
		many = append(many, fmt.Sprintf("SETTING_WITH_A_LONG_NAME_%04d", i))
	}
	wide := func(name string, from, to int) Object {
		return envFrom(name, many[from:to]...).envKeys(many[from:to]...)
	}
	var objects []Object
	for i := range 120 {
		objects = append(objects, wide(fmt.Sprintf("config-of-a-part-%03d", i), 30*i, 30*i+30))
	}
	for name, tc := range map[string]struct{ state State }{
		"one object with many keys":          {rolls(wide("big", 0, 3600))},
		"some objects with many keys":        {rolls(wide("a", 0, 1000), wide("b", 1000, 2000), envFrom("c"))},
		"many objects with a good many keys": {rolls(objects...)},
	} {
		t.Run(name, func(t *testing.T) {
			s := decided(t, tc.state)
			for i := range MaxEarlier + 2 {
				s.Objects = tc.state.Objects
				s.Objects[0].Applied = envFrom(s.Objects[0].Use.Object.Name, append(many, fmt.Sprintf("%s=%d", s.Objects[0].Use.Env.Names[7], i))...).Applied
				d := Decide(s)
				if d.Action != WriteStamp || len(d.Changed) != 1 {
					t.Fatalf("change %d: %s, %s, changed %v, want a stamp for the first object", i, d.Action, d.Reason, d.Changed)
				}
				annotation, _ := Encode(d.Record.Noted(second(i), namespace, d))
				if len(annotation) > 64<<10 {
					t.Fatalf("change %d: the record has %d bytes, want at most 64 KiB", i, len(annotation))
				}
				s = carry(t, s, d)
				if again := Decide(s); again.Action != Nothing {
					t.Fatalf("change %d: then %s, %s, want nothing", i, again.Action, again.Reason)
				}
			}
		})
	}
}
