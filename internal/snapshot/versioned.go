package snapshot

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidemark.dev/tidemark/internal/workload"
)

// Names that are versions of one another differ only in how they end: in a decimal number without leading zeros ("-12",
// "-v12"), or in 8 to 64 characters of a hexadecimal hash, a digit among them ("-3f2a9c01").
var (
	numbered = regexp.MustCompile(`^(.+-v?)(0|[1-9][0-9]{0,17})$`)
	hashed   = regexp.MustCompile(`^(.+-)([0-9a-f]{8,64})$`)
	digit    = regexp.MustCompile(`[0-9]`)
)

// Stand-ins for the version in the name of a family. No object has a capital letter in its name.
const (
	anyNumber = "N"
	anyHash   = "HASH"
)

// ReadVersioned reads a config object whose name ends in a version as a snapshot of its family: the name with "N" in place of
// a number, which becomes the revision, or "HASH" in place of a hash, whose age is all that orders it. False for other names.
func ReadVersioned(kind workload.ObjectKind, m metav1.Object) (Snapshot, bool) {
	o := workload.Object{Kind: kind, Namespace: m.GetNamespace(), Name: m.GetName()}
	s := Snapshot{
		Object: o, Created: m.GetCreationTimestamp().Time, UID: string(m.GetUID()), ResourceVersion: m.GetResourceVersion(),
	}
	s.Source, s.Time = o, s.Created
	if parts := numbered.FindStringSubmatch(o.Name); parts != nil {
		s.Source.Name = parts[1] + anyNumber
		s.Revision, _ = strconv.ParseInt(parts[2], 10, 64) // 18 digits fit
		return s, true
	}
	if parts := hashed.FindStringSubmatch(o.Name); len(parts) > 0 && digit.MatchString(parts[2]) {
		s.Source.Name = parts[1] + anyHash
		return s, true
	}
	return s, false
}

// ReleaseStock is what a fresh and complete listing found of the objects that Helm left in place for one release.
type ReleaseStock struct {
	// Now is a moment before the uses were listed.
	Now time.Time
	// Objects are all of them, as [ReadVersioned] read them.
	Objects []Snapshot
	Uses    Uses
	// Named are the names in the manifests of the release as it is deployed, and as it is being deployed.
	Named map[string]bool
	// Revision is the release's newest; 0 when not known. No higher number is a revision of it.
	Revision int64
}

// PlanRelease judges the objects that Helm left in place for a release. Nothing marks them: Helm makes one that it needs and
// does not find, and what names one otherwise is a use. So there is one phase, and MinAge counts from their creation.
func (r Retention) PlanRelease(s ReleaseStock) []Verdict {
	objects := slices.Clone(s.Objects)
	for i := range objects {
		if o := &objects[i]; s.Revision > 0 && o.Revision > s.Revision {
			o.Source, o.Revision = o.Object, 0
		}
	}
	slices.SortFunc(objects, newestFirst)
	out := make([]Verdict, 0, len(objects))
	for family := range families(objects) {
		for i := range family {
			out = append(out, r.judgeReleased(s, family[i], i))
		}
	}
	return out
}

func (r Retention) judgeReleased(s ReleaseStock, m Snapshot, newer int) Verdict {
	v := Verdict{Snapshot: m, Action: Keep}
	user, used := s.Uses[m.Object]
	young := m.Created.Add(r.MinAge)
	switch {
	case used:
		v.Reason, v.Detail = Used, "used by "+user.String()
	case s.Named[m.Object.Name]:
		v.Reason, v.Detail = Released, "named in the manifest of the release"
	case m.Source == m.Object:
		v.Reason, v.Detail = Unversioned, "its name does not end in a revision of the release or in a hash"
	case newer < r.History:
		v.Reason, v.Detail = Recent, fmt.Sprintf("among the last %d of %s", r.History, m.of())
	case s.Now.Before(young):
		v.Reason, v.Until, v.Detail = Young, young, fmt.Sprintf("not needed, and younger than %v", r.MinAge)
	default:
		v.Action, v.Reason = Delete, Superseded
		v.Detail = fmt.Sprintf("nothing uses it, and %d newer of %s are kept", r.History, m.of())
	}
	return v
}
