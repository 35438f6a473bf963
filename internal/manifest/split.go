package manifest

import (
	"regexp"
	"strings"
)

// document is one of a stream, as text.
type document struct {
	text string
	// line that it begins at, from 1.
	line int
	// source is what helm's comment says that it was rendered from.
	source string
}

var (
	helmSource = regexp.MustCompile(`(?m)^# Source: (\S+)\s*$`)
	topKind    = regexp.MustCompile(`(?m)^kind:[ \t]*["']?(\w+)["']?[ \t]*(?:#.*)?\r?$`)
	// anchored finds what makes a document worth parsing although nobody asks for its kind: aliases, which may expand.
	anchored = regexp.MustCompile(`(?m)(^|[\s\[{,:-])[&*][A-Za-z0-9_-]+|<<:`)
)

// split cuts a stream at its markers. A marker stands at the beginning of a line, where no block can have text.
func split(text string) []document {
	text = strings.TrimPrefix(text, "\ufeff")
	var out []document
	current := document{line: 1}
	begin, line := 0, 0
	for at := 0; at < len(text); {
		line++
		next := len(text)
		if i := strings.IndexByte(text[at:], '\n'); i >= 0 {
			next = at + i + 1
		}
		if marker, rest := cutMarker(text[at:next]); marker {
			current.text = text[begin:at]
			out = append(out, current)
			current, begin = document{line: line + 1}, next
			if rest {
				current.line, begin = line, at+len("---")
			}
		}
		at = next
	}
	current.text = text[begin:]
	out = append(out, current)
	for i := range out {
		if m := helmSource.FindStringSubmatch(out[i].text); m != nil {
			out[i].source = m[1]
		}
	}
	return out
}

// cutMarker reports whether a line is "---", and whether something that is no comment follows on it.
func cutMarker(line string) (marker, rest bool) {
	after, found := strings.CutPrefix(line, "---")
	if !found || after != "" && !strings.ContainsAny(after[:1], " \t\r\n") {
		return false, false
	}
	after = strings.TrimSpace(after)
	return true, after != "" && !strings.HasPrefix(after, "#")
}

// kind is the kind that the document's text names at its top; "" where it names none.
func (d document) kind() string {
	if m := topKind.FindStringSubmatch(d.text); m != nil {
		return m[1]
	}
	return ""
}

// blank reports whether there are only comments.
func (d document) blank() bool {
	for line := range strings.Lines(d.text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") && line != "..." {
			return false
		}
	}
	return true
}
