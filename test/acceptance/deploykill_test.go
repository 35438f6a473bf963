package acceptance

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "tidemark.dev/tidemark/api/v1"
)

// TestSoakADeployKilledAnywhereIsRecoveredByTheNext kills guarded upgrades at random points. Where one is left pending, people are
// told, under one key; the next guarded upgrade goes through by its policy, which under forward writes no workload but its own
// change.
func TestSoakADeployKilledAnywhereIsRecoveredByTheNext(t *testing.T) {
	points := 2 // of each policy
	if soaking() {
		points = 25
	}
	chosen := chosenSeed(t)
	t.Logf("TIDEMARK_SEED=%d", chosen)
	v := alone(t)
	in := newInbox(t)
	c := v.control(append(in.flags, "--release-interval=500ms")...)
	for i, policy := range []string{"forward", "rollback"} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			k := &killings{deployed: deployOn(venue{t, v.lab}, "killed-"+policy), in: in, policy: policy, random: rand.New(rand.NewPCG(chosen, uint64(i)))}
			k.controller = c
			k.eventually("people to be told of what holds from now on", k.controllerHasLooked)
			for point := range points {
				k.kill((time.Duration(point)*guardKilled + time.Duration(k.random.Int64N(int64(guardKilled)))) / time.Duration(points))
			}
			t.Logf("%d of %d were left pending", k.left, points)
		})
	}
}

// killings are guarded upgrades of one release that are killed, one after the other.
type killings struct {
	*deployed
	in     *inbox
	policy string
	random *rand.Rand
	// release is that of the chart which is asked for next; left is how many upgrades were left pending.
	release, left int
}

// guardKilled is the time within which an upgrade is killed, whose pods take about as long; guardStops is when its guard would stop it.
const (
	guardStops  = "8s"
	guardKilled = 5 * time.Second
)

// upgrade starts the guarded upgrade to the next release of the chart.
func (k *killings) upgrade(timeout, bootDelay string) *guarded {
	k.release++
	return k.guard([]string{"--lease-duration", "3s", "--timeout", timeout, "--policy", k.policy, "--progress=false"},
		"--set", fmt.Sprintf("bootDelay=%s,release=%d", bootDelay, 1+k.release%2))
}

// kill kills an upgrade so long after its start, and has the next one follow.
func (k *killings) kill(after time.Duration) {
	k.t.Helper()
	g := k.upgrade(guardStops, "4s")
	time.Sleep(after)
	_ = syscall.Kill(g.Process.Pid, syscall.SIGKILL) // it may have ended; helm dies with it
	g.ended(k.t)
	k.eventually("helm to die with its guard", func() error { return childless(g.Process.Pid) })
	history := k.statuses()
	pending := strings.Contains(history, "pending")
	if pending {
		k.left++
		k.told(k.lease().Labels[v1.LabelDeploy])
	}
	k.t.Logf("killed after %s: %s", after, history)
	before := k.generation()
	var next *guarded
	k.eventually("the next upgrade to go through", func() error {
		if next = k.upgrade("2m", "0s"); next.ended(k.t) != 0 {
			k.release-- // it was refused, and is asked for again
			return fmt.Errorf("exit status %d: %s", next.ProcessState.ExitCode(), next.said.String())
		}
		return nil
	})
	newest := k.statuses()
	if !strings.HasSuffix(newest, " deployed") || strings.Contains(newest, "pending") {
		k.t.Errorf("the revisions are %s", newest)
	}
	if after := k.generation(); k.policy == "forward" && pending && after > before+1 {
		k.t.Errorf("the workload was written %d times, want once by the upgrade at the most", after-before)
	}
	if recovered := strings.Contains(next.said.String(), "is recovered"); pending != recovered {
		k.t.Errorf("it was pending: %t, recovered: %t; said %s", pending, recovered, next.said.String())
	}
}

// told waits until the receiver has the page about a deploy, once.
func (k *killings) told(deploy string) {
	k.t.Helper()
	key := fmt.Sprintf("tidemark/lab/release/%s/checkout/abandoned/%s", k.Namespace, deploy)
	k.eventually("the receiver to get "+key+" once", func() error {
		n := 0
		for _, m := range k.in.of("TidemarkReleaseAbandoned", k.Namespace, "checkout", "firing") {
			if m.Key == key {
				n++
			}
		}
		if n != 1 {
			return fmt.Errorf("it got %d", n)
		}
		return nil
	})
}

// generation counts the writes of the Deployment's spec.
func (k *killings) generation() int64 {
	k.t.Helper()
	return k.get("deployment/checkout").GetGeneration()
}
