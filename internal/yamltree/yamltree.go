// Package yamltree reads YAML into values as JSON has them, within bounds that hostile documents cannot leave.
package yamltree

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// Bounds of one document.
const (
	// MaxDepth is how deep maps and lists may nest, aliases followed.
	MaxDepth = 200
	// maxExpanded is how many nodes aliases may add.
	maxExpanded = 200_000
)

// Errors of documents that leave the bounds, or are none.
var (
	ErrDeep      = fmt.Errorf("nested deeper than %d levels", MaxDepth)
	ErrSyntax    = errors.New("not valid YAML")
	ErrNoText    = errors.New("not valid YAML: it is no UTF-8, or has control characters")
	ErrAliases   = errors.New("aliases expand beyond all bounds")
	errDuplicate = errors.New("a key is there twice")
	errKey       = errors.New("a key is no scalar")
	errMerge     = errors.New("only maps can be merged")
)

// Error is an error at a line of the text, counted from 1.
type Error struct {
	Line int
	Err  error
}

// Error gives the line with what is wrong there, without anything of the text.
func (e *Error) Error() string {
	if e.Line == 0 {
		return e.Err.Error()
	}
	return fmt.Sprintf("line %d: %v", e.Line, e.Err)
}

// Unwrap gives what is wrong.
func (e *Error) Unwrap() error { return e.Err }

// Parse reads all documents of a stream as nodes.
func Parse(text string) ([]*yaml.Node, error) {
	decoder := yaml.NewDecoder(strings.NewReader(text))
	var documents []*yaml.Node
	for {
		n := &yaml.Node{}
		err := decoder.Decode(n)
		if errors.Is(err, io.EOF) {
			return documents, nil
		}
		if err != nil {
			return nil, syntax(err, text)
		}
		documents = append(documents, n)
	}
}

var atLine = regexp.MustCompile(`\bline (\d+)`)

// syntax keeps of the parser's error the line; the rest may quote the text. What the parser has no line for, it does not take for text.
func syntax(err error, text string) error {
	e := &Error{Err: ErrSyntax}
	if strings.Contains(err.Error(), "exceeded max depth") {
		e.Err = ErrDeep
	}
	if m := atLine.FindStringSubmatch(err.Error()); m != nil {
		e.Line, _ = strconv.Atoi(m[1])
	} else if i := strings.IndexFunc(text, isNoText); i >= 0 {
		return &Error{Err: ErrNoText, Line: 1 + strings.Count(text[:i], "\n")}
	}
	return e
}

// isNoText reports whether YAML has no such character; what is no UTF-8 comes as [utf8.RuneError].
func isNoText(r rune) bool {
	return r == utf8.RuneError || unicode.IsControl(r) && !strings.ContainsRune("\t\n\r\u0085", r)
}

// Value gives a node as JSON has it: map[string]any, []any, string, json.Number, bool or nil. Aliases and merges are followed.
//
// The library's own decoder is not used because it compares each key of a map with each.
func Value(n *yaml.Node) (any, error) {
	r := reader{}
	return r.value(n, 0)
}

// ManifestValue is Value as the readers of Kubernetes' tools take a manifest (sigs.k8s.io/yaml): a plain yes or on is a boolean, as in YAML
// 1.1, and of a key that is there twice the last counts, whose line repeated is told.
func ManifestValue(n *yaml.Node, repeated func(line int)) (any, error) {
	r := reader{repeated: repeated}
	return r.value(n, 0)
}

type reader struct {
	// repeated is told the line of a key that is there twice, and makes booleans of YAML 1.1 what they are; nil where a key that is there
	// twice is an error, and there are none but true and false.
	repeated func(line int)
	// expanding counts the aliases that are being followed, expanded the nodes that were reached through one.
	expanding, expanded int
}

func (r *reader) value(n *yaml.Node, depth int) (any, error) {
	if depth > MaxDepth {
		return nil, &Error{n.Line, ErrDeep}
	}
	if r.expanding > 0 {
		if r.expanded++; r.expanded > maxExpanded {
			return nil, &Error{n.Line, ErrAliases}
		}
	}
	switch n.Kind {
	case yaml.DocumentNode:
		return r.value(n.Content[0], depth)
	case yaml.AliasNode:
		r.expanding++
		defer func() { r.expanding-- }()
		return r.value(n.Alias, depth+1)
	case yaml.SequenceNode:
		return r.list(n, depth)
	case yaml.MappingNode:
		return r.object(n, depth)
	case yaml.ScalarNode:
		return r.scalar(n), nil
	}
	return nil, nil // an empty document
}

func (r *reader) list(n *yaml.Node, depth int) (any, error) {
	list := make([]any, 0, len(n.Content))
	for _, e := range n.Content {
		v, err := r.value(e, depth+1)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

func (r *reader) object(n *yaml.Node, depth int) (any, error) {
	m := make(map[string]any, len(n.Content)/2)
	var merged []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := Resolve(n.Content[i]), n.Content[i+1]
		if k.ShortTag() == "!!merge" {
			merged = append(merged, v)
			continue
		}
		if k.Kind != yaml.ScalarNode {
			return nil, &Error{n.Content[i].Line, errKey}
		}
		if _, twice := m[k.Value]; twice && r.repeated == nil {
			return nil, &Error{k.Line, errDuplicate}
		} else if twice {
			r.repeated(k.Line)
		}
		value, err := r.value(v, depth+1)
		if err != nil {
			return nil, err
		}
		m[k.Value] = value
	}
	for _, v := range merged {
		if err := r.merge(m, v, depth+1); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// merge adds to a map what it does not have, from another one or from a list of them, the first of which wins.
func (r *reader) merge(into map[string]any, n *yaml.Node, depth int) error {
	value, err := r.value(n, depth)
	if err != nil {
		return err
	}
	maps, isList := value.([]any)
	if !isList {
		maps = []any{value}
	}
	for _, m := range maps {
		from, isMap := m.(map[string]any)
		if !isMap {
			return &Error{n.Line, errMerge}
		}
		for k, v := range from {
			if _, has := into[k]; !has {
				into[k] = v
			}
		}
	}
	return nil
}

func (r *reader) scalar(n *yaml.Node) any {
	if r.repeated != nil && n.Style == 0 && n.ShortTag() == "!!str" {
		switch n.Value {
		case "y", "Y", "yes", "Yes", "YES", "on", "On", "ON":
			return true
		case "n", "N", "no", "No", "NO", "off", "Off", "OFF":
			return false
		}
	}
	return Scalar(n)
}

// Resolve follows an alias; a node that is none it returns.
func Resolve(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// Scalar gives the value of a scalar node.
func Scalar(n *yaml.Node) any {
	switch n.ShortTag() {
	case "!!null":
		return nil
	case "!!bool":
		return strings.EqualFold(n.Value, "true")
	case "!!int", "!!float":
		if json.Valid([]byte(n.Value)) {
			return json.Number(n.Value)
		}
		return number(n)
	}
	return n.Value
}

// number gives a number that JSON writes otherwise, such as 0x10 or 1_000. What JSON has no number for, such as .inf, is text.
func number(n *yaml.Node) any {
	var i int64
	if n.Decode(&i) == nil {
		return json.Number(strconv.FormatInt(i, 10))
	}
	var f float64
	if n.Decode(&f) == nil && !math.IsNaN(f) && !math.IsInf(f, 0) {
		return json.Number(strconv.FormatFloat(f, 'g', -1, 64))
	}
	return n.Value
}
