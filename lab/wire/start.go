package wire

import (
	"strings"
	"time"
)

// Kind says which part of its pod a container plays.
type Kind string

// The kinds of a container.
const (
	Init      Kind = "init"      // runs to completion before the regular containers start
	Sidecar   Kind = "sidecar"   // an init container with restartPolicy Always
	Regular   Kind = "regular"   // listed in spec.containers
	Ephemeral Kind = "ephemeral" // added to a running pod
)

// Start is one start of one container: what the process was given, as it read it itself.
type Start struct {
	// Seq orders all starts of one lab, from 1 without a gap.
	Seq uint64 `json:"seq"`

	Namespace string `json:"namespace"`
	Pod       string `json:"pod"`
	PodUID    string `json:"podUID"`
	PodIP     string `json:"podIP,omitempty"`
	Node      string `json:"node"`

	Container   string   `json:"container"`
	ContainerID string   `json:"containerID"`
	Kind        Kind     `json:"kind"`
	Attempt     uint32   `json:"attempt"` // the restart count: 0 is the first start
	Image       string   `json:"image"`
	Command     []string `json:"command,omitempty"`
	Args        []string `json:"args,omitempty"`

	// Created is when the runtime was handed the environment. The kubelet read it just before.
	Created time.Time `json:"created"`
	// Started is what the pod's status reports (there cut to a second). The process reads its files right after.
	Started time.Time `json:"started"`
	// Read is when the process had read its files.
	Read time.Time `json:"read"`
	// Finished is zero while the process runs.
	Finished time.Time `json:"finished,omitzero"`
	// ExitCode is nil while the process runs.
	ExitCode *int32 `json:"exitCode,omitempty"`
	// Message is the termination message.
	Message string `json:"message,omitempty"`

	// Environment holds every variable. Values are bytes, because a value need not be valid text.
	Environment map[string][]byte `json:"environment"`
	// Files holds, by path in the container, every file that came from a ConfigMap, Secret, projected or
	// subPath mount, as the process read it at this start. The service-account token's mount is left out.
	Files map[string][]byte `json:"files"`
}

// Env returns the value of an environment variable, or "" when the process was not given it.
func (s Start) Env(key string) string { return string(s.Environment[key]) }

// File returns the content of the file at path as the process read it at this start, or "" when it was not there.
func (s Start) File(path string) string { return string(s.Files[path]) }

// Running reports whether the process had not ended when the record was read.
func (s Start) Running() bool { return s.ExitCode == nil }

// Container is a running container beside what its mounted files hold now.
type Container struct {
	Start
	// FilesNow holds the same files as Start.Files, read when the request was answered.
	FilesNow map[string][]byte `json:"filesNow"`
}

// FileNow returns the present content of the file at path, or "" when it is not there.
func (c Container) FileNow(path string) string { return string(c.FilesNow[path]) }

// Selector picks containers. An empty field matches everything.
type Selector struct {
	Namespace string `json:"namespace,omitempty"`
	PodPrefix string `json:"podPrefix,omitempty"` // beginning of the pod's name
	Container string `json:"container,omitempty"`
	Node      string `json:"node,omitempty"`
}

// Subject names the container that a Selector is asked about.
type Subject struct{ Namespace, Pod, Container, Node string }

// Matches reports whether the selector picks the subject.
func (s Selector) Matches(of Subject) bool {
	return (s.Namespace == "" || s.Namespace == of.Namespace) &&
		strings.HasPrefix(of.Pod, s.PodPrefix) &&
		(s.Container == "" || s.Container == of.Container) &&
		(s.Node == "" || s.Node == of.Node)
}

// Filter picks starts from the record.
type Filter struct {
	Selector
	// Since leaves out starts up to and with this sequence number.
	Since uint64 `json:"since,omitempty"`
}

// Subject returns what a Selector compares.
func (s Start) Subject() Subject {
	return Subject{Namespace: s.Namespace, Pod: s.Pod, Container: s.Container, Node: s.Node}
}
