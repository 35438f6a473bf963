package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"

	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/cluster/revisions"
	"tidemark.dev/tidemark/internal/revision"
	"tidemark.dev/tidemark/internal/workload"
)

// oneWorkload reads KIND/NAME, or KIND NAME, of a workload whose revisions are known; what follows is the rest.
func (s *session) oneWorkload(args []string) (t cluster.Target, rest []string, err error) {
	first := 1
	if len(args) > 0 && !strings.Contains(args[0], "/") {
		first = min(2, len(args))
	}
	kinds, err := s.allKinds()
	if err != nil {
		return cluster.Target{}, nil, err
	}
	namespace, err := s.namespace()
	if err != nil {
		return cluster.Target{}, nil, err
	}
	if len(args) == 0 {
		return cluster.Target{}, nil, usagef("name one workload: KIND/NAME, such as deployment/web")
	}
	selected, err := selectWorkloads(args[:first], namespace, kinds, s.mapper)
	if err != nil {
		return cluster.Target{}, nil, err
	}
	if len(selected.targets) != 1 {
		return cluster.Target{}, nil, usagef("name one workload: KIND/NAME, such as deployment/web")
	}
	return selected.targets[0], args[first:], nil
}

// look reads the revisions of the workload that the arguments name alone.
func (s *session) look(args []string) (func(context.Context) (*revisions.History, error), error) {
	t, rest, err := s.oneWorkload(args)
	if err != nil {
		return nil, err
	}
	if len(rest) > 0 {
		return nil, usagef("name one workload: unexpected argument %q", rest[0])
	}
	return s.lookAt(t)
}

func (s *session) lookAt(t cluster.Target) (func(context.Context) (*revisions.History, error), error) {
	mode, err := s.mode()
	if err != nil {
		return nil, err
	}
	c, err := s.connect()
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (*revisions.History, error) { return revisions.HistoryOf(ctx, c, t, mode) }, nil
}

// completeOneWorkload offers KIND/NAME, or a name after a kind, and nothing behind it.
func (s *session) completeOneWorkload(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 1 || len(args) == 1 && len(namesOf(args)) > 0 {
		return nil, noFiles
	}
	return s.completeWorkloads(cmd, args, toComplete)
}

// completeRevisions offers the numbers of the revisions of the workload that the arguments name, with what they run.
func (s *session) completeRevisions(cmd *cobra.Command, args []string) []string {
	t, _, err := s.oneWorkload(args)
	if err != nil {
		return nil
	}
	mode, err := s.mode()
	if err != nil {
		return nil
	}
	return s.ask(cmd.Context(), func(ctx context.Context, c *cluster.Connection) []string {
		h, err := revisions.HistoryOf(ctx, c, t, mode)
		if err != nil {
			return nil
		}
		var out []string
		for _, r := range h.Revisions {
			if r.Number > 0 {
				out = append(out, cobra.CompletionWithDesc(revision.Number(r.Number), describe(h, r)))
			}
		}
		return out
	})
}

// describe says of a revision what it runs, and its age.
func describe(h *revisions.History, r revision.Revision) string {
	text := imagesText(r) + ", " + duration.HumanDuration(h.Now.Sub(r.Created)) + " old"
	if r.Current {
		text += ", current"
	}
	return text
}

// imagesText lists the images of a revision, with the containers' names where there are several.
func imagesText(r revision.Revision) string {
	images := revision.Images(r.Template)
	var words []string
	for _, i := range images {
		if len(images) == 1 {
			words = append(words, i.Image)
		} else {
			words = append(words, i.Container+"="+i.Image)
		}
	}
	return strings.Join(words, ",")
}

// version words where a revision reads an object: "applied", "absent", "3" for the third copy, or the end of the name of a
// copy without a number.
func version(h *revisions.History, r revision.Reading) string {
	copied, has := r.Copy()
	if !has {
		if r.Absent() {
			return "absent"
		}
		return "applied"
	}
	if n := h.Copies.Of(copied).Revision; n > 0 {
		return revision.Number(n)
	}
	return copied.Name[strings.LastIndexByte(copied.Name, '-')+1:]
}

// reachText words how far a revision can be reached.
func reachText(h *revisions.History, r revision.Revision) string {
	reached := r.Reached(h.Copies)
	switch reached.Reach {
	case revision.InFull:
		return "in full"
	case revision.NotPinned:
		return "not pinned: reads what is applied"
	case revision.InPart:
		return "in part: " + objects(h, reached.Applied) + " as applied"
	case revision.OutOf:
		return "no: " + whyNot(h, reached.Gone)
	case revision.ReachOpen:
	}
	if r.PinsProblem != "" {
		return "unknown: " + r.PinsProblem
	}
	return "unknown: " + whyNot(h, reached.Open)
}

// whyNot says of each reading what became of its copy: "configmap/web: its copy is gone (configmap/web-x does not exist)".
func whyNot(h *revisions.History, readings []revision.Reading) string {
	var words []string
	for _, r := range readings {
		copied, _ := r.Copy()
		c := h.Copies.Of(copied)
		text := "its copy is gone"
		switch c.State {
		case revision.CopyForeign:
			text = "something else has the name of its copy"
		case revision.CopyUnknown:
			text = "its copy cannot be looked for"
		case revision.CopyGone, revision.CopyThere:
		}
		words = append(words, fmt.Sprintf("%s: %s (%s)", r.Object.Relative(h.Namespace), text, c.Why))
	}
	return strings.Join(words, "; ")
}

func objects(h *revisions.History, readings []revision.Reading) string {
	var words []string
	for _, r := range readings {
		words = append(words, r.Object.Relative(h.Namespace))
	}
	return strings.Join(words, ", ")
}

// readsElsewhere reports whether another revision reads the object in another place, or not at all.
func readsElsewhere(r revision.Reading, other []revision.Reading) bool {
	before, has := readingOf(other, r.Object)
	return !has || before.Pin != r.Pin
}

func readingOf(readings []revision.Reading, o workload.Object) (revision.Reading, bool) {
	for _, r := range readings {
		if r.Object == o {
			return r, true
		}
	}
	return revision.Reading{}, false
}
