package snapshot

import (
	"crypto/sha256"
	"encoding/base32"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"tidemark.dev/tidemark/internal/digest"
	"tidemark.dev/tidemark/internal/workload"
)

// suffixLength is the number of characters of the digest in a name: 50 bits.
const suffixLength = 10

var lowerBase32 = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// Name is the name of the snapshot of an object whose whole content has the digest: "NAME-SUFFIX", at most 253 characters,
// for which a long name is cut. Another attempt, from 0 on, gives another name for the same content, for when something
// else has the first one.
func Name(o workload.Object, whole digest.Digest, attempt int) string {
	// The digest is hashed again so that a name shows nothing that a digest of the same content elsewhere could be compared with.
	sum := sha256.Sum256([]byte("tidemark.dev/snapshot\x00" + string(whole) + "\x00" + strconv.Itoa(attempt)))
	suffix := lowerBase32.EncodeToString(sum[:])[:suffixLength]
	name := o.Name[:min(len(o.Name), validation.DNS1123SubdomainMaxLength-suffixLength-1)]
	return strings.TrimRight(name, "-.") + "-" + suffix
}
