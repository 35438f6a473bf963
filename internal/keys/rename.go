package keys

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
)

// Confidence is how sure it is that two names are of one setting.
type Confidence int

// The confidences, least first.
const (
	NoMatch Confidence = iota
	Low
	Medium
	High
)

// String gives the word for people.
func (c Confidence) String() string {
	switch c {
	case NoMatch:
		return "none"
	case Low:
		return "low"
	case Medium:
		return "medium"
	case High:
		return "high"
	}
	return ""
}

// Match is why two names are taken for one setting.
type Match struct {
	Confidence Confidence
	// Words says that the names have words in common, SameWords that they have all, Value that the value is the same.
	Words, SameWords, Value bool

	overlap float64
}

// maxPairs bounds the comparison of each name with each.
const maxPairs = 1 << 18

// matcher finds the settings that were renamed.
type matcher struct {
	before, after Settings
	secret        bool
}

// named is a setting with the words of its name, sorted, and how it is spelled without what separates them.
type named struct {
	Path
	Value

	words   []string
	spelled string
}

func nameOf(p Path, v Value) named {
	words := Words(p.name())
	spelled := strings.Join(words, "")
	slices.Sort(words)
	return named{p, v, words, spelled}
}

// sameWords reports whether the names have the same words, in any order.
func (n named) sameWords(other named) bool {
	return len(n.words) > 0 && slices.Equal(n.words, other.words)
}

// in gives the settings of the paths.
func (s Settings) in(paths []Path) []named {
	out := make([]named, len(paths))
	for i, p := range paths {
		out[i] = nameOf(p, s[p])
	}
	return out
}

// pair finds for removed settings the added ones that have their meaning, each at most once, the surest first.
func (m *matcher) pair(removed, added []Path) []Change {
	if len(removed) == 0 || len(added) == 0 || len(removed)*len(added) > maxPairs {
		return nil
	}
	uniqueBefore, uniqueAfter := rare(m.before, removed), rare(m.after, added)
	var found []Change
	candidates := m.after.in(added)
	for _, from := range m.before.in(removed) {
		unique := uniqueBefore[from.text] == 1 && uniqueAfter[from.text] == 1
		for _, to := range candidates {
			if match := m.match(from, to, unique); match.Confidence != NoMatch {
				found = append(found, Change{Kind: Renamed, Path: to.Path, From: from.Path, Match: match})
			}
		}
	}
	slices.SortStableFunc(found, func(a, b Change) int {
		return cmp.Or(cmp.Compare(b.Match.Confidence, a.Match.Confidence), cmp.Compare(b.Match.overlap, a.Match.overlap))
	})
	taken := map[Path]bool{}
	return slices.DeleteFunc(found, func(c Change) bool {
		if taken[c.From] || taken[c.Path] {
			return true
		}
		taken[c.From], taken[c.Path] = true, true
		return false
	})
}

// rare counts how many of the settings have each value.
func rare(s Settings, paths []Path) map[string]int {
	counts := map[string]int{}
	for _, p := range paths {
		counts[s[p].text]++
	}
	return counts
}

// match compares one setting with another. unique says that no third one has their value.
func (m *matcher) match(from, to named, unique bool) Match {
	same := !m.secret && from.text == to.text
	out := Match{Value: same, overlap: overlap(from.words, to.words)}
	out.Words, out.SameWords = out.overlap > 0, from.sameWords(to)
	telling := same && unique && distinctive(from.Value)
	switch {
	case out.SameWords && (same || from.spelled == to.spelled), telling && out.overlap >= 0.5:
		out.Confidence = High
	case out.SameWords, telling && out.overlap > 0, same && out.overlap >= enoughWords(from.Value):
		out.Confidence = Medium
	case telling, typo(from.words, to.words):
		out.Confidence = Low
	}
	return out
}

// enoughWords is the share of words that settings of one value must have in common.
func enoughWords(v Value) float64 {
	if distinctive(v) {
		return 0.5
	}
	return 0.7
}

// distinctive reports whether a value can tell settings apart: nearly every file has a "true", a "1" and an "info".
func distinctive(v Value) bool {
	switch v.kind {
	case kindBool, kindNull, kindEmpty:
		return false
	case kindNumber:
		return len(v.text) >= 4
	}
	return len(v.text) >= 6
}

// name is what of a path carries the meaning: the setting, or the key where it holds no file.
func (p Path) name() string { return cmp.Or(p.Setting, p.Key) }

// Words splits a name such as "discountRules_path" into words in lower case: discount, rule, path. A plural counts as its
// singular.
func Words(name string) []string {
	var words []string
	var word strings.Builder
	end := func() {
		if word.Len() > 0 {
			words = append(words, singular(word.String()))
			word.Reset()
		}
	}
	var before rune
	for _, r := range name {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			end()
		case unicode.IsUpper(r) && unicode.IsLower(before):
			end()
			word.WriteRune(unicode.ToLower(r))
		default:
			word.WriteRune(unicode.ToLower(r))
		}
		before = r
	}
	end()
	return words
}

func singular(word string) string {
	if len(word) > 3 && strings.HasSuffix(word, "s") && !strings.HasSuffix(word, "ss") {
		return strings.TrimSuffix(word, "s")
	}
	return word
}

// overlap is the share of words that two sorted lists have in common, of all that either has.
func overlap(a, b []string) float64 {
	common, i, j := 0, 0, 0
	for i < len(a) && j < len(b) {
		switch c := cmp.Compare(a[i], b[j]); {
		case c < 0:
			i++
		case c > 0:
			j++
		default:
			common, i, j = common+1, i+1, j+1
		}
	}
	if common == 0 {
		return 0
	}
	return float64(common) / float64(len(a)+len(b)-common)
}

// typo reports whether two names differ in one word, and there by one letter that is missing, too many, another, or exchanged
// with its neighbour.
func typo(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	differ := 0
	for i := range a {
		if a[i] == b[i] {
			continue
		}
		if differ++; differ > 1 || min(len(a[i]), len(b[i])) < 4 || !oneEdit(a[i], b[i]) {
			return false
		}
	}
	return differ == 1
}

func oneEdit(a, b string) bool {
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	if strings.ContainsAny(a+b, "0123456789") {
		return false // shard1 is another shard than shard2
	}
	exchanged := len(a) == 2 && len(b) == 2 && a[0] == b[1] && a[1] == b[0]
	return len(a) <= 1 && len(b) <= 1 || exchanged
}

// Similar finds the key that a misspelled one is meant to be: of the same words, or one letter off; "" for none.
func Similar(key string, present []string) string {
	words := nameOf(Path{Key: key}, Value{}).words
	for _, p := range present {
		other := nameOf(Path{Key: p}, Value{}).words
		if p != key && (slices.Equal(words, other) || typo(words, other)) {
			return p
		}
	}
	return ""
}
