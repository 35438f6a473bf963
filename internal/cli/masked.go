package cli

import (
	"regexp"
	"strings"
	"unicode"

	"tidemark.dev/tidemark/internal/credential"
)

// Notes of values that are not shown.
const (
	noteCredential = "not shown: it looks like a credential"
	noteNotText    = "not shown: it is not text"
	noteLines      = "lines that look like a credential are not shown"
	// maskedLine stands for a line that is not shown.
	maskedLine = "<not shown: it looks like a credential>"
)

// maskedValue is the value of a ConfigMap's key as a comparison may show it, or why it shows nothing of it.
//
// A value of one line that looks like a credential is withheld. In one of many lines, such as a configuration file, a line is
// masked that names a credential and gives its value, all on that line. Whatever else looks like one withholds the whole
// value, for nobody can tell then on which lines it is.
func maskedValue(key, value string) (text, note string) {
	lines := strings.Split(value, "\n")
	switch {
	case strings.ContainsFunc(value, func(r rune) bool { return !unicode.IsPrint(r) && !unicode.IsSpace(r) }):
		return "", noteNotText
	case !credential.Like(key, value):
		return value, ""
	case credential.Like(key, "") || !strings.Contains(strings.TrimRight(value, "\r\n"), "\n"):
		return "", noteCredential
	}
	for i, l := range lines {
		next := ""
		if i+1 < len(lines) {
			next = lines[i+1]
		}
		if credential.Like("", l) && !selfContained(l, next) {
			return "", noteCredential
		}
	}
	for i := range lines {
		lines[i] = maskLine(lines[i])
	}
	return strings.Join(lines, "\n"), noteLines
}

// maskLine is a line of a value as it may be shown.
func maskLine(line string) string {
	if credential.Like("", line) {
		return maskedLine
	}
	return line
}

var (
	// setting matches a line that gives a setting its value: the name, then the value.
	setting = regexp.MustCompile(`^[\s-]*["']?([\w./ -]+?)["']?\s*[:=]\s*(\S.*)$`)
	// opener matches a value that only begins on its line.
	opener = regexp.MustCompile(`[\[{(|>\\]\s*[-+]?$`)
)

// selfContained reports whether all of a credential that a line has is on that line, and none on the next. A name of a
// credential as the value of another setting ("name: PASSWORD") announces one below.
func selfContained(line, next string) bool {
	m := setting.FindStringSubmatch(strings.TrimRight(line, "\r,"))
	if len(m) < 3 || opener.MatchString(m[2]) || strings.Contains(line, "-----BEGIN ") || indent(next) > indent(line) {
		return false
	}
	return credential.Named(m[1]) || !credential.Named(line)
}

func indent(line string) int { return len(line) - len(strings.TrimLeft(line, " \t")) }
