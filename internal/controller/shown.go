package controller

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/go-logr/logr"

	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/credential"
	"tidemark.dev/tidemark/internal/fleet"
	"tidemark.dev/tidemark/internal/notify"
	"tidemark.dev/tidemark/internal/workload"
)

// maxShown bounds how many keys of a workload a message shows, and maxShownValue the bytes of each value.
const (
	maxShown      = 5
	maxShownValue = 80
)

// shownValues gives, old and new, the values of the keys that the next start of a pod changes, of ConfigMaps that say that
// notifications may show them. It reads the workload once more, for the look at all fleets keeps no values.
func shownValues(survey cluster.Survey, log logr.Logger) func(context.Context, cluster.Workload) []notify.Fact {
	return func(ctx context.Context, w cluster.Workload) []notify.Fact {
		survey.Targets, survey.Values = []cluster.Target{w.Target}, true
		sight, err := survey.Read(ctx)
		if err != nil {
			log.Error(err, "Cannot read values for a notification; it goes without", "workload", w.String(), "namespace", w.Namespace)
			return nil
		}
		if len(sight.Workloads) == 0 {
			log.Info("Cannot read values for a notification; it goes without", "workload", w.String(), "namespace", w.Namespace, "why", strings.Join(sight.Remarks, "; "))
		}
		var out []notify.Fact
		for _, again := range sight.Workloads {
			out = append(out, factsOfValues(again.Namespace, fleet.Next(again.Fleet), again.Shown)...)
		}
		return out
	}
}

// factsOfValues words the changes of keys whose objects may be shown.
func factsOfValues(namespace string, changes []fleet.KeyChange, shown []workload.Object) []notify.Fact {
	var out []notify.Fact
	left := 0
	for _, c := range changes {
		switch {
		case c.Change == fleet.Unsure || c.Object.Kind == workload.Secret || !slices.Contains(shown, c.Object):
		case len(out) == maxShown:
			left++
		default:
			from, to := sides(c)
			out = append(out, notify.Fact{Name: c.Object.Relative(namespace) + " " + c.Key, Value: fmt.Sprintf("%s → %s (%d pods)", from, to, c.Pods)})
		}
	}
	if left > 0 {
		out = append(out, notify.Fact{Name: "and", Value: fmt.Sprintf("%d keys more", left)})
	}
	return out
}

// sides words both values. What looks like a credential is withheld on both sides: one tells of the other.
func sides(c fleet.KeyChange) (from, to string) {
	if credential.Like(c.Key, c.From.Text) || credential.Like(c.Key, c.To.Text) {
		return "(not shown)", "(not shown: it looks like a credential)"
	}
	return side(c.From), side(c.To)
}

func side(v fleet.Value) string {
	text, _, _ := strings.Cut(strings.TrimSpace(v.Text), "\n")
	switch {
	case !v.There:
		return "(none)"
	case !v.Kept:
		return "(value not kept)"
	case strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }):
		return "(not text)"
	case len(text) > maxShownValue:
		text = strings.ToValidUTF8(text[:maxShownValue], "") + "…"
	}
	return strconv.Quote(text)
}
