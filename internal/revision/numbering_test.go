package revision

import (
	"slices"
	"testing"
)

func TestNumbersOfARevision(t *testing.T) {
	const number, former = "deployment.kubernetes.io/revision", "deployment.kubernetes.io/revision-history"
	for name, tc := range map[string]struct {
		annotations map[string]string
		number      int64
		former      []int64
		renumbered  bool
	}{
		"it is numbered":                     {map[string]string{number: "3"}, 3, nil, false},
		"it is not numbered yet":             {nil, 0, nil, false},
		"it had numbers before":              {map[string]string{number: "5", former: "1,3"}, 5, []int64{1, 3}, true},
		"one of its numbers is no number":    {map[string]string{number: "five", former: "1,x"}, 0, []int64{1}, true},
		"another controller has numbered it": {map[string]string{"rollout.argoproj.io/revision": "3"}, 0, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			n, f, r := OfDeployment.Number(tc.annotations), OfDeployment.Former(tc.annotations), OfDeployment.Renumbered(tc.annotations)
			if n != tc.number || !slices.Equal(f, tc.former) || r != tc.renumbered {
				t.Errorf("number %d, before %d, renumbered %t; want %d, %d, %t", n, f, r, tc.number, tc.former, tc.renumbered)
			}
		})
	}
	if n := OfRollout.Number(map[string]string{"rollout.argoproj.io/revision": "3"}); n != 3 {
		t.Errorf("number %d of a Rollout's, want 3", n)
	}
}
