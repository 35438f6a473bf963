package stamp

import (
	"strconv"
	"strings"

	"tidemark.dev/tidemark/internal/digest"
)

// maxCounter bounds a stamp's counter, so that a text someone else wrote cannot overflow it.
const maxCounter = 999_999

// freshStamp makes the stamp for a digest that is none of the used texts: the digest itself, or the digest with a counter,
// ".2" and on. It consists of characters that may stand in a label, 60 at most.
//
// In mode roll the stamp is a trigger and says nothing of what a pod read, so a text must not come back: pods of the
// revision that had it before may have started under other content, and would be taken for new ones.
func freshStamp(d digest.Digest, used ...string) string {
	counter := 1
	for _, text := range used {
		if base, n := splitStamp(text); base == string(d) {
			counter = max(counter, n+1)
		}
	}
	if counter == 1 {
		return string(d)
	}
	return string(d) + "." + strconv.Itoa(counter)
}

// splitStamp parts a stamp from its counter, which is 1 when it has none. A text that no stamp can be is all base.
func splitStamp(text string) (base string, counter int) {
	// A version may hold a dot too ("v1.5f2a9c01-…"), so the counter is sought behind the hash.
	i := strings.LastIndexByte(text, '.')
	if i < 0 || i < strings.LastIndexByte(text, '-') {
		return text, 1
	}
	n, err := strconv.Atoi(text[i+1:])
	if err != nil || n < 2 || n >= maxCounter {
		return text, 1
	}
	return text[:i], n
}
