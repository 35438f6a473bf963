package stamp

import (
	"testing"
	"time"
)

func second(n int) time.Time { return time.Date(2026, 6, 1, 12, 0, n, 0, time.UTC) }

func TestWentBack(t *testing.T) {
	for name, tc := range map[string]struct {
		revisions []Revision
		want      bool
	}{
		"no revision is known": {},
		"the revision of a new template does not exist yet": {
			revisions: []Revision{{Number: 1, Created: second(1)}, {Number: 2, Created: second(2)}},
		},
		"the revision of a new template is the newest": {
			revisions: []Revision{{Number: 1, Created: second(1)}, {Number: 2, Created: second(2), Matches: true}},
		},
		"the only revision": {
			revisions: []Revision{{Number: 1, Created: second(1), Matches: true}},
		},
		"a new revision in the same second as the one before": {
			revisions: []Revision{{Number: 1, Created: second(1)}, {Number: 2, Created: second(1), Matches: true}},
		},
		"a Deployment, before its controller has renumbered the revision": {
			revisions: []Revision{{Number: 1, Created: second(1), Matches: true}, {Number: 2, Created: second(2)}}, want: true,
		},
		"a Deployment, after its controller has renumbered the revision": {
			revisions: []Revision{{Number: 3, Created: second(1), Renumbered: true, Matches: true}, {Number: 2, Created: second(2)}}, want: true,
		},
		"a Deployment, renumbered, with all revisions of one second": {
			revisions: []Revision{{Number: 3, Created: second(1), Renumbered: true, Matches: true}, {Number: 2, Created: second(1)}}, want: true,
		},
		"forward again to a revision that was left by going back": {
			revisions: []Revision{{Number: 3, Created: second(1), Renumbered: true}, {Number: 2, Created: second(2), Matches: true}}, want: true,
		},
		"a StatefulSet, before its controller has renumbered the revision, of one second": {
			revisions: []Revision{{Number: 1, Created: second(1), Matches: true}, {Number: 2, Created: second(1)}}, want: true,
		},
		"a StatefulSet, after its controller has renumbered the revision": {
			revisions: []Revision{{Number: 3, Created: second(1), Matches: true}, {Number: 2, Created: second(2)}}, want: true,
		},
		"a StatefulSet, renumbered, of one second: it cannot be told": {
			revisions: []Revision{{Number: 3, Created: second(1), Matches: true}, {Number: 2, Created: second(1)}},
		},
		"an older revision that was gone back to, and left again, for a new template": {
			revisions: []Revision{{Number: 3, Created: second(1), Renumbered: true}, {Number: 4, Created: second(3), Matches: true}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := wentBack(tc.revisions); got != tc.want {
				t.Errorf("went back %t, want %t", got, tc.want)
			}
		})
	}
}
