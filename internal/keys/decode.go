package keys

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/joho/godotenv"
	"github.com/magiconair/properties"
	"github.com/pelletier/go-toml/v2"
	"gopkg.in/ini.v1"

	"tidemark.dev/tidemark/internal/yamltree"
)

// decode reads the documents of a file, or says why it cannot. The parsers' own messages quote what they choke on, so
// nothing but a number of a line is taken from them.
func decode(format Format, text string) (documents []any, why string) {
	if len(text) > maxFile {
		return nil, fmt.Sprintf("is larger than %d MiB", maxFile>>20)
	}
	if yamltree.Nesting(text, [2]byte{'[', '{'}, [2]byte{']', '}'}) > maxDepth*10 {
		return nil, deep
	}
	if (format == TOML || format == INI) && tooLong(text) {
		return nil, fmt.Sprintf("has more than %d lines, or a line that is too long", maxLines)
	}
	defer func() {
		// A parser's mistake on a hostile file must not end the check of everything else.
		if recover() != nil {
			documents, why = nil, parserFailed
		}
	}()
	documents, err := parsers[format](text)
	if err != nil {
		return nil, describe(format, text, err)
	}
	return documents, ""
}

// Reasons for a file to be opaque.
const (
	deep         = "is nested too deeply"
	parserFailed = "made its parser fail"
)

// maxLines bounds files whose parsers compare each name with each.
const maxLines = 10_000

func tooLong(text string) bool {
	for line := range strings.Lines(text) {
		if strings.Count(line, ".") > maxLines {
			return true
		}
	}
	return strings.Count(text, "\n") > maxLines || strings.Count(text, "=") > 2*maxLines
}

var parsers = map[Format]func(string) ([]any, error){
	YAML: decodeYAML, JSON: decodeJSON, TOML: decodeTOML, Properties: decodeProperties, INI: decodeINI, Dotenv: decodeDotenv,
}

var (
	lineNumber = regexp.MustCompile(`\bline:? (\d+)`)
	templated  = regexp.MustCompile(`\{\{|\{%|<%|\$\{|@[A-Za-z_.]+@`)
)

func describe(format Format, text string, err error) string {
	why := "is not valid " + string(format)
	switch {
	case errors.Is(err, yamltree.ErrAliases):
		return "has aliases that expand beyond all bounds"
	case errors.Is(err, yamltree.ErrDeep):
		return deep
	}
	if m := lineNumber.FindStringSubmatch(err.Error()); m != nil {
		why += " at its line " + m[1]
	}
	if templated.MatchString(text) {
		why += "; it looks like a template"
	}
	return why
}

func decodeYAML(text string) ([]any, error) {
	nodes, err := yamltree.Parse(text)
	if err != nil {
		return nil, err
	}
	var documents []any
	for _, n := range nodes {
		d, err := yamltree.Value(n)
		if err != nil {
			return nil, err
		}
		documents = append(documents, d)
	}
	return documents, nil
}

func decodeJSON(text string) ([]any, error) {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var d any
	if err := decoder.Decode(&d); err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the value")
	}
	return []any{d}, nil
}

func decodeTOML(text string) ([]any, error) {
	var d map[string]any
	if err := toml.Unmarshal([]byte(text), &d); err != nil {
		return nil, err
	}
	return []any{plain(d)}, nil
}

func decodeProperties(text string) ([]any, error) {
	loader := properties.Loader{Encoding: properties.UTF8, DisableExpansion: true}
	p, err := loader.LoadBytes([]byte(text))
	if err != nil {
		return nil, err
	}
	return ofStrings(p.Map()), nil
}

// continued reports whether a line goes on with the value of the one before, as some readers of INI have it: others take it for a name,
// and a name may be shown.
func continued(text string) bool {
	open := false // the line before has a name and no value yet
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		if trimmed == "" || strings.ContainsRune("#;", rune(trimmed[0])) {
			continue
		}
		indented := line[0] == ' ' || line[0] == '\t'
		name, value, assigns := strings.Cut(trimmed, "=")
		if indented && (open || !assigns && trimmed[0] != '[') {
			return true
		}
		open = assigns && name != "" && strings.TrimSpace(value) == ""
	}
	return false
}

func decodeINI(text string) ([]any, error) {
	if continued(text) {
		return nil, errors.New("values of several lines")
	}
	f, err := ini.LoadSources(ini.LoadOptions{AllowBooleanKeys: true, IgnoreInlineComment: true}, []byte(text))
	if err != nil {
		return nil, err
	}
	d := map[string]any{}
	for _, s := range f.Sections() {
		keys := map[string]any{}
		for _, k := range s.Keys() {
			keys[k.Name()] = k.Value()
		}
		if s.Name() != ini.DefaultSection {
			d[s.Name()] = keys
			continue
		}
		for k, v := range keys {
			d[k] = v
		}
	}
	return []any{d}, nil
}

// dollar stands for a dollar sign while dotenv is read. It is no character of any text.
const dollar = "\ufdd0"

// decodeDotenv leaves variables in values as they stand. The library puts in what they hold, and a value that names another one twice
// doubles with each line.
func decodeDotenv(text string) ([]any, error) {
	if strings.Contains(text, dollar) {
		return nil, errors.New("a character of no text")
	}
	m, err := godotenv.Unmarshal(strings.ReplaceAll(text, "$", dollar))
	if err != nil {
		return nil, err
	}
	for name, value := range m {
		m[name] = strings.ReplaceAll(value, dollar, "$")
	}
	return ofStrings(m), nil
}

func ofStrings(m map[string]string) []any {
	d := make(map[string]any, len(m))
	for k, v := range m {
		d[k] = v
	}
	return []any{d}
}

// plain gives a value of TOML as JSON has it: whole numbers as json.Number, times as text.
func plain(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			v[k] = plain(e)
		}
		return v
	case []any:
		for i, e := range v {
			v[i] = plain(e)
		}
		return v
	case bool, string:
		return v
	case int64, float64:
		return json.Number(fmt.Sprint(v))
	}
	return fmt.Sprint(v)
}
