package fleet

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tidemark.dev/tidemark/internal/digest"
	"tidemark.dev/tidemark/internal/workload"
)

// evidence is what the tables expect of one container and one object: the value that was loaded, "" when it is not known.
type evidence struct {
	Value string
	Why   string
}

// loadedOf gives what was found out of the first object that a container read, with the value in place of the digest.
func loadedOf(t *testing.T, f Fleet, container int, values ...string) evidence {
	t.Helper()
	l, use := Judge(f).Pods[0].Containers[container].Loaded[0], f.Objects[0].Use
	if uses := f.Pods[0].Containers[container].Uses; len(uses) > 0 {
		use = uses[0]
	}
	for _, v := range values {
		if interval(v).Consumed(use) == l.Digest {
			return evidence{Value: v, Why: l.Why}
		}
	}
	if l.Digest != "" {
		t.Fatalf("loaded %s, none of %v", l.Digest, values)
	}
	return evidence{Why: l.Why}
}

// filesOf is a consumption of files.
func filesOf(refreshed bool) workload.Consumption {
	return workload.Consumption{Object: used, Files: workload.Keys{All: true}, Refreshed: refreshed}
}

func required(use workload.Consumption) workload.Consumption {
	use.Required = true
	return use
}

func reading(use workload.Consumption) func(*Pod) {
	return func(p *Pod) { p.Containers[0].Uses = []workload.Consumption{use} }
}

func TestEvidenceOfReads(t *testing.T) {
	const changed = "it changed between 2026-06-01T10:59:59Z and 2026-06-01T11:00:00Z, while it may have been read"
	second := 1.0 / 60
	initEnded := func(m float64) func(*Pod) { return func(p *Pod) { p.InitEnded = at(m) } }
	startedAt := func(m float64) func(*Pod) { return func(p *Pod) { p.Containers[0].Started = at(m) } }
	reloads := func(f *Fleet) { f.Reloads = true }
	of := func(minute float64, change ...func(*Pod)) Fleet { return fleetOf(edited, pods(1, minute, change...)) }
	with := func(f Fleet, change func(*Fleet)) Fleet { change(&f); return f }

	for name, tc := range map[string]struct {
		fleet Fleet
		want  evidence
	}{
		"an environment read before the change": {
			of(59.9), evidence{"10m", "read between 2026-06-01T10:59:51Z and 2026-06-01T10:59:58Z, when it had one content"},
		},
		"an environment read too close after the change": {of(60 + 3*second), evidence{"", changed}},
		"an environment read after the change": {
			of(60 + 4*second), evidence{"2m", "read between 2026-06-01T11:00:01Z and 2026-06-01T11:00:08Z, when it had one content"},
		},
		"the first pod of a rollout, whose stamp was written when the content was quiet": {
			with(of(60+2*second, stamped), func(f *Fleet) { f.Record = rolled(60 + 2.5*second) }),
			evidence{"2m", "read between 2026-06-01T11:00:00Z and 2026-06-01T11:00:06Z, when it had one content"},
		},
		"a pod of the stamp's name that is older than its writing": {
			with(of(50, stamped, startedAt(61)), func(f *Fleet) { f.Record = rolled(60.5) }), evidence{"", changed},
		},
		"a pod of the stamp to which a rollback went back": {
			with(of(60+2*second, stamped), func(f *Fleet) { f.Record = heldBack(rolled(60 + 2.5*second)) }), evidence{"", changed},
		},
		"a pod whose start took long": {of(50, startedAt(70)), evidence{"", changed}},
		"a pod whose init containers took long": {
			of(50, startedAt(70), initEnded(69)),
			evidence{"2m", "read between 2026-06-01T11:07:59Z and 2026-06-01T11:10:02Z, when it had one content"},
		},
		"a pod whose init containers took long, on a node that was away": {
			of(50, startedAt(70), initEnded(69), nodeAway), evidence{"", changed + "; node n1 was not ready all the while"},
		},
		"an init container that is said to have ended after the start": {of(50, startedAt(60.1), initEnded(69)), evidence{"", changed}},
		"an environment read again after a restart": {
			of(oldPods, restarted(100)),
			evidence{"2m", "read between 2026-06-01T11:38:59Z and 2026-06-01T11:40:04Z, when it had one content"},
		},
		"a restart whose end before is not known": {
			of(oldPods, restarted(100), func(p *Pod) { p.Containers[0].PreviousEnded = time.Time{} }),
			evidence{"", changed + "; it is not known when the run before ended"},
		},
		"a restart too close after the change for a node that may be cut off": {of(oldPods, restarted(60.9)), evidence{"", changed}},
		"a restart just after its node came back": {
			of(oldPods, restarted(100), func(p *Pod) { p.NodeReadySince = at(99.5) }),
			evidence{"", changed + "; node n1 was not ready all the while"},
		},
		"a file read at the first start": {
			of(newPods, reading(filesOf(true))),
			evidence{"2m", "read between 2026-06-01T11:29:57Z and 2026-06-01T11:30:09Z, when it had one content"},
		},
		"a file that is still being read after the start": {of(59.9, reading(filesOf(true))), evidence{"", changed}},
		"a file that stays as it was mounted": {
			of(59.9, reading(filesOf(false))),
			evidence{"10m", "read between 2026-06-01T10:59:51Z and 2026-06-01T10:59:58Z, when it had one content"},
		},
		"a file mounted before the init containers ran": {
			of(50, startedAt(70), initEnded(69), reading(filesOf(false))), evidence{"", changed},
		},
		"a file that was not refreshed yet at a restart": {of(oldPods, restarted(62), reading(filesOf(true))), evidence{"", changed}},
		"a file that was refreshed before a restart": {
			of(oldPods, restarted(64), reading(filesOf(true))),
			evidence{"2m", "read between 2026-06-01T11:00:59Z and 2026-06-01T11:04:09Z, when it had one content"},
		},
		"a file that the program reads again by itself": {
			with(of(oldPods, reading(filesOf(true))), reloads),
			evidence{"2m", "read between 2026-06-01T11:56:54Z and 2026-06-01T12:00:01Z, when it had one content"},
		},
		"a file that the program reads again, on a node that is away": {
			with(of(oldPods, reading(filesOf(true)), nodeAway), reloads), evidence{"", changed + "; node n1 was not ready all the while"},
		},
		"a file that stays as it was mounted, though the program would read it again": {
			with(of(oldPods, reading(filesOf(false))), reloads),
			evidence{"10m", "read between 2026-06-01T10:29:57Z and 2026-06-01T10:30:04Z, when it had one content"},
		},
		"environment and files that were read apart": {
			with(of(oldPods, reading(filesOf(true).Whole())), reloads), evidence{"", changed},
		},
		"an object that programs read by themselves": {
			with(of(newPods, func(p *Pod) { p.Containers[0].Uses = nil }), func(f *Fleet) {
				o := edited
				o.Use = workload.Consumption{Object: used, Files: workload.Keys{All: true}, Named: true}
				f.Objects = []Object{o}
			}),
			evidence{"2m", "read between 2026-06-01T11:29:57Z and 2026-06-01T11:30:09Z, when it had one content"},
		},
		"a container that waited for what it requires": {
			fleetOf(remembered(event{0, gone}, event{60, interval("2m")}), pods(1, oldPods, startedAt(61))),
			evidence{"2m", "read between 2026-06-01T10:29:57Z and 2026-06-01T11:01:02Z, when it had one content"},
		},
		"a restart with files of before what is required went missing": {
			fleetOf(remembered(event{0, interval("10m")}, event{60, gone}, event{61, interval("2m")}), pods(1, oldPods, restarted(63.5), reading(required(filesOf(true))))),
			evidence{"", "it changed between 2026-06-01T11:00:59Z and 2026-06-01T11:01:00Z, while it may have been read"},
		},
		"a restart with files of what has been missing for long": {
			fleetOf(remembered(event{0, interval("10m")}, event{60, gone}), pods(1, oldPods, restarted(100), reading(required(filesOf(true))))),
			evidence{"", "something that it requires was missing, and files of before may have stayed"},
		},
		"a history that ends too early": {
			of(119.99), evidence{"", "what happened after 2026-06-01T12:00:00Z is not known"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, loadedOf(t, tc.fleet, 0, "10m", "2m")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestContainersOfOnePodAreJudgedApart(t *testing.T) {
	p := pods(1, oldPods)
	app := p[0].Containers[0]
	sidecar, prepare, debug, helper := app, app, app, app
	sidecar.Name, sidecar.Role = "proxy", workload.RoleSidecar
	sidecar.Restarts, sidecar.PreviousEnded, sidecar.Started = 1, at(100), at(100)
	prepare.Name, prepare.Role = "prepare", workload.RoleInit
	debug.Name, debug.Role = "debug", workload.RoleEphemeral
	helper.Name, helper.Uses = "helper", nil
	p[0].Containers = []Container{prepare, sidecar, app, helper, debug}
	f := fleetOf(edited, p)

	var got []string
	for i, c := range Judge(f).Pods[0].Containers {
		if len(c.Loaded) == 0 {
			got = append(got, c.Name+" reads nothing")
			continue
		}
		got = append(got, c.Name+" "+loadedOf(t, f, i, "10m", "2m").Value)
	}
	if diff := cmp.Diff([]string{"prepare 10m", "proxy 2m", "app 10m", "helper reads nothing"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	want := judged{Split, 60, 1, "", "1 of 1 pod runs an earlier version of configmap/pricing"}
	if got := judge(f); got.Verdict != want.Verdict || got.Behind != 1 || got.Reason != want.Reason {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestAnInitContainerOfUnknownStartIsNotKnown(t *testing.T) {
	p := pods(1, newPods)
	prepare := p[0].Containers[0]
	prepare.Name, prepare.Role, prepare.Started = "prepare", workload.RoleInit, time.Time{}
	p[0].Containers = append(p[0].Containers, prepare)
	if got := judge(fleetOf(edited, p)); got.Verdict != Unknown {
		t.Errorf("got %+v", got)
	}
}

func TestSecretsUnderAnotherKeyDoNotCompare(t *testing.T) {
	secret := workload.Object{Kind: workload.Secret, Namespace: "shop", Name: "db"}
	under := func(b byte) digest.Content {
		key, err := digest.NewKey(append(make([]byte, digest.KeySize-1), b))
		if err != nil {
			t.Fatal(err)
		}
		return digest.OfSecret(key, "shop", "db", map[string][]byte{"password": []byte("x")})
	}
	o := remembered(event{0, under(1)}, event{60, under(2)})
	o.Use = workload.Consumption{Object: secret, Env: workload.Keys{All: true}}
	o.Log.Object = secret
	for minute, want := range map[float64]Verdict{oldPods: Unknown, newPods: InStep} {
		if got := judge(fleetOf(o, pods(1, minute, reading(o.Use)))); got.Verdict != want {
			t.Errorf("created at %v: got %+v, want %s", minute, got, want)
		}
	}
}

func TestWhatIsReloadedIsShownAndNeverBehind(t *testing.T) {
	live := edited
	live.Live = true
	steadily := steady
	steadily.Use.Object.Name, steadily.Log.Object.Name = "other", "other"
	f := fleetOf(live, pods(1, oldPods, func(p *Pod) {
		p.Containers[0].Uses = []workload.Consumption{wholeEnv, steadily.Use}
	}))
	f.Objects = append(f.Objects, steadily)
	r := Judge(f)
	l := r.Pods[0].Containers[0].Loaded[0]
	if r.Verdict != InStep || r.Behind != 0 || !l.Live || !l.Behind() || !l.Changed.Equal(at(60)) {
		t.Errorf("got %s, %d behind, %+v", r.Verdict, r.Behind, l)
	}
}

func TestWhatIsIgnoredIsNoConfiguration(t *testing.T) {
	other := wholeEnv
	other.Object.Name = "leader-election"
	f := fleetOf(edited, pods(1, newPods, func(p *Pod) {
		p.Containers[0].Uses = append(p.Containers[0].Uses, other)
	}))
	if got := judge(f); got.Verdict != Unknown {
		t.Errorf("an object that was not read: got %+v", got)
	}
	f.Ignored = []workload.Object{other.Object}
	if got := judge(f); got.Verdict != InStep {
		t.Errorf("an object that is ignored: got %+v", got)
	}
}

func TestVersionsOfAFleet(t *testing.T) {
	f := fleetOf(edited, join(pods(18, oldPods), pods(6, newPods), pods(2, 60, unsettled), pods(1, 119.9, notStarted)))
	r := Judge(f)
	type count struct {
		Known, Applied bool
		Pods           int
	}
	var got []count
	for _, v := range r.Versions {
		got = append(got, count{v.Version != "", v.Applied, v.Pods})
	}
	if diff := cmp.Diff([]count{{true, true, 6}, {true, false, 18}, {false, false, 2}}, got); diff != "" {
		t.Errorf("versions (-want +got):\n%s", diff)
	}
	if r.Pods[0].Version != r.Versions[1].Version || !r.Pods[0].Behind || r.Pods[26].Version != "" {
		t.Errorf("got pods %+v and %+v", r.Pods[0], r.Pods[26])
	}
}

func TestMarginsThatAreNotSetHaveTheirDefaults(t *testing.T) {
	want := Settings{2 * time.Minute, 2 * time.Second, time.Minute, time.Minute, 3 * time.Second, 5 * time.Second}
	if got := (Settings{Skew: 3 * time.Second}).WithDefaults(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
