package history

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

const (
	// maxSilences bounds those that are remembered of a node.
	maxSilences = 16
	// silenceLayout is how their ends are written: to the millisecond, which is less than any margin.
	silenceLayout = "2006-01-02T15:04:05.000Z"
	// silenceLasts stands for the end of one that lasts.
	silenceLasts = "now"
)

// Silences are the times for which nodes gave no sign of life, by node, oldest first and apart from each other. One that lasts has a To
// that is zero; only the newest of a node can.
type Silences map[string][]Span

// Begin takes in that a node gave no sign of life since, and reports whether that is news.
func (s Silences) Begin(node string, since time.Time) bool {
	if of := s[node]; len(of) > 0 && of[len(of)-1].To.IsZero() {
		return false
	}
	s.add(node, Span{From: since})
	return true
}

// End takes in the first sign of life after a silence, and reports whether one lasted. Where it was shorter than at least, it was none.
func (s Silences) End(node string, at time.Time, least time.Duration) bool {
	of := s[node]
	if len(of) == 0 || !of[len(of)-1].To.IsZero() {
		return false
	}
	last := &of[len(of)-1]
	if last.To = at; at.Sub(last.From) >= least {
		return true
	}
	if s[node] = of[:len(of)-1]; len(s[node]) == 0 {
		delete(s, node)
	}
	return true
}

// add appends a silence. Of more than are remembered the oldest two become one with what is between them: what it makes unknown may have
// been known, and nothing unknown becomes known.
func (s Silences) add(node string, silence Span) {
	s[node] = bound(append(s[node], silence), maxSilences)
}

// bound joins the oldest silences until there are no more than so many.
func bound(of []Span, most int) []Span {
	for len(of) > most {
		of = slices.Replace(of, 0, 2, Span{From: of[0].From, To: of[1].To})
	}
	return of
}

// Forget drops what is remembered of nodes that are not there, whose pods are gone as well, and reports whether there was something.
func (s Silences) Forget(there func(node string) bool) bool {
	before := len(s)
	maps.DeleteFunc(s, func(node string, _ []Span) bool { return !there(node) })
	return len(s) < before
}

// Encode gives the data of a ConfigMap of at most [ShardLimit] bytes: of each node its silences, with fewer of each where there are too
// many. An error says that there are too many nodes even so; the data then has those that come first by name.
func (s Silences) Encode() (map[string]string, error) {
	for most := maxSilences; ; most /= 2 {
		data, size := map[string]string{}, 0
		for _, node := range slices.Sorted(maps.Keys(s)) {
			entry := encodeSilences(bound(slices.Clone(s[node]), most))
			if size += len(node) + len(entry); size > ShardLimit && most == 1 {
				return data, fmt.Errorf("the silences of %d nodes are too many for one ConfigMap: of the last %d nothing is remembered", len(s), len(s)-len(data))
			}
			data[node] = entry
		}
		if size <= ShardLimit {
			return data, nil
		}
	}
}

func encodeSilences(of []Span) string {
	texts := make([]string, len(of))
	for i, silence := range of {
		to := silenceLasts
		if !silence.To.IsZero() {
			to = silence.To.Add(time.Millisecond - 1).UTC().Format(silenceLayout) // the layout truncates
		}
		texts[i] = silence.From.UTC().Format(silenceLayout) + "/" + to
	}
	return strings.Join(texts, " ")
}

// DecodeSilences reads what [Silences.Encode] gave. Of a node whose entry cannot be read, which the error names, it is as if it had
// always been silent.
func DecodeSilences(data map[string]string) (Silences, error) {
	s := Silences{}
	var errs []error
	for _, node := range slices.Sorted(maps.Keys(data)) {
		of, err := decodeSilences(data[node])
		if err != nil {
			errs = append(errs, fmt.Errorf("silences of node %s: %w", node, err))
			of = []Span{{From: time.Unix(0, 0).UTC()}}
		}
		s[node] = of
	}
	return s, errors.Join(errs...)
}

func decodeSilences(entry string) ([]Span, error) {
	var of []Span
	for text := range strings.FieldsSeq(entry) {
		begin, end, _ := strings.Cut(text, "/")
		from, err := time.Parse(silenceLayout, begin)
		if err != nil {
			return nil, err
		}
		silence := Span{From: from}
		if end != silenceLasts {
			if silence.To, err = time.Parse(silenceLayout, end); err != nil {
				return nil, err
			}
		}
		of = append(of, silence)
	}
	return of, nil
}
