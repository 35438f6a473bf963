package cluster

import (
	"fmt"
	"strings"

	v1 "tidemark.dev/tidemark/api/v1"
)

// maxOwner is how long an owner's name may be: it is a label of metrics.
const maxOwner = 63

// OwnerOf reads who owns a workload from the first of the given annotations, or labels, that says so; "" when none does. An error
// names the annotation, which then does not count.
func OwnerOf(sources ...map[string]string) (string, error) {
	for _, source := range sources {
		owner := strings.TrimSpace(source[v1.AnnotationOwner])
		switch {
		case owner == "":
		case len(owner) > maxOwner:
			return "", fmt.Errorf("%s: %q is longer than %d bytes and is disregarded; write a team's short name", v1.AnnotationOwner, owner[:20]+"…", maxOwner)
		default:
			return owner, nil
		}
	}
	return "", nil
}
