package cli

import (
	"strings"
	"unicode"

	"tidemark.dev/tidemark/internal/credential"
)

// Notes of values that are not shown, or hold nothing.
const (
	noteLooksLikeCredential = "value not shown: it looks like a credential"
	noteEmpty               = "the value is empty"
)

// maxValue bounds how much of a value is shown.
const maxValue = 80

// presentable is the value of a ConfigMap's key as it may be shown, or why it is not. What looks like a credential never
// is, whatever holds it: in doubt a value is withheld.
func presentable(key, value string) (text, note string) {
	switch {
	case credential.Like(key, value):
		return "", noteLooksLikeCredential
	case strings.ContainsFunc(value, func(r rune) bool { return !unicode.IsPrint(r) && !unicode.IsSpace(r) }):
		return "", "value not shown: it is not text"
	}
	if line, _, more := strings.Cut(strings.TrimRight(value, "\r\n"), "\n"); more {
		return short(strings.TrimSpace(line), maxValue), "first line only"
	}
	text = short(strings.TrimSpace(value), maxValue)
	if text == "" {
		return "", noteEmpty
	}
	return text, ""
}
