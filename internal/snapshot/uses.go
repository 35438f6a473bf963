package snapshot

import (
	"cmp"

	"tidemark.dev/tidemark/internal/workload"
)

// Role says in which way something uses a config object, nearest first.
type Role int

// The roles of users.
const (
	// ByTemplate is a workload's own template: its next pod reads the object.
	ByTemplate Role = iota
	// ByPod is a pod, running or not.
	ByPod
	// ByRevision is an older template that is retained, so that a rollback may go back to it.
	ByRevision
	// ByJob is a Job, which may still start a pod.
	ByJob
	// ByOther is anything else that names it.
	ByOther
)

// User is something that uses a config object, by its pins or by name.
type User struct {
	Role Role
	// Name is "deployment/web".
	Name string
}

// String says it for people: "pod/web-1".
func (u User) String() string {
	switch u.Role {
	case ByTemplate:
		return "the template of " + u.Name
	case ByRevision:
		return u.Name + ", to which a rollback may go back"
	case ByPod, ByJob, ByOther:
	}
	return u.Name
}

// compare puts the nearest use first.
func (u User) compare(v User) int {
	return cmp.Or(cmp.Compare(u.Role, v.Role), cmp.Compare(u.Name, v.Name))
}

// Uses tell for each config object that is used one of its users: the nearest, in whatever order they were found.
type Uses map[workload.Object]User

// Add notes a use.
func (u Uses) Add(o workload.Object, by User) {
	if known, ok := u[o]; !ok || by.compare(known) < 0 {
		u[o] = by
	}
}
