package cli

import (
	"fmt"
	"strconv"
	"strings"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/fleet"
	"tidemark.dev/tidemark/internal/workload"
)

// Notes of values that are not shown.
const (
	noteNotKept = "value not kept"
	noteSecret  = "values of Secrets are never shown"
)

// nextStarts are the revisions of which a pod that starts now would read something otherwise.
func (j judged) nextStarts() []v1.NextStart {
	if j.Blind != "" {
		return nil
	}
	var out []v1.NextStart
	for _, s := range fleet.Starts(j.Fleet) {
		if len(s.Keys) == 0 {
			continue
		}
		start := v1.NextStart{Revision: s.Revision, Pods: s.Pods}
		for _, c := range s.Keys {
			k := v1.NextStartKey{
				Object: c.Object.String(), Key: c.Key, Change: string(c.Change), Pods: c.Pods, Blocks: c.Blocks, Why: c.Why,
			}
			k.From, k.FromNote, k.To, k.ToNote = shownValues(c)
			start.Keys = append(start.Keys, k)
		}
		out = append(out, start)
	}
	return out
}

// shownValues are the two values of a key as they may be shown. What is withheld of one is of the other: a value that was a
// credential tells of the one that follows.
func shownValues(c fleet.KeyChange) (from *string, fromNote string, to *string, toNote string) {
	from, fromNote = shownValue(c.Object, c.Key, c.From)
	to, toNote = shownValue(c.Object, c.Key, c.To)
	switch {
	case fromNote == noteLooksLikeCredential && c.To.There:
		to, toNote = nil, fromNote
	case toNote == noteLooksLikeCredential && c.From.There:
		from, fromNote = nil, toNote
	}
	return from, fromNote, to, toNote
}

func shownValue(o workload.Object, key string, v fleet.Value) (text *string, note string) {
	switch {
	case !v.There:
		return nil, ""
	case o.Kind == workload.Secret:
		return nil, noteSecret
	case !v.Kept:
		return nil, noteNotKept
	case v.Text == "":
		return &v.Text, ""
	}
	if shown, note := presentable(key, v.Text); shown != "" || note != noteEmpty {
		if shown == "" {
			return nil, note
		}
		return &shown, note
	}
	return &v.Text, ""
}

// sideText words one of the two values: "10m" in quotes, (none), or why it is not shown.
func sideText(value *string, note string) string {
	switch {
	case value == nil && note == "":
		return "(none)"
	case value == nil:
		return "(" + note + ")"
	case note != "":
		return strconv.Quote(*value) + " (" + note + ")"
	}
	return strconv.Quote(*value)
}

// nextStartText is all of it in one line: `LEASE "10m" -> "2m" (18 pods)`.
func (j judged) nextStartText() string {
	var words []string
	for _, s := range j.nextStarts() {
		for _, k := range s.Keys {
			words = append(words, keyText(j.Namespace, k))
		}
	}
	if len(words) == 0 {
		return "<none>"
	}
	if more := len(words) - maxKeys; more > 0 {
		words = append(words[:maxKeys], fmt.Sprintf("%d more", more))
	}
	return strings.Join(words, "; ")
}

// maxKeys bounds how many keys one line has.
const maxKeys = 5

func keyText(namespace string, k v1.NextStartKey) string {
	pods := fmt.Sprintf("(%d pods)", k.Pods)
	if k.Pods == 1 {
		pods = "(1 pod)"
	}
	if fleet.Change(k.Change) == fleet.Unsure {
		return relativeTo(namespace, k.Object) + " not known " + pods
	}
	text := fmt.Sprintf("%s %s -> %s %s", k.Key, sideText(k.From, k.FromNote), sideText(k.To, k.ToNote), pods)
	switch {
	case k.FromNote == noteSecret || k.ToNote == noteSecret:
		text = fmt.Sprintf("%s of %s %s %s", k.Key, relativeTo(namespace, k.Object), k.Change, pods)
	case k.FromNote != "" && k.FromNote == k.ToNote:
		text = fmt.Sprintf("%s %s, %s %s", k.Key, k.Change, k.FromNote, pods)
	}
	if k.Blocks {
		text += ", would not start"
	}
	return text
}
