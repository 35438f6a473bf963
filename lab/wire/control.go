package wire

import "time"

// Paths of the control API, served as HTTP over a unix socket. Every answer that is not 200 carries an Error.
const (
	PathStatus     = "/v1/status"     // GET: Status
	PathStop       = "/v1/stop"       // POST: the lab ends
	PathStarts     = "/v1/starts"     // POST Filter: []Start
	PathContainers = "/v1/containers" // POST Selector: []Container, running ones only
	PathExit       = "/v1/exit"       // POST Exit: Exited
	PathPartition  = "/v1/partition"  // POST Partition
	PathDelays     = "/v1/delays"     // GET: []Delay; POST Delay; DELETE: all delays end
	PathRequests   = "/v1/requests"   // GET: []Request; DELETE: counts begin anew
	PathAddress    = "/v1/address"    // POST Address: Socket
)

// Status is what a lab that is ready says of itself, once as the one line on its standard output.
type Status struct {
	PID        int      `json:"pid"`
	Server     string   `json:"server"`     // URL of the API server
	Kubeconfig string   `json:"kubeconfig"` // file with the rights of system:masters
	Control    string   `json:"control"`    // unix socket of the control API
	Directory  string   `json:"directory"`  // removed when the lab ends
	Log        string   `json:"log"`        // file with the log of every component
	Nodes      []string `json:"nodes"`
}

// Exit makes running containers end with a code, as if their program had ended by itself.
type Exit struct {
	Selector
	Code int32 `json:"code"`
}

// Exited says how many containers an Exit ended.
type Exited struct {
	Count int `json:"count"`
}

// Partition cuts a node's kubelet off the API server, or reconnects it.
type Partition struct {
	Node string `json:"node"`
	Cut  bool   `json:"cut"`
}

// Stage is a point in a container's start at which a Delay holds it.
type Stage string

// The stages, in the order a start passes them.
const (
	// BeforeEnvironment holds the image pull: the kubelet has not read the environment yet. A pull is not told
	// its container, so a Delay of this stage cannot select one: it holds each container of the pod in turn.
	BeforeEnvironment Stage = "before-environment"
	// BeforeStart holds the start of a created container: the environment is read, the files are not.
	BeforeStart Stage = "before-start"
)

// Delay holds the starts that its selector picks, each for the duration or until all delays are ended.
type Delay struct {
	Selector
	Stage    Stage         `json:"stage"`
	Duration time.Duration `json:"duration"`
}

// Request counts what one client did to the API in one way.
type Request struct {
	UserAgent   string `json:"userAgent"`
	User        string `json:"user"`
	Verb        string `json:"verb"` // of the API: get, list, watch, create, update, patch, delete, deletecollection
	Group       string `json:"group,omitempty"`
	Resource    string `json:"resource,omitempty"`
	Subresource string `json:"subresource,omitempty"`
	Path        string `json:"path,omitempty"` // set where there is no resource
	Code        int    `json:"code"`

	// Count is taken when the answer's header is written, so a watch counts from its beginning.
	Count int64 `json:"count"`
	// Bytes is the size of the answers' bodies as sent, an open watch's up to now.
	Bytes int64 `json:"bytes"`
}

// Writes reports whether the request changes what the API holds. A dry run counts as a write, and so do the
// reviews that only ask a question (token, access), because their verb is create.
func (r Request) Writes() bool {
	switch r.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return true
	}
	return false
}

// Address asks where a pod's server listens on this machine.
type Address struct {
	PodIP string `json:"podIP"`
	Port  int    `json:"port"`
}

// Socket is the unix socket that stands for a pod's address.
type Socket struct {
	Path string `json:"path"`
}

// Error is the body of every answer that reports a failure.
type Error struct {
	Message string `json:"message"`
}
