// Package credential recognises values that must not be shown.
package credential

import (
	"math"
	"regexp"
	"strings"
	"unicode"
)

var (
	// words finds, in the name of a key or setting, words of what is kept secret.
	words = regexp.MustCompile(`(?i)(passw(or)?d|passphrase|\bpwd\b|secret|token|credential|api[-_. ]?key|private[-_. ]?key|` +
		`access[-_. ]?key|encryption[-_. ]?key|signing[-_. ]?key|auth[-_. ]?key|\bdsn\b|connection[-_. ]?string|bearer|cookie|\bsalt\b)`)
	// shapes finds values that are secret whatever their name: keys and certificates in PEM, URLs with a password,
	// signed tokens, well-known prefixes of API keys.
	shapes = regexp.MustCompile(`-----BEGIN |://[^/\s:@]*:[^/\s@]+@|\beyJ[A-Za-z0-9_-]{8,}|\bA[KS]IA[A-Z0-9]{12,}|` +
		`\bgh[pousr]_[A-Za-z0-9]{16,}|\bxox[abprs]-|\bsk[-_](live|test|[A-Za-z0-9]{16,})|\bglpat-|(?i:\b(basic|bearer)\s+[A-Za-z0-9+/=._-]{8,})`)
	// word is a stretch of characters as random keys have them.
	word = regexp.MustCompile(`[A-Za-z0-9+/_=-]{20,}`)
)

// Like reports whether a value may be a credential, by its name (a key, a setting; "" for none) or by itself. In doubt it says
// yes: it is for withholding, and [Certain] is for accusing.
func Like(name, value string) bool {
	return Named(name) || Named(value) || Shaped(value)
}

// Shaped reports whether a text looks like a credential by itself, whatever it is called.
func Shaped(value string) bool {
	if shapes.MatchString(value) {
		return true
	}
	for _, w := range word.FindAllString(value, -1) {
		if random(w) {
			return true
		}
	}
	return false
}

// Named reports whether a name, or any text, has a word of what is kept secret.
func Named(name string) bool { return words.MatchString(split(name)) }

// split separates the words of camelCase and snake_case, so that they have boundaries.
func split(name string) string {
	var b strings.Builder
	var before rune
	for _, r := range name {
		switch {
		case r == '_':
			r = ' '
		case unicode.IsUpper(r) && unicode.IsLower(before):
			b.WriteRune(' ')
		}
		b.WriteRune(r)
		before = r
	}
	return b.String()
}

// random reports whether a word is as mixed as a random key: long hexadecimal, or of high entropy with digits and letters.
func random(w string) bool {
	digits, letters, hex := 0, 0, true
	for _, r := range w {
		switch {
		case unicode.IsDigit(r):
			digits++
		case unicode.IsLetter(r):
			letters++
			hex = hex && strings.ContainsRune("abcdefABCDEF", r)
		default:
			hex = hex && r == '-'
		}
	}
	if hex && len(w) >= 32 {
		return true
	}
	return digits > 1 && letters > 1 && entropy(w) > 3.6
}

// entropy is the Shannon entropy of a word, in bits a character.
func entropy(w string) float64 {
	counts := map[rune]float64{}
	for _, r := range w {
		counts[r]++
	}
	var sum float64
	for _, n := range counts {
		p := n / float64(len(w))
		sum -= p * math.Log2(p)
	}
	return sum
}
