package revision

import (
	"strconv"
	"strings"
)

// Numbering names the annotations in which a controller notes the numbers of its revisions on their ReplicaSets.
type Numbering struct {
	number, former string
}

// The controllers that number ReplicaSets.
var (
	OfDeployment = Numbering{"deployment.kubernetes.io/revision", "deployment.kubernetes.io/revision-history"}
	OfRollout    = Numbering{"rollout.argoproj.io/revision", "rollout.argoproj.io/revision-history"}
)

// Number reads a revision's number; 0 until its controller has numbered it.
func (n Numbering) Number(annotations map[string]string) int64 {
	number, _ := strconv.ParseInt(annotations[n.number], 10, 64)
	return number
}

// Renumbered reports whether a revision had another number before.
func (n Numbering) Renumbered(annotations map[string]string) bool { return annotations[n.former] != "" }

// Former reads the numbers that a revision had before.
func (n Numbering) Former(annotations map[string]string) []int64 {
	var out []int64
	for text := range strings.SplitSeq(annotations[n.former], ",") {
		if number, err := strconv.ParseInt(text, 10, 64); err == nil {
			out = append(out, number)
		}
	}
	return out
}
