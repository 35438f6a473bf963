package helmrecord

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/labels"

	"tidemark.dev/tidemark/internal/release"
)

func TestUnsettledSelectsWhatIsNotSettled(t *testing.T) {
	for status, want := range map[string]bool{
		"pending-install": true, "pending-upgrade": true, "pending-rollback": true, "uninstalling": true, "unknown": true, "torn": true,
		"deployed": false, "failed": false, "superseded": false, "uninstalled": false,
	} {
		if got := Unsettled().Matches(labels.Set{"owner": "helm", "status": status}); got != want {
			t.Errorf("status %s: got %t, want %t", status, got, want)
		}
	}
	if !Unsettled().Matches(labels.Set{"owner": "helm"}) {
		t.Error("a record without a status is passed over")
	}
	if Unsettled().Matches(labels.Set{"status": "pending-upgrade"}) {
		t.Error("an object that is not Helm's is selected")
	}
}

const document = `{"name":"web","version":2,"manifest":"kind: Job","hooks":[{"name":"migrate","kind":"Job","events":["pre-upgrade"]}],` +
	`"info":{"status":"pending-upgrade","description":"Preparing upgrade","notes":"a \u003c b"},"chart":{"future":[1e400]}}`

func TestAChangedStatusLeavesAllElseAsItWas(t *testing.T) {
	packed, err := pack([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	changed, err := packed.WithStatus(release.Failed, "left by its process")
	if err != nil {
		t.Fatal(err)
	}
	text, err := changed.json()
	if err != nil {
		t.Fatal(err)
	}
	want := strings.NewReplacer("pending-upgrade\",\"desc", "failed\",\"desc", "Preparing upgrade", "left by its process").Replace(document)
	if diff := cmp.Diff(members(t, []byte(want)), members(t, text)); diff != "" {
		t.Errorf("want, got:\n%s", diff)
	}
	p, err := changed.Unpack()
	if err != nil || p.Info.Status != release.Failed || p.Hooks[0].Kind != "Job" || p.Version != 2 {
		t.Errorf("%+v, %v", p, err)
	}
}

// members are the top members of a document with the text of each; those of info one by one.
func members(t *testing.T, text []byte) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, inner := range []string{"", "info"} {
		var all map[string]json.RawMessage
		if err := json.Unmarshal(text, &all); err != nil {
			t.Fatal(err)
		}
		if inner != "" {
			text = all[inner]
			if err := json.Unmarshal(text, &all); err != nil {
				t.Fatal(err)
			}
		}
		for key, value := range all {
			if key != "info" {
				out[inner+"."+key] = string(value)
			}
		}
	}
	return out
}

func TestADamagedPayloadIsAnErrorEverywhere(t *testing.T) {
	whole, err := pack([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	for name, p := range map[string]Packed{
		"empty":                     nil,
		"not base64":                Packed("~~"),
		"truncated":                 whole[:len(whole)/2/4*4],
		"without its last bytes":    whole[:len(whole)-8],
		"not JSON":                  Packed(base64.StdEncoding.EncodeToString([]byte("release"))),
		"JSON of something else":    Packed(base64.StdEncoding.EncodeToString([]byte(`[1]`))),
		"gzip's mark and then none": Packed(base64.StdEncoding.EncodeToString([]byte{0x1f, 0x8b, 1})),
	} {
		if _, err := p.Unpack(); err == nil {
			t.Errorf("%s is unpacked", name)
		}
		if _, err := p.WithStatus(release.Failed, ""); err == nil {
			t.Errorf("%s is changed", name)
		}
	}
}

func TestAnUnpackedPayloadNeedsNoGzip(t *testing.T) {
	p, err := Packed(base64.StdEncoding.EncodeToString([]byte(document))).Unpack()
	if err != nil || p.Name != "web" {
		t.Errorf("%+v, %v", p, err)
	}
}
