package cli

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/fleet"
	"tidemark.dev/tidemark/internal/workload"
)

// explained is all that is explained of one fleet.
type explained struct {
	judged
	sight  *cluster.Sight
	next   []fleet.KeyChange
	events []cluster.Event
}

// document is the explanation as it is printed in JSON and YAML, and as the text is made from.
func (e explained) document() v1.Explanation {
	out := v1.Explanation{
		APIVersion: v1.APIVersion, Kind: v1.KindExplanation, Time: seconds(e.sight.Now),
		Fleet: e.judged.document(), References: []v1.Reference{}, Next: e.nextKeys(),
		Ignored: names(e.Ignored), Remarks: e.sight.Remarks,
	}
	for _, r := range e.References {
		out.References = append(out.References, v1.Reference{
			Object: r.Object.String(), Source: string(r.Source), Rolls: r.Source.Rolls(), Container: r.Container,
			Role: string(r.Role), Keys: r.Keys, Optional: r.Optional, Detail: detail(r),
		})
	}
	if record := e.Fleet.Record; record != nil {
		if last := record.Last; last != nil {
			out.LastAction = &v1.LastAction{
				Time: seconds(last.Time), Action: string(last.Action), Reason: string(last.Reason), Changed: last.Changed,
			}
		}
		if hold := record.Hold; hold != nil {
			out.Hold = &v1.Hold{Reason: string(hold.Reason), Since: seconds(hold.Since)}
		}
	}
	for _, x := range e.events {
		out.Events = append(out.Events, v1.Event{
			Time: seconds(x.Time), Type: x.Type, Reason: x.Reason, Message: x.Message, Count: x.Count,
		})
	}
	return out
}

// detail says where a reference appears in its container.
func detail(r workload.Reference) string {
	switch r.Source {
	case workload.SourceEnv:
		return r.EnvName
	case workload.SourceEnvFrom:
		if r.Prefix != "" {
			return "prefix " + r.Prefix
		}
	case workload.SourceVolume, workload.SourceProjected:
		switch {
		case r.MountPath == "":
			return "volume " + r.Volume + ", not mounted"
		case r.SubPath != "":
			return r.MountPath + " (subPath " + r.SubPath + ")"
		}
		return r.MountPath
	case workload.SourceNamed:
		return "read through the API"
	case workload.SourceVolumeDriver:
		return "volume " + r.Volume
	case workload.SourcePullSecret, workload.SourceEphemeral:
	}
	return ""
}

// nextKeys are the keys that the next pod to start would read, object by object, with how they differ.
func (e explained) nextKeys() []v1.NextKey {
	changes := map[workload.Object]map[string][]fleet.KeyChange{}
	for _, c := range e.next {
		if changes[c.Object] == nil {
			changes[c.Object] = map[string][]fleet.KeyChange{}
		}
		changes[c.Object][c.Key] = append(changes[c.Object][c.Key], c)
	}
	out := []v1.NextKey{}
	for _, o := range e.Fleet.Objects {
		use, of := o.Use, changes[o.Use.Object]
		keys := map[string]bool{}
		for _, key := range e.Keys[e.nextOf(use.Object)] {
			keys[key] = use.Env.Has(key) || use.Files.Has(key)
		}
		for key := range of {
			keys[key] = true
		}
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			if !keys[key] {
				continue
			}
			entry := e.nextKey(use.Object, key)
			if len(of[key]) == 0 {
				out = append(out, entry)
			}
			for _, c := range of[key] {
				entry.Change, entry.Pods, entry.KeptIn, entry.Why = string(c.Change), c.Pods, c.KeptIn, c.Why
				entry.Was, entry.WasNote, _, _ = shownValues(c)
				if entry.WasNote == noteLooksLikeCredential {
					entry.Value, entry.Note = "", entry.WasNote
				}
				out = append(out, entry)
			}
		}
	}
	return out
}

// nextOf is the object that a pod which starts now reads in place of one: what the template pins it to, else itself.
func (e explained) nextOf(o workload.Object) workload.Object {
	if name := e.Fleet.Pins[o]; name != "" {
		o.Name = name
	}
	return o
}

// nextKey is a key with the value that a pod which starts now reads, where that may be shown.
func (e explained) nextKey(o workload.Object, key string) v1.NextKey {
	k := v1.NextKey{Object: o.String(), Key: key}
	from := e.nextOf(o)
	switch value, ok := e.Values[from][key]; {
	case key == "":
	case o.Kind == workload.Secret:
		k.Note = noteSecret
	case ok:
		k.Value, k.Note = presentable(key, value)
	case !slices.Contains(e.Keys[from], key):
		k.Note = "not there"
	default:
		k.Note = "binary data"
	}
	return k
}

// relative names an object as seen from the fleet's namespace.
func (e explained) relative(object string) string { return relativeTo(e.Namespace, object) }

// relativeTo names an object as seen from a namespace.
func relativeTo(namespace, object string) string {
	for _, kind := range []string{"configmap/", "secret/"} {
		if rest, ok := strings.CutPrefix(object, kind+namespace+"/"); ok {
			return kind + rest
		}
	}
	return object
}

// namesOf are the arguments that name a workload by KIND/NAME.
func namesOf(args []string) []string {
	var out []string
	for _, a := range args {
		if strings.Contains(a, "/") {
			out = append(out, a)
		}
	}
	return out
}

// keysText words which keys a reference reads.
func keysText(r v1.Reference) string {
	switch {
	case !r.Rolls:
		return "-"
	case len(r.Keys) == 0:
		return "all"
	}
	return short(strings.Join(r.Keys, ","), maxValue)
}

// valueText is the value for people.
func valueText(k v1.NextKey) string {
	if k.Value == "" {
		return dash(k.Note)
	}
	text := strconv.Quote(k.Value)
	if k.Note != "" {
		text += " (" + k.Note + ")"
	}
	return text
}

// changeText words how a key differs from what pods run with.
func changeText(k v1.NextKey) string {
	of := "of 1 pod"
	if k.Pods != 1 {
		of = fmt.Sprintf("of %d pods", k.Pods)
	}
	old := ""
	switch {
	case k.KeptIn != "":
		old = "; old value kept in " + k.KeptIn
	case k.WasNote != "" && k.WasNote != noteSecret:
		old = "; old " + k.WasNote
	}
	had, was := "another value", ""
	if k.Was != nil {
		had = sideText(k.Was, k.WasNote)
		was = ", " + had
	}
	switch fleet.Change(k.Change) {
	case fleet.Added:
		return "new to " + strings.TrimPrefix(of, "of ")
	case fleet.Removed:
		return "gone, " + strings.TrimPrefix(of, "of ") + " still have it" + was + old
	case fleet.Changed:
		return "changed, " + strings.TrimPrefix(of, "of ") + " have " + had + old
	case fleet.Unsure:
		return of + " it is not known what was loaded"
	}
	return "-"
}
