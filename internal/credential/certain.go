package credential

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// certain lists values that can hardly be anything else, each with what it is.
var certain = []struct {
	what string
	// marks of which a value has one, so that few values are matched.
	marks []string
	shape *regexp.Regexp
}{
	{"a private key", []string{"PRIVATE KEY"}, regexp.MustCompile(`-----BEGIN ([A-Z0-9]+ )*PRIVATE KEY-----`)},
	{"a URL with a password", []string{"://"}, regexp.MustCompile(`://[^/\s:@${}<]*:[^/\s@${}<*]+@`)},
	{"a signed token", []string{"eyJ"}, regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}`)},
	{"an access key of a cloud", []string{"AKIA", "ASIA"}, regexp.MustCompile(`\bA[KS]IA[A-Z0-9]{16}\b`)},
	{"a token of a code host", []string{"gh", "glpat-"}, regexp.MustCompile(`\bgh[pousr]_[A-Za-z0-9]{20,}|\bglpat-[A-Za-z0-9_-]{16,}`)},
	{"a token of a chat service", []string{"xox"}, regexp.MustCompile(`\bxox[abprs]-[A-Za-z0-9-]{10,}`)},
	{"a key of an API", []string{"sk-", "sk_"}, regexp.MustCompile(`\bsk[-_](live|test)[-_][A-Za-z0-9]{16,}`)},
}

var (
	// placeholder matches a value that stands for one that is put in later, or that names where it is.
	placeholder = regexp.MustCompile(`^[\s"']*([$<{%]|\(\(|/|\.{1,2}/|file:|vault:|env:|ref\+|https?://)|^\*+$|[\s{}]|\.(pem|key|crt|txt|ya?ml|json)$`)
	// described matches values that say which, not what.
	described = regexp.MustCompile(`(?i)^(true|false|yes|no|on|off|none|null|nil|disabled|enabled|required|optional|prompt|default|auto|access|refresh|bearer|basic|jwt|opaque|redacted|changeme|x+)$`)
)

// Certain says what kind of credential a value surely is, in words such as "a private key"; "" for none. The name is that of
// the setting. It leaves out placeholders, paths, and settings about credentials such as a token's lifetime.
func Certain(name, value string) string {
	for _, c := range certain {
		if slices.ContainsFunc(c.marks, func(mark string) bool { return strings.Contains(value, mark) }) && c.shape.MatchString(value) {
			return c.what
		}
	}
	if isSecretName(name) && isSecretText(strings.TrimSpace(value)) {
		return "by its name a credential"
	}
	return ""
}

// secretNames end a name whose value is the secret itself, not something about it: one word, or two.
var secretNames = []string{
	"password", "passwd", "passphrase", "pwd", "secret", "token",
	"apikey", "secretkey", "privatekey", "accesskey", "encryptionkey", "signingkey", "authkey",
}

// elsewhere are words before "secret" or "token" that make of it the name of a Secret, or a word of a protocol or of a language model.
var elsewhere = map[string][]string{
	"secret": {"existing", "pull", "tls", "ca", "cert", "certificate"},
	"token":  {"header", "eos", "bos", "pad", "unk", "sep", "cls", "mask", "stop", "page"},
}

// isSecretName reports whether the value of that name is a secret.
func isSecretName(name string) bool {
	words := strings.FieldsFunc(strings.ToLower(split(name)), func(r rune) bool { return strings.ContainsRune(" .-", r) })
	n := len(words)
	if n > 1 && slices.Contains(elsewhere[words[n-1]], words[n-2]) {
		return false
	}
	return n > 0 && slices.Contains(secretNames, words[n-1]) || n > 1 && slices.Contains(secretNames, words[n-2]+words[n-1])
}

// isSecretText reports whether a value that has a credential's name can be the credential.
func isSecretText(value string) bool {
	if len(value) < 4 || placeholder.MatchString(value) || described.MatchString(value) {
		return false
	}
	if _, err := strconv.ParseFloat(value, 64); err == nil && len(value) < 6 {
		return false
	}
	_, err := time.ParseDuration(value)
	return err != nil
}
