package fleet

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/digest"
	"tidemark.dev/tidemark/internal/history"
	"tidemark.dev/tidemark/internal/snapshot"
	"tidemark.dev/tidemark/internal/stamp"
	"tidemark.dev/tidemark/internal/workload"
)

// Names of snapshots of the object: of what it held first, and of what it was changed to.
const (
	oldCopy = "pricing-old"
	newCopy = "pricing-new"
)

// to makes pods read the object through what they are pinned to.
func to(name string) func(*Pod) {
	return func(p *Pod) {
		c := &p.Containers[0]
		for _, u := range c.Uses {
			c.Pinned = append(c.Pinned, PinnedUse{Use: u, Snapshot: name})
		}
		c.Uses = nil
	}
}

// copies are the snapshots of the object, made when it was changed.
func copies() map[workload.Object]Snapshot {
	before, after := interval("10m"), interval("2m")
	return map[workload.Object]Snapshot{
		pinned(used, oldCopy): {Source: used, Content: &before, Created: at(-100)},
		pinned(used, newCopy): {Source: used, Content: &after, Created: at(60)},
	}
}

// pinnedTo is a fleet in mode pin whose template pins the object.
func pinnedTo(name string, o Object, pods []Pod, change ...func(*Fleet)) Fleet {
	f := fleetOf(o, pods)
	f.Mode, f.Stamp, f.Snapshots = stamp.Pin, "v1-new", copies()
	if name != "" {
		f.Pins = snapshot.Pins{used: name}
	}
	for _, c := range change {
		c(&f)
	}
	return f
}

func unmatched(p *Pod)     { p.Unmatched = []workload.Object{used} }
func unhistoried(f *Fleet) { f.Objects[0].Log, f.Installed = history.Log{}, false }

func optional(o Object) Object {
	o.Use.Required = false
	return o
}

func readsOptionally(p *Pod) {
	for i := range p.Containers[0].Uses {
		p.Containers[0].Uses[i].Required = false
	}
}

func TestEvidenceOfPins(t *testing.T) {
	const whyOld, whyNew = "the pod reads configmap/pricing-old, a copy that never changes", "the pod reads configmap/pricing-new, a copy that never changes"
	lost := func(change func(*Snapshot)) func(*Fleet) {
		return func(f *Fleet) {
			s := f.Snapshots[pinned(used, newCopy)]
			change(&s)
			f.Snapshots[pinned(used, newCopy)] = s
		}
	}
	shared := func(p *Pod) {
		for i := range p.Containers[0].Pinned {
			p.Containers[0].Pinned[i].Shared = true
		}
	}
	none := optional(remembered(event{0, gone}))
	came := optional(remembered(event{0, gone}, event{60, interval("2m")}))

	for name, tc := range map[string]struct {
		fleet Fleet
		kind  Evidence
		want  evidence
	}{
		"a copy of what is applied": {
			pinnedTo(newCopy, edited, pods(1, newPods, to(newCopy))), Pinned, evidence{"2m", whyNew},
		},
		"a copy of what was before, however late the container started": {
			pinnedTo(newCopy, edited, pods(1, oldPods, to(oldCopy), restarted(100), nodeAway)), Pinned, evidence{"10m", whyOld},
		},
		"a copy that the program would read again": {
			pinnedTo(newCopy, edited, pods(1, oldPods, reading(filesOf(true)), to(oldCopy)), func(f *Fleet) { f.Reloads = true }),
			Pinned, evidence{"10m", whyOld},
		},
		"a copy, with no history at all": {
			pinnedTo(newCopy, edited, pods(1, oldPods, to(oldCopy)), unhistoried), Pinned, evidence{"10m", whyOld},
		},
		"a copy that was made within the second of the pod": {
			pinnedTo(newCopy, edited, pods(1, 60, to(newCopy))), Pinned, evidence{"2m", whyNew},
		},
		"a copy that was made again": {
			pinnedTo(newCopy, edited, pods(1, 59, to(newCopy))), NotKnown,
			evidence{"", "configmap/pricing-new was made at 2026-06-01T11:00:00Z, after the pod"},
		},
		"a copy that is gone": {
			pinnedTo("", edited, pods(1, newPods, to(newCopy)), lost(func(s *Snapshot) { *s = Snapshot{Gone: true} })), NotKnown,
			evidence{"", "configmap/pricing-new, which is a copy of it, is gone"},
		},
		"a copy that may not be read": {
			pinnedTo("", edited, pods(1, newPods, to(newCopy)), lost(func(s *Snapshot) { *s = Snapshot{Problem: "no right"} })), NotKnown,
			evidence{"", "configmap/pricing-new, which is a copy of it: no right"},
		},
		"a copy of another object": {
			pinnedTo("", edited, pods(1, newPods, to(newCopy)), lost(func(s *Snapshot) { s.Source.Name = "other" })), NotKnown,
			evidence{"", "configmap/pricing-new is no copy of it"},
		},
		"a copy that nobody looked for": {
			pinnedTo("", edited, pods(1, newPods, to("pricing-other"))), NotKnown, evidence{"", "configmap/pricing-other was not read"},
		},
		"pinned while there was none, and there is none": {
			pinnedTo(v1.AbsentName, none, pods(1, newPods, readsOptionally, to(v1.AbsentName))), Pinned,
			evidence{"none", "the pod was pinned while there was none"},
		},
		"pinned while there was none, and there is one now": {
			pinnedTo(v1.AbsentName, came, pods(1, oldPods, readsOptionally, to(v1.AbsentName))), Pinned,
			evidence{"none", "the pod was pinned while there was none"},
		},
		"one of several that there were none of": {
			pinnedTo(v1.AbsentName, none, pods(1, newPods, readsOptionally, to(v1.AbsentName), shared)), Pinned,
			evidence{"none", "the pod was pinned while there was none"},
		},
		"one of several that there were none of, and there is one now": {
			pinnedTo(v1.AbsentName, came, pods(1, oldPods, readsOptionally, to(v1.AbsentName), shared)), NotKnown,
			evidence{"", "several objects of the pod are pinned to absent.tidemark.dev, and it does not tell which of them is read here"},
		},
		"a pod that reads the object itself": {
			pinnedTo(newCopy, edited, pods(1, newPods, unmatched)), Inferred,
			evidence{"2m", "read between 2026-06-01T11:29:57Z and 2026-06-01T11:30:04Z, when it had one content"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := Judge(tc.fleet).Pods[0].Containers[0].Loaded[0]
			got, c := evidence{Why: l.Why}, tc.fleet.Pods[0].Containers[0]
			for value, content := range map[string]digest.Content{"10m": interval("10m"), "2m": interval("2m"), "none": gone} {
				for _, u := range c.Uses {
					c.Pinned = append(c.Pinned, PinnedUse{Use: u})
				}
				if l.Digest == content.Consumed(c.Pinned[0].Use) {
					got.Value = value
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || l.Evidence != tc.kind {
				t.Errorf("evidence %s, want %s (-want +got):\n%s", l.Evidence, tc.kind, diff)
			}
		})
	}
}

func TestJudgePinned(t *testing.T) {
	missing := remembered(event{0, interval("10m")}, event{60, gone})
	record := func(r *stamp.Record) func(*Fleet) { return func(f *Fleet) { f.Record, f.Stamp = r, r.Stamp } }
	other := edited
	other.Use.Object.Name, other.Log.Object.Name = "limits", "limits"
	withOther := func(f *Fleet) { f.Objects = append(f.Objects, other) }
	readsOther := func(p *Pod) { p.Containers[0].Uses = append(p.Containers[0].Uses, other.Use) }
	lose := func(name string) func(*Fleet) {
		return func(f *Fleet) { f.Snapshots[pinned(used, name)] = Snapshot{Gone: true} }
	}
	const wayOut = "the admission policy was not in force when they started; restart them once tidemark-pin is installed"

	for name, tc := range map[string]struct {
		fleet Fleet
		want  judged
	}{
		"every pod reads a copy of what is applied": {
			pinnedTo(newCopy, edited, pods(2, newPods, to(newCopy))),
			judged{InStep, seconds(90, 2), 0, "", "2 of 2 pods run what is applied"},
		},
		"that is known with no history too": {
			pinnedTo(newCopy, edited, pods(2, newPods, to(newCopy)), unhistoried),
			judged{InStep, seconds(90, 2), 0, "", "2 of 2 pods run what is applied"},
		},
		"nobody pinned the change": {
			pinnedTo(oldCopy, edited, join(pods(1, oldPods, to(oldCopy)), pods(1, newPods, to(oldCopy)))),
			judged{Dormant, 60, 2, "", "2 of 2 pods run an earlier version of configmap/pricing"},
		},
		"a rollout to the change": {
			pinnedTo(newCopy, edited, join(pods(2, oldPods, to(oldCopy)), pods(1, 119.1, stamped, to(newCopy))), record(rolled(119))),
			judged{Rolling, 119, 2, "", "2 of 3 pods run an earlier version of configmap/pricing; 1 of 3 pods runs what is applied"},
		},
		"a rollout to the change that got stuck": {
			pinnedTo(newCopy, edited, join(pods(2, oldPods, to(oldCopy)), pods(1, newPods, to(newCopy)))),
			judged{Split, 90, 2, "", "2 of 3 pods run an earlier version of configmap/pricing; 1 of 3 pods runs what is applied"},
		},
		"paused": {
			pinnedTo(oldCopy, edited, pods(2, oldPods, to(oldCopy)), func(f *Fleet) { f.Paused, f.PausedBy = true, "by ada" }),
			judged{Held, 60, 2, "", "2 of 2 pods run an earlier version of configmap/pricing; paused by ada"},
		},
		// RolledBack
		"gone back, with the old copy": {
			pinnedTo(oldCopy, edited, pods(2, 81, to(oldCopy)), record(heldBack(rolled(80)))),
			judged{RolledBack, 80, 2, "", "the workload went back to an older revision; 2 of 2 pods run an earlier version of configmap/pricing"},
		},
		"gone back, with another object in step": {
			pinnedTo(oldCopy, edited, pods(2, 81, to(oldCopy), readsOther), record(heldBack(rolled(80))), withOther),
			judged{RolledBack, 80, 2, "", "the workload went back to an older revision; 2 of 2 pods run an earlier version of configmap/pricing"},
		},
		"gone back, and behind on another object too": {
			pinnedTo(oldCopy, edited, pods(2, oldPods, to(oldCopy), readsOther), record(heldBack(rolled(80))), withOther),
			judged{Dormant, 60, 2, "", "2 of 2 pods run an earlier version of configmap/limits, configmap/pricing"},
		},
		"gone back, with another object not known": {
			pinnedTo(oldCopy, edited, pods(2, 60, to(oldCopy), readsOther), record(heldBack(rolled(80))), withOther),
			judged{Unknown, -1, 2, "", "2 of 2 pods run an earlier version of configmap/pricing; whether they all run one version is not known"},
		},
		"gone back, and one pod still on the newer copy": {
			pinnedTo(oldCopy, edited, join(pods(1, 81, to(oldCopy)), pods(1, 70, to(newCopy))), record(heldBack(rolled(80)))),
			judged{Split, 81, 1, "", "1 of 2 pods runs an earlier version of configmap/pricing; 1 of 2 pods runs what is applied"},
		},
		// Unpinned
		"pods that do not read what their pins say": {
			pinnedTo(newCopy, edited, join(pods(1, newPods, to(newCopy)), pods(3, 91, unmatched)), record(rolled(61))),
			judged{
				Unpinned, 91, 0, "",
				"3 of 4 pods do not read what their pins say of configmap/pricing: " + wayOut + "; 4 of 4 pods run what is applied",
			},
		},
		"one that does not, after a rollback": {
			pinnedTo(oldCopy, edited, join(pods(1, 81, to(oldCopy)), pods(1, 82, unmatched)), record(heldBack(rolled(80)))),
			judged{
				Unpinned, 82, 1, "", "1 of 2 pods does not read what its pins say of configmap/pricing: the admission policy was not in force when " +
					"it started; restart it once tidemark-pin is installed; 1 of 2 pods runs an earlier version of configmap/pricing; " +
					"1 of 2 pods runs what is applied",
			},
		},
		"one with pins that cannot be read": {
			pinnedTo(newCopy, edited, join(pods(1, newPods, to(newCopy)), pods(1, 91, func(p *Pod) { p.PinsProblem = "pins: no name" })), record(rolled(61))),
			judged{
				Unpinned, 91, 0, "", "1 of 2 pods carries pins that cannot be read, and reads what is applied: pins: no name; 2 of 2 pods run what is applied",
			},
		},
		"pods that do not, on their way out": {
			pinnedTo(newCopy, edited, join(pods(1, newPods, to(newCopy)), pods(1, 91, unmatched, terminating))),
			judged{InStep, seconds(91, 2), 0, "", "2 of 2 pods run what is applied"},
		},
		"pods that do not, where mode pin was left": {
			pinnedTo(newCopy, edited, pods(2, 91, unmatched), func(f *Fleet) { f.Mode = stamp.Roll }),
			judged{
				InStep, seconds(91, 2), 0, "",
				"2 of 2 pods run what is applied; 2 of 2 pods do not read what their pins say of configmap/pricing: " + wayOut,
			},
		},
		// Waiting
		"gone under its pin": {
			pinnedTo(oldCopy, missing, pods(2, oldPods, to(oldCopy))),
			judged{InStep, seconds(30, 2), 0, "", "2 of 2 pods run what is applied; configmap/pricing is gone, and a copy of it is read"},
		},
		"gone under its pin, with pods of another one": {
			pinnedTo(newCopy, missing, join(pods(1, oldPods, to(oldCopy)), pods(1, newPods, to(newCopy)))),
			judged{
				Split, 90, 1, "", "1 of 2 pods runs an earlier version of configmap/pricing; 1 of 2 pods runs what is applied; " +
					"configmap/pricing is gone, and a copy of it is read",
			},
		},
		"gone without a pin": {
			pinnedTo("", missing, pods(2, oldPods, to(oldCopy))), judged{Waiting, 60, 2, "", "missing: configmap/pricing"},
		},
		"gone where it is pinned as absent": {
			pinnedTo(v1.AbsentName, missing, pods(1, oldPods, to(oldCopy))), judged{Waiting, 60, 1, "", "missing: configmap/pricing"},
		},
		"its copy is gone": {
			pinnedTo(newCopy, edited, pods(1, newPods, to(newCopy)), lose(newCopy)),
			judged{Waiting, -1, 0, "", "missing: configmap/pricing-new, which the template pins"},
		},
		"its copy is gone with it": {
			pinnedTo(newCopy, missing, pods(1, newPods, to(newCopy)), lose(newCopy)),
			judged{
				Waiting, -1, 0, "", "missing: configmap/pricing-new, which the template pins; configmap/pricing is gone, and a copy of it is read",
			},
		},
		"a copy is gone that only older pods read": {
			pinnedTo(newCopy, edited, pods(1, oldPods, to(oldCopy)), lose(oldCopy)),
			judged{
				Unknown, -1, 0, "", "it is not known what 1 of 1 pod loaded: of configmap/pricing in app-30-0, " +
					"configmap/pricing-old, which is a copy of it, is gone",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := tc.fleet.Objects[0].Applied
			if diff := cmp.Diff(tc.want, judge(tc.fleet)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if tc.fleet.Objects[0].Applied != before {
				t.Error("the fleet that was judged is another one now")
			}
		})
	}
}

func TestPinnedSecretsUnderAnotherKeyDoNotCompare(t *testing.T) {
	secret := workload.Object{Kind: workload.Secret, Namespace: "shop", Name: "db"}
	under := func(b byte) *digest.Content {
		key, err := digest.NewKey(append(make([]byte, digest.KeySize-1), b))
		if err != nil {
			t.Fatal(err)
		}
		c := digest.OfSecret(key, "shop", "db", map[string][]byte{"password": []byte("x")})
		return &c
	}
	o := Object{Use: workload.Consumption{Object: secret, Env: workload.Keys{All: true}}, Applied: under(1)}
	f := fleetOf(o, pods(1, newPods, reading(o.Use), to("db-1")))
	for b, want := range map[byte]Verdict{1: InStep, 2: Unknown} {
		f.Snapshots = map[workload.Object]Snapshot{pinned(secret, "db-1"): {Source: secret, Content: under(b)}}
		if got := judge(f); got.Verdict != want {
			t.Errorf("a copy under key %d: %+v, want %s", b, got, want)
		}
	}
	f.Pods, f.Objects[0].Applied = pods(1, newPods, reading(o.Use), to(v1.AbsentName)), nil
	if got := Judge(f).Pods[0].Containers[0].Loaded[0]; got.Evidence != NotKnown || got.Digest != "" {
		t.Errorf("the absence of a Secret, under no key that is known: %+v", got)
	}
}

func TestNextOfAPinnedTemplateIsWhatItPins(t *testing.T) {
	there := Value{There: true}
	change := func(pods int, kept string) []KeyChange {
		return []KeyChange{{Object: used, Key: "interval", Pods: pods, Change: Changed, From: there, To: there, KeptIn: kept}}
	}
	unsure := []KeyChange{{Object: used, Pods: 1, Change: Unsure, Why: "what it would read is not known"}}
	none := optional(edited)
	for name, tc := range map[string]struct {
		fleet Fleet
		want  []KeyChange
	}{
		"pods of the template's pin": {pinnedTo(oldCopy, edited, pods(2, oldPods, to(oldCopy))), []KeyChange{}},
		"pods of another pin":        {pinnedTo(oldCopy, edited, pods(2, newPods, to(newCopy))), change(2, newCopy)},
		"pods that read the object itself": {
			pinnedTo(oldCopy, edited, join(pods(1, newPods, unmatched), pods(1, oldPods, to(oldCopy)))), change(1, ""),
		},
		"a template whose copy is not known": {pinnedTo("pricing-lost", edited, pods(1, newPods, to(newCopy))), unsure},
		"a template without pins":            {pinnedTo("", edited, pods(1, oldPods, to(oldCopy))), change(1, oldCopy)},
		"a template that pins an absence": {
			pinnedTo(v1.AbsentName, none, pods(1, newPods, readsOptionally, to(newCopy))),
			[]KeyChange{{Object: used, Key: "interval", Pods: 1, Change: Removed, From: there, KeptIn: newCopy}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Next(tc.fleet)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAContainerMayReadOneObjectInBothWays(t *testing.T) {
	p := pods(1, newPods)
	p[0].Containers[0].Pinned = []PinnedUse{{Use: wholeEnv, Snapshot: oldCopy}}
	unmatched(&p[0])
	f := pinnedTo(newCopy, edited, p, func(f *Fleet) { f.Mode = stamp.Roll })
	r := Judge(f)
	var got []Evidence
	for _, l := range r.Pods[0].Containers[0].Loaded {
		got = append(got, l.Evidence)
	}
	if diff := cmp.Diff([]Evidence{Inferred, Pinned}, got); diff != "" || r.Verdict != Split || r.Behind != 1 {
		t.Errorf("got %s, %d behind, evidence %v", r.Verdict, r.Behind, got)
	}
}

func TestWhatIsPinnedIsKnownAtOnce(t *testing.T) {
	f := pinnedTo(newCopy, edited, pods(1, 120, to(newCopy)), func(f *Fleet) {
		f.Pods[0].Containers[0].Started = now.Add(time.Second)
	})
	if got := judge(f); got.Verdict != InStep {
		t.Errorf("got %+v", got)
	}
}
