package cli

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/fleet"
)

// crowd is the mailer with many pods: of two versions, some unknown, some that do not run.
func crowd() cluster.Workload {
	w := mailer()
	old, young := w.Fleet.Pods[0], w.Fleet.Pods[2]
	w.Fleet.Pods = nil
	add := func(n int, p fleet.Pod, change func(*fleet.Pod)) {
		for range n {
			p.Name = fmt.Sprintf("mailer-7f9-%03d", len(w.Fleet.Pods))
			p.Containers = append([]fleet.Container{}, p.Containers...)
			change(&p)
			w.Fleet.Pods = append(w.Fleet.Pods, p)
		}
	}
	add(18, old, func(*fleet.Pod) {})
	add(6, young, func(*fleet.Pod) {})
	add(2, old, func(p *fleet.Pod) { p.Created = ago(100 * day) })
	add(3, young, func(p *fleet.Pod) { p.Containers[0].Started, p.Ready = time.Time{}, false })
	return w
}

func pictureOf(t *testing.T, s Screen, w cluster.Workload) string {
	t.Helper()
	var out bytes.Buffer
	if err := s.draw(&out, judge([]cluster.Workload{w})[0], now); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestAFleetIsDrawn(t *testing.T) {
	w := crowd()
	golden(t, "picture.txt", pictureOf(t, Screen{Width: 20}, w))
	golden(t, "picture.colour", strings.ReplaceAll(pictureOf(t, Screen{Colour: true}, w), "\x1b", "ESC"))
}

func TestOnATerminalWhatIsNotInStepIsDrawnBelow(t *testing.T) {
	s := sight()
	s.Workloads = nil
	for i := range maxPictures + 2 {
		w := mailer()
		w.Name = fmt.Sprint("mailer-", i)
		s.Workloads = append(s.Workloads, w)
	}
	s.Workloads = append(s.Workloads, calm(), lost())
	for _, terminal := range []bool{false, true} {
		var out, errOut bytes.Buffer
		o := statusTo(&out, &errOut)
		o.screen.Terminal = terminal
		if err := o.print(judge(s.Workloads), []seen{{sight: s, fleets: judge(s.Workloads)}}); err != nil {
			t.Fatal(err)
		}
		drawn := strings.Count(out.String(), "\n  ABB\n")
		if terminal && (drawn != maxPictures || !strings.Contains(out.String(), "2 more are not in step")) || !terminal && drawn != 0 {
			t.Errorf("terminal %t: %d fleets are drawn:\n%s", terminal, drawn, out.String())
		}
	}
}
