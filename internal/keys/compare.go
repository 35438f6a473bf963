package keys

import (
	"slices"
	"strings"
)

// ChangeKind says what happened to a setting.
type ChangeKind string

// What can happen to a setting.
const (
	Removed ChangeKind = "removed"
	Added   ChangeKind = "added"
	Changed ChangeKind = "changed"
	Renamed ChangeKind = "renamed"
)

// Change is a setting that differs between two releases.
type Change struct {
	Kind ChangeKind
	// Path is the setting; of a renamed one its new name.
	Path Path
	// From is the old name of a renamed setting.
	From Path
	// Match says how sure it is that a setting was renamed.
	Match Match
}

// Options of a comparison.
type Options struct {
	// Secret says that nothing may be concluded from values being the same.
	Secret bool
}

// Compare lists what differs, sorted by path. A setting that is renamed is not also removed and added.
func Compare(before, after Settings, o Options) []Change {
	var removed, added []Path
	var changes []Change
	for p, was := range before {
		v, has := after[p]
		switch {
		case has && v != was:
			changes = append(changes, Change{Kind: Changed, Path: p})
		case !has:
			removed = append(removed, p)
		}
	}
	for p := range after {
		if _, had := before[p]; !had {
			added = append(added, p)
		}
	}
	slices.SortFunc(removed, Path.Compare)
	slices.SortFunc(added, Path.Compare)
	m := matcher{before: before, after: after, secret: o.Secret}
	renamed := m.pair(removed, added)
	taken := map[Path]bool{}
	for _, r := range renamed {
		taken[r.Path], taken[r.From] = true, true
	}
	changes = append(changes, renamed...)
	for _, p := range removed {
		if !taken[p] {
			changes = append(changes, Change{Kind: Removed, Path: p})
		}
	}
	for _, p := range added {
		if !taken[p] {
			changes = append(changes, Change{Kind: Added, Path: p})
		}
	}
	slices.SortFunc(changes, func(a, b Change) int { return a.at().Compare(b.at()) })
	return changes
}

// at is the path that a change is sorted by: the one that was there before, if any.
func (c Change) at() Path {
	if c.Kind == Renamed {
		return c.From
	}
	return c.Path
}

// Successors finds, for settings that are gone, others by another name that were there before already, and still are: the second
// step of a rename in two steps.
type Successors struct {
	before Settings
	// stayed are the settings of both releases, sorted, and left is how many more comparisons are made.
	stayed []named
	left   int
}

// NewSuccessors prepares the search between two releases.
func NewSuccessors(before, after Settings) *Successors {
	var paths []Path
	for p := range after {
		if _, had := before[p]; had {
			paths = append(paths, p)
		}
	}
	slices.SortFunc(paths, Path.Compare)
	return &Successors{before: before, stayed: before.in(paths), left: maxPairs}
}

// Of finds the successor of a setting that is gone: one whose name has the same words. None once too many were compared.
func (s *Successors) Of(gone Path) (Path, bool) {
	if s.left -= len(s.stayed); s.left < 0 {
		return Path{}, false
	}
	from := nameOf(gone, s.before[gone])
	// The value says nothing here: two settings that always had one value need have nothing in common.
	i := slices.IndexFunc(s.stayed, from.sameWords)
	if i < 0 {
		return Path{}, false
	}
	return s.stayed[i].Path, true
}

// Under reports whether a setting is the given one, or a part of it.
func (p Path) Under(q Path) bool {
	return p.Key == q.Key && (q.Setting == "" || p.Setting == q.Setting || strings.HasPrefix(p.Setting, q.Setting+"."))
}

// Above lists what the setting is part of, the widest first, and the setting itself last.
func (p Path) Above() []Path {
	out := []Path{{Key: p.Key}}
	for i, r := range p.Setting {
		if r == '.' {
			out = append(out, Path{p.Key, p.Setting[:i]})
		}
	}
	if p.Setting != "" {
		out = append(out, p)
	}
	return out
}
