package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/printers"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/cluster/revisions"
	"tidemark.dev/tidemark/internal/revision"
)

// printHistory prints the revisions as a table, lowest number first.
func printHistory(out io.Writer, h *revisions.History, wide, headers bool) error {
	w := printers.GetNewTabWriter(out)
	columns := []string{"REVISION", "AGE", "IMAGES", "CONFIGURATION", "PODS", "REACHABLE", "CHANGE-CAUSE"}
	if wide {
		columns = append(columns, "NAME", "CREATED", "STAMP", "AVAILABLE")
	}
	if headers {
		fmt.Fprintln(w, strings.Join(columns, "\t"))
	}
	var before []revision.Reading
	for i, r := range h.Revisions {
		line := []string{
			numberText(r), ageText(h, r), imagesText(r), configurationText(h, r, before, i > 0),
			podCountText(r.Pods), reachText(h, r), orNone(r.Cause),
		}
		if wide {
			created := "<unknown>"
			if !r.Created.IsZero() {
				created = r.Created.UTC().Format(time.RFC3339)
			}
			available := string(r.Availability)
			if r.Evidence != "" {
				available += ": " + r.Evidence
			}
			line = append(line, orNone(r.Name), created, orNone(shortDigest(r.Stamp())), available)
		}
		fmt.Fprintln(w, row(line))
		before = r.Readings()
	}
	return w.Flush()
}

func numberText(r revision.Revision) string {
	text := "-"
	if r.Number > 0 {
		text = revision.Number(r.Number)
	}
	if r.Current {
		text += " (current)"
	}
	return text
}

func ageText(h *revisions.History, r revision.Revision) string {
	if r.Created.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(h.Now.Sub(r.Created))
}

// configurationText names where each object is read: "configmap/web@3*,secret/db@applied".
func configurationText(h *revisions.History, r revision.Revision, before []revision.Reading, compared bool) string {
	var words []string
	for _, reading := range r.Readings() {
		word := reading.Object.Relative(h.Namespace) + "@" + version(h, reading)
		if compared && readsElsewhere(reading, before) {
			word += "*"
		}
		words = append(words, word)
	}
	return orNone(strings.Join(words, ","))
}

// podCountText counts pods: "4", "4: 3 ready, 2 available", "0".
func podCountText(p revision.Pods) string {
	switch {
	case !p.Known:
		return "<unknown>"
	case p.Available == p.All:
		return fmt.Sprint(p.All)
	}
	return fmt.Sprintf("%d: %d ready, %d available", p.All, p.Ready, p.Available)
}

func orNone(text string) string {
	if text == "" {
		return "<none>"
	}
	return text
}

// printRevisionNames prints the revisions as arguments that kubectl takes.
func printRevisionNames(out io.Writer, h *revisions.History) error {
	for _, r := range h.Revisions {
		if r.Name == "" {
			continue
		}
		if _, err := fmt.Fprintf(out, "%s.apps/%s\n", h.RevisionResource(), r.Name); err != nil {
			return err
		}
	}
	return nil
}

// historyDocument is the list as it is printed in JSON and YAML.
func historyDocument(h *revisions.History) v1.RevisionList {
	list := v1.RevisionList{
		APIVersion: v1.APIVersion, Kind: v1.KindRevisionList, Time: seconds(h.Now),
		Workload: referenceTo(h), Mode: string(h.Mode), Items: []v1.Revision{}, Remarks: h.Remarks,
	}
	var before []revision.Reading
	for i, r := range h.Revisions {
		list.Items = append(list.Items, revisionDocument(h, r, before, i > 0))
		before = r.Readings()
	}
	return list
}

func referenceTo(h *revisions.History) v1.WorkloadReference {
	return v1.WorkloadReference{
		APIVersion: h.Kind.GroupVersion().String(), Kind: h.Kind.GroupVersionKind.Kind,
		Namespace: h.Namespace, Name: h.Name, UID: h.UID,
	}
}

func revisionDocument(h *revisions.History, r revision.Revision, before []revision.Reading, compared bool) v1.Revision {
	out := v1.Revision{
		Revision: r.Number, Former: r.Former, Name: r.Name, Created: seconds(r.Created), Current: r.Current,
		ChangeCause: r.Cause, Stamp: r.Stamp(), Images: []v1.RevisionImage{}, Configuration: []v1.RevisionObject{},
		Available: string(r.Availability), Evidence: r.Evidence,
		Reach: string(r.Reached(h.Copies).Reach),
	}
	if out.Reach != string(revision.InFull) {
		out.Why = reachText(h, r)
	}
	for _, i := range revision.Images(r.Template) {
		out.Images = append(out.Images, v1.RevisionImage{Container: i.Container, Image: i.Image})
	}
	if r.Pods.Known {
		out.Pods = &v1.RevisionPods{All: r.Pods.All, Ready: r.Pods.Ready, Available: r.Pods.Available}
	}
	for _, reading := range r.Readings() {
		object := v1.RevisionObject{
			Object: reading.Object.String(), Absent: reading.Absent(), Changed: compared && readsElsewhere(reading, before),
		}
		if copied, has := reading.Copy(); has {
			c := h.Copies.Of(copied)
			object.Copy, object.CopyRevision, object.State = copied.Name, c.Revision, string(c.State)
		}
		out.Configuration = append(out.Configuration, object)
	}
	return out
}
