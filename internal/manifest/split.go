package manifest

import (
	"encoding/json"
	"errors"
	"io"
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
	topKind = regexp.MustCompile(`^kind:[ \t]*["']?(\w+)["']?[ \t]*(?:#.*)?\r?\n?$`)
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
	out = values(append(out, current))
	for i := range out {
		out[i].source = helmSource(out[i].text)
	}
	return out
}

// helmSource is the file that helm's comment names, which stands before the object; "" where there is none.
func helmSource(text string) string {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		source, found := strings.CutPrefix(line, "# Source: ")
		switch {
		case found && !strings.ContainsAny(source, " \t"):
			return source
		case line != "" && !strings.HasPrefix(line, "#"):
			return ""
		}
	}
	return ""
}

// values cuts documents of several JSON values, one after the other, which YAML knows nothing of.
func values(documents []document) []document {
	var out []document
	for _, d := range documents {
		if parts := d.values(); len(parts) > 1 {
			out = append(out, parts...)
		} else {
			out = append(out, d)
		}
	}
	return out
}

// values are the JSON values of a document; none where it is not of JSON throughout.
func (d document) values() []document {
	if !strings.HasPrefix(strings.TrimSpace(d.text), "{") {
		return nil
	}
	decoder := json.NewDecoder(strings.NewReader(d.text))
	var out []document
	begin, line := 0, d.line
	for {
		var value json.RawMessage
		err := decoder.Decode(&value)
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil || value[0] != '{' {
			return nil
		}
		end := int(decoder.InputOffset())
		text := d.text[begin:end]
		object := strings.IndexByte(text, '{')
		line += strings.Count(text[:object], "\n")
		out = append(out, document{text: text[object:], line: line})
		line += strings.Count(text[object:], "\n")
		begin = end
	}
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
	for line := range strings.Lines(d.text) {
		if !strings.HasPrefix(line, "kind:") {
			continue
		}
		if m := topKind.FindStringSubmatch(line); m != nil {
			return m[1]
		}
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
