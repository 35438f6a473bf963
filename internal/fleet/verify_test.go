package fleet

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"tidemark.dev/tidemark/internal/digest"
	"tidemark.dev/tidemark/internal/workload"
)

func TestVerify(t *testing.T) {
	env := func(v string) Looked {
		return Looked{Objects: []ReportedObject{{Object: used, Env: told(map[string]string{"interval": v})}}}
	}
	files := func(v string) Looked {
		return Looked{Objects: []ReportedObject{{Object: used, Files: told(map[string]string{"interval": v})}}}
	}
	secret := Object{Use: workload.Consumption{Object: workload.Object{Kind: workload.Secret, Namespace: "shop", Name: "db"}, Env: workload.Keys{All: true}}}
	asFiles := edited
	asFiles.Use = filesOf(true)
	const notRead = "it is read as files, which tell what they hold now and not what was read"

	for name, tc := range map[string]struct {
		object  Object
		pod     []Pod
		looked  Looked
		outcome Outcome
		why     string
		differs []string
		files   string
	}{
		"the environment that evidence tells": {
			edited, pods(1, oldPods), env("10m"), Right, "the process's environment has what evidence tells", nil, "",
		},
		"an environment of what is applied now": {
			edited, pods(1, oldPods), env("2m"), Wrong,
			"the process's environment has another value of interval; its environment has what is applied", []string{"interval"}, "",
		},
		"an environment of nothing that was applied": {
			edited, pods(1, oldPods), env("7m"), Wrong,
			"the process's environment has another value of interval; its environment has nothing that is known to have been applied", []string{"interval"}, "",
		},
		"where evidence tells nothing": {
			edited, pods(1, 60, unsettled), env("10m"), Unverified,
			"evidence tells nothing of it; its environment has what was applied before", nil, "",
		},
		"an environment that cannot be read": {
			edited, pods(1, oldPods), Looked{NoEnv: "neither cat nor env tells the environment"}, Unverified,
			"cannot look: neither cat nor env tells the environment", nil, "",
		},
		"no variable of it": {edited, pods(1, oldPods), Looked{}, Unverified, "cannot look: no variable of the process surely comes from it", nil, ""},
		"files of what is applied now": {
			asFiles, pods(1, oldPods, reading(asFiles.Use)), files("2m"), Unverified, notRead, nil, "applied",
		},
		"files that are as old as the process": {asFiles, pods(1, oldPods, reading(asFiles.Use)), files("10m"), Unverified, notRead, nil, "loaded"},
		"files of something else":              {asFiles, pods(1, oldPods, reading(asFiles.Use)), files("7m"), Unverified, notRead, nil, "other"},
		"files that cannot be read": {
			asFiles, pods(1, oldPods, reading(asFiles.Use)), Looked{NoFiles: "cat fails"}, Unverified, "cannot look: cat fails", nil, "",
		},
		"a Secret": {secret, pods(1, oldPods, reading(secret.Use)), env("10m"), Unverified, "a Secret is not looked at", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := Verify(fleetOf(tc.object, tc.pod), tc.pod[0].Name, "app", tc.looked)
			if len(got) != 1 {
				t.Fatalf("got %d checks", len(got))
			}
			c := got[0]
			if c.Outcome != tc.outcome || c.Why != tc.why || c.Files != tc.files || !cmp.Equal(c.Differs, tc.differs) {
				t.Errorf("got %+v", c)
			}
		})
	}
}

func TestVerifyOfAPinnedPod(t *testing.T) {
	f := pinnedTo(newCopy, edited, pods(1, oldPods, to(oldCopy)))
	looked := Looked{Objects: []ReportedObject{{Object: used, Env: told(map[string]string{"interval": "10m"})}}}
	got := Verify(f, f.Pods[0].Name, "app", looked)
	if len(got) != 1 || got[0].Outcome != Right || got[0].Evidence != Pinned {
		t.Errorf("got %+v", got)
	}
}

// TestVerifyFindsAnInferenceThatIsWrong has a history that is made up: what it tells is not what the process has.
func TestVerifyFindsAnInferenceThatIsWrong(t *testing.T) {
	content := digest.OfConfigMap(used.Namespace, used.Name, map[string]string{"interval": "10m", "mode": "fast"}, nil)
	f := fleetOf(remembered(event{0, content}), pods(1, oldPods))
	looked := Looked{Objects: []ReportedObject{{Object: used, Env: told(map[string]string{"interval": "10m", "mode": "slow"})}}}
	got := Verify(f, f.Pods[0].Name, "app", looked)
	if len(got) != 1 || got[0].Outcome != Wrong || !cmp.Equal(got[0].Differs, []string{"mode"}) {
		t.Errorf("got %+v", got)
	}
}
