package fleet

import (
	"strings"

	"tidemark.dev/tidemark/internal/digest"
	"tidemark.dev/tidemark/internal/workload"
)

// Outcome is what looking into a container says of what was known of it.
type Outcome string

// The outcomes.
const (
	Right      Outcome = "right"   // its process has what evidence tells
	Wrong      Outcome = "wrong"   // its process has something else
	Unverified Outcome = "unknown" // looking does not decide
)

// Check is what looking into a container says of one object.
type Check struct {
	// Container is its name, and Loaded what evidence tells.
	Container string
	Loaded
	Outcome Outcome
	// Why says what was found, in words.
	Why string
	// Differs are the keys with another value in the process's environment than evidence tells.
	Differs []string
	// Files says what the files hold now: "applied", "loaded" (what evidence tells, where that is not applied any more), "other",
	// or "" where there are none, or they could not be read. It proves nothing of what was read.
	Files string
}

// Looked is what was found in a container.
type Looked struct {
	// Objects are the keys of ConfigMaps in its process's environment and in its files.
	Objects []ReportedObject
	// NoEnv is why its environment could not be read; "" when it could.
	NoEnv string
	// NoFiles is why some of its files could not; "" when they could, or there are none.
	NoFiles string
}

// Verify compares what is known of a pod's container with what was found by looking into it. Of Secrets nothing is looked at.
func Verify(f Fleet, pod, container string, looked Looked) []Check {
	f.Settings = f.Settings.WithDefaults()
	f.Objects, _ = f.underPins()
	var out []Check
	for i := range f.Pods {
		for j := range f.Pods[i].Containers {
			p, c := &f.Pods[i], &f.Pods[i].Containers[j]
			if p.Name != pod || c.Name != container {
				continue
			}
			r := reader{fleet: &f, pod: p, container: c}
			for _, x := range r.find() {
				out = append(out, x.verify(container, looked))
			}
		}
	}
	return out
}

// verify compares one finding.
func (f finding) verify(container string, looked Looked) Check {
	c := Check{Container: container, Loaded: f.Loaded, Outcome: Unverified}
	if f.Object.Kind == workload.Secret {
		c.Why = "a Secret is not looked at"
		return c
	}
	found := ReportedObject{Object: f.Object}
	for _, o := range looked.Objects {
		if o.Object == f.Object {
			found = o
		}
	}
	c.Files = f.filesHold(found)
	env := found
	env.Files = nil
	switch {
	case f.use.Env.Empty() && looked.NoFiles != "":
		c.Why = "cannot look: " + looked.NoFiles
	case f.use.Env.Empty():
		c.Why = "it is read as files, which tell what they hold now and not what was read"
	case looked.NoEnv != "":
		c.Why = "cannot look: " + looked.NoEnv
	case env.compared(f.use) == 0:
		c.Why = "cannot look: no variable of the process surely comes from it"
	case f.Digest == "":
		c.Why = "evidence tells nothing of it; " + f.holds(env)
	default:
		f.decide(&c, env)
	}
	return c
}

// decide compares the environment with what evidence tells.
func (f finding) decide(c *Check, env ReportedObject) {
	c.Differs = env.differs(f.use, f.content)
	if len(c.Differs) == 0 {
		c.Outcome, c.Why = Right, "the process's environment has what evidence tells"
		return
	}
	c.Outcome = Wrong
	c.Why = "the process's environment has another value of " + strings.Join(c.Differs, ", ") + "; " + f.holds(env)
}

// holds words what of the object's contents the environment has.
func (f finding) holds(env ReportedObject) string {
	if f.object == nil {
		return "what is applied was not read"
	}
	if f.object.Applied != nil && len(env.differs(f.use, *f.object.Applied)) == 0 {
		return "its environment has what is applied"
	}
	for _, v := range f.object.Log.Versions {
		if len(env.differs(f.use, v.Content)) == 0 && v.Content.Present {
			return "its environment has what was applied before"
		}
	}
	return "its environment has nothing that is known to have been applied"
}

// filesHold compares the files with what is applied, and with what evidence tells.
func (f finding) filesHold(found ReportedObject) string {
	found.Env = nil
	switch {
	case found.compared(f.use) == 0:
		return ""
	case f.object != nil && f.object.Applied != nil && len(found.differs(f.use, *f.object.Applied)) == 0:
		return "applied"
	case f.Digest != "" && f.content.Version == digest.V1 && len(found.differs(f.use, f.content)) == 0:
		return "loaded"
	}
	return "other"
}
