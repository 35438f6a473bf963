package revision

import (
	"slices"
	"strings"
)

// maxSeen bounds how many revisions are noted on a workload.
const maxSeen = 32

// Seen reads what the annotation [v1.AnnotationSeenAvailable] says on a workload and on each of its revisions: the hashes
// of the revisions of which a pod was seen to be available.
//
// The sum of all counts, because each place forgets another part. A rollback of a Deployment by kubectl puts the
// annotations of the old ReplicaSet on the Deployment; but the controllers of Deployments and Rollouts copy the workload's
// annotations onto the ReplicaSet of its present template as long as it is that, so a revision that was seen carries its
// own hash. The controllers of StatefulSets and DaemonSets copy them onto a ControllerRevision once, when it is made, and
// no rollback touches those of the workload.
func Seen(values ...string) map[string]bool {
	out := map[string]bool{}
	for _, value := range values {
		for hash := range strings.SplitSeq(value, ",") {
			if hash != "" {
				out[hash] = true
			}
		}
	}
	return out
}

// Note adds revisions of which a pod is available to the value of the annotation on the workload, the latest last and the
// oldest dropped where there would be too many. It reports whether there is anything to write.
func Note(value string, hashes ...string) (string, bool) {
	var noted []string
	if value != "" {
		noted = strings.Split(value, ",")
	}
	before := len(noted)
	for _, hash := range hashes {
		if hash != "" && !slices.Contains(noted, hash) {
			noted = append(noted, hash)
		}
	}
	if len(noted) == before {
		return value, false
	}
	return strings.Join(noted[max(0, len(noted)-maxSeen):], ","), true
}
