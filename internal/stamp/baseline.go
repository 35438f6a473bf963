package stamp

import (
	"strings"

	"tidemark.dev/tidemark/internal/digest"
	"tidemark.dev/tidemark/internal/workload"
)

// Names of parts: the view, then one key, all keys, or a list of keys. No key of a config object can hold the two marks.
const (
	envPrefix  = "env:"
	filePrefix = "file:"
	allKeys    = "*"
	keyList    = "#"
)

// part is one separately compared share of what is consumed of an object.
type part struct {
	name string
	view digest.View
	keys workload.Keys
}

func (p part) digest(o Object) digest.Digest { return o.Applied.Of(o.Use.Object, p.view, p.keys) }

// views gives the two views of a consumption with the prefix of their parts.
func views(use workload.Consumption) [2]part {
	return [2]part{
		{name: envPrefix, view: digest.Env, keys: use.Env},
		{name: filePrefix, view: digest.File, keys: use.Files},
	}
}

// partsOf lists the parts of a consumption. A view with more than foldAbove named keys becomes one part over the list:
// less detail when references change, the same answer as long as they do not.
func partsOf(use workload.Consumption, foldAbove int) []part {
	var parts []part
	for _, v := range views(use) {
		if v.keys.All {
			parts = append(parts, part{v.name + allKeys, v.view, v.keys})
			continue
		}
		names := possible(v.keys.Names)
		if len(names) > foldAbove {
			parts = append(parts, part{v.name + listName(use.Object, v.view, names), v.view, workload.Keys{Names: names}})
			continue
		}
		for _, k := range names {
			parts = append(parts, part{v.name + k, v.view, workload.Keys{Names: []string{k}}})
		}
	}
	return parts
}

// partNamed gives the part of a stored name, as far as the consumption still covers it: a key that is still read, alone or
// among all; all keys while any is read; a list of keys while the list is the same. Older records name a list of a Secret's keys by
// the mark alone, which does not say of which list, so such a part covers nothing.
func partNamed(name string, use workload.Consumption) (part, bool) {
	for _, v := range views(use) {
		rest, ok := strings.CutPrefix(name, v.name)
		if !ok || v.keys.Empty() {
			continue
		}
		p := part{name: name, view: v.view}
		switch {
		case rest == allKeys:
			p.keys = workload.Keys{All: true}
			return p, true
		case strings.HasPrefix(rest, keyList):
			p.keys.Names = possible(v.keys.Names)
			return p, !v.keys.All && rest == listName(use.Object, v.view, p.keys.Names)
		default:
			p.keys.Names = []string{rest}
			return p, v.keys.Has(rest)
		}
	}
	return part{}, false
}

// listName names a list of keys by the digest that an absent object has under it. Names of keys are no secret, so a Secret's list
// is named without its key, as any other.
func listName(o workload.Object, view digest.View, names []string) string {
	_, hash, _ := strings.Cut(string(digest.Content{Version: digest.V1}.Of(o, view, workload.Keys{Names: names})), "-")
	return keyList + hash
}

// possible leaves out keys that no object can have (a subPath may be any text), as their parts would be taken for others.
func possible(names []string) []string {
	kept := make([]string, 0, len(names))
	for _, n := range names {
		if n != "" && !strings.ContainsAny(n, allKeys+keyList) {
			kept = append(kept, n)
		}
	}
	return kept
}

// compare says whether the content of an object differs from its baseline.
//
// A part is compared with the same part only. Where a reference was narrowed, from all keys to some, the wide part
// decides: when it changed it cannot be told whether one of the keys did, so it counts. Where one was widened, the narrow
// parts that are known decide, and what else is read now is new. Digests that are not comparable decide nothing.
func compare(baseline, now map[string]digest.Digest, o Object) (changed bool) {
	for name, before := range baseline {
		after, ok := now[name]
		if !ok {
			p, covered := partNamed(name, o.Use)
			if !covered {
				continue
			}
			after = p.digest(o)
		}
		if differs(before, after) {
			return true
		}
	}
	return false
}

// Sizes in bytes, estimated from names alone so that the form of a record depends on references and not on contents.
const (
	// budget is for the objects and the earlier stamps; the rest of the 64 KiB is for images and what is noted.
	budget     = 48 << 10
	digestSize = 80
	objectSize = 48 + digestSize
)

// foldLevel gives the number of named keys above which a view is folded, so that the baselines fit into the budget.
func foldLevel(namespace string, objects []Object) int {
	const never = 1 << 30
	for _, level := range []int{never, 64, 16, 4} {
		if baselineSize(namespace, objects, level) <= budget {
			return level
		}
	}
	return 1
}

func baselineSize(namespace string, objects []Object, foldAbove int) int {
	size := 0
	for _, o := range objects {
		size += objectSize + len(o.Use.Object.Relative(namespace))
		for _, v := range views(o.Use) {
			switch n := len(v.keys.Names); {
			case v.keys.All || n > foldAbove:
				size += 2 * digestSize
			default:
				for _, k := range v.keys.Names {
					size += len(v.name) + len(k) + digestSize
				}
			}
		}
	}
	return size
}
