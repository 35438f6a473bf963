package keys

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// Format is how the value of a key is written.
type Format string

// The formats that are understood. Text has no settings.
const (
	Text       Format = "text"
	YAML       Format = "YAML"
	JSON       Format = "JSON"
	TOML       Format = "TOML"
	Properties Format = "Java properties"
	INI        Format = "INI"
	Dotenv     Format = "dotenv"
)

// Bounds of a file. A config object holds 1 MiB at most.
const (
	maxFile     = 2 << 20 // bytes
	maxDepth    = 100
	maxSettings = 50_000
	maxNames    = 16 << 20 // bytes of all names of settings
)

// File is the value of a key.
type File struct {
	Format Format
	// Opaque says why a file is not looked into, in words that follow "because it"; "" when it is, or when it is none.
	Opaque string
	// Documents are the contents as JSON has them (maps by string, lists, strings, numbers, booleans, nil): several where
	// the file is a YAML stream, none where the value is text or opaque.
	Documents []any

	settings Settings
}

// Parse reads the value of a key. Its format is that of the key's name (app.yaml, log4j.properties, .env), or told by the
// value where the name has no extension or says no more than that it is configuration: a JSON object, or YAML of several lines that is a map.
func Parse(key, value string) File {
	format, named := byName(key)
	if !named {
		return guess(key, value)
	}
	if strings.TrimSpace(value) == "" {
		return File{Format: Text}
	}
	f := File{Format: format}
	f.read(key, value)
	return f
}

// byName tells the format of a file by its name.
func byName(name string) (Format, bool) {
	name = strings.ToLower(name)
	switch path.Ext(name) {
	case ".yaml", ".yml":
		return YAML, true
	case ".json":
		return JSON, true
	case ".toml":
		return TOML, true
	case ".properties":
		return Properties, true
	case ".ini":
		return INI, true
	case ".env":
		return Dotenv, true
	}
	return Text, false
}

// guess tells the format of a value by itself. What it cannot tell is text, which is no loss to speak of: run.sh and nginx.conf
// are other languages, whatever some of their lines look like. A template may become settings, though.
func guess(key, value string) File {
	f := File{Format: sniff(path.Ext(key), strings.TrimSpace(value))}
	if f.Format != Text {
		f.read(key, value)
	}
	for _, d := range f.Documents {
		if _, isMap := d.(map[string]any); !isMap {
			return File{Format: Text}
		}
	}
	if f.Format != Text && f.Opaque == "" {
		return f
	}
	f = File{Format: Text}
	if slices.Contains(configExtensions, path.Ext(key)) && strings.Contains(strings.TrimSpace(value), "\n") && strings.Contains(value, "{{") {
		f.Opaque = "looks like a template"
	}
	return f
}

// configExtensions are those of keys that may hold settings in any format, or templates of them.
var configExtensions = []string{"", ".conf", ".cfg", ".cnf", ".config", ".tmpl", ".tpl", ".gotmpl"}

var (
	assignment = regexp.MustCompile(`^[\w.-]+\s*=`)
	section    = regexp.MustCompile(`^\[[\w. :-]+\]$`)
)

// sniff tells which format a value may have.
func sniff(extension, value string) Format {
	lines := strings.Contains(value, "\n")
	switch extension {
	case "":
		switch {
		case strings.HasPrefix(value, "{") && strings.HasSuffix(value, "}"):
			return JSON
		case lines && strings.Contains(value, ": "):
			return YAML
		case !lines:
			return Text
		}
	case ".conf", ".cfg", ".cnf", ".config":
	default:
		return Text
	}
	return assignments(value)
}

// assignments tells whether every line of a value is "name = value", perhaps in sections.
func assignments(value string) Format {
	format := Text
	for line := range strings.Lines(value) {
		line = strings.TrimSpace(line)
		switch {
		case line == "", strings.HasPrefix(line, "#"), strings.HasPrefix(line, ";"):
		case section.MatchString(line):
			format = INI
		case !assignment.MatchString(line):
			return Text
		case format == Text:
			format = Properties
		}
	}
	return format
}

// read fills the file of a key in from its text, or says why it is opaque.
func (f *File) read(key, text string) {
	documents, why := decode(f.Format, text)
	if why == "" {
		f.settings, why = flatten(key, documents)
	}
	if why != "" {
		f.Opaque = why
		return
	}
	f.Documents = documents
}
