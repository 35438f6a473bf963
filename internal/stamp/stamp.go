// Package stamp decides what Tidemark leaves on a workload: the stamp on its pod template, with the record beside it.
package stamp

import (
	"time"

	"tidemark.dev/tidemark/internal/digest"
	"tidemark.dev/tidemark/internal/snapshot"
	"tidemark.dev/tidemark/internal/workload"
)

// Mode is what Tidemark may do for a workload.
type Mode string

// The modes.
const (
	Observe Mode = "observe" // read only
	Roll    Mode = "roll"    // a change of consumed content writes the stamp
	Pin     Mode = "pin"     // as roll, and each revision reads its own snapshots
)

// Object is one config object that a workload consumes, with its content now.
type Object struct {
	Use workload.Consumption
	// Applied is the object's content in the API now; for an object that is absent, what [digest.AbsentIn] gives.
	Applied digest.Content
	// Live says that the program reloads the object by itself: a change never rolls.
	Live bool
	// Versioned says that in mode pin each revision reads its own copy. Objects of other namespaces and those that only an
	// annotation names cannot be.
	Versioned bool
	// Pinned is what the snapshot holds that the template pins the object to, in the terms of the object itself; nil when
	// it is not pinned, or what it holds is not known. A pin with the name that a copy of what is applied has then counts as
	// one: whoever acts on the decision makes that copy again where it is not there.
	Pinned *digest.Content
}

// Revision is one retained revision of a workload: a ReplicaSet, a ControllerRevision.
type Revision struct {
	Name string
	// Number is the revision's number; a rollback gives the revision that it went back to a new, highest one.
	Number int64
	// Renumbered says that the revision was gone back to before (Deployments keep a note of it).
	Renumbered bool
	// Created is the creation time, to the second.
	Created time.Time
	// Matches says that the revision carries the workload's present pod template.
	Matches bool
}

// State is all that [Decide] needs to know of a workload. It holds no clock and makes no calls.
type State struct {
	Namespace string
	Mode      Mode
	// Record is what was left on the workload; nil when there is none. One that [Parse] cannot read is no absent one:
	// nothing is decided then.
	Record *Record
	// Intact says that the record's checksum, which no rollback takes along, is the record's own.
	Intact bool
	// Marked says that the workload carries a checksum at all, so Tidemark has been here before.
	Marked bool
	// Stamp is the stamp that the pod template carries now; "" when none.
	Stamp string
	// Pins are those that the pod template carries now; none when it carries none that can be read.
	Pins snapshot.Pins
	// Images are the images of the pod template in order.
	Images []string
	// Objects are the config objects that the template consumes, each once, in any order.
	Objects []Object
	// Revisions are the retained revisions in any order; only read when the stamp is not the one left, or the record was
	// put back.
	Revisions []Revision
}

// Action is what must be written.
type Action string

// The actions.
const (
	// Nothing: no write.
	Nothing Action = "nothing"
	// WriteRecord: only the workload's metadata changes, nothing rolls.
	WriteRecord Action = "record"
	// WriteStamp: the pod template's stamp changes, which rolls the workload, with the record in the same write.
	WriteStamp Action = "stamp"
)

// Reason says why.
type Reason string

// The reasons of decisions.
const (
	Observed       Reason = "Observed"       // mode observe: nothing is ever written
	Unchanged      Reason = "Unchanged"      // content is what was accounted for
	Waiting        Reason = "Waiting"        // a required object or key is missing; see Decision.Missing
	FirstRecord    Reason = "FirstRecord"    // Tidemark sees the workload for the first time
	ContentChanged Reason = "ContentChanged" // consumed content changed
	RolledBack     Reason = "RolledBack"     // someone went back to a retained revision
	NewTemplate    Reason = "NewTemplate"    // the template was replaced by one without the stamp that was left
	NewRelease     Reason = "NewRelease"     // the images changed under the stamp that was left
	FirstPin       Reason = "FirstPin"       // mode pin is new to the workload, so its template gets its first pins
	Restored       Reason = "Restored"       // content changed to what the pins hold already
	TemplateEdited Reason = "TemplateEdited" // references came or went, nothing else
	NewBaseline    Reason = "NewBaseline"    // digests of another version or key, or a lost checksum: accounted for anew
)

// Missing is a required object, or a required key of one, that is not there.
type Missing struct {
	Object workload.Object
	Key    string // "" when the whole object is missing
}

// Decision is what to do about a workload, as a value.
type Decision struct {
	Action Action
	Reason Reason
	// Changed are the objects whose consumed content differs from the baseline, sorted; only with ContentChanged.
	Changed []workload.Object
	// HeldBack are the objects that a rollback left on an older version on purpose, sorted. Also given when nothing is
	// written; not in mode observe.
	HeldBack []workload.Object
	// Missing are the required objects and keys that are not there, sorted: with Waiting why the workload waits, in mode
	// observe for information.
	Missing []Missing
	// Stamp is the stamp to write; meaningful with WriteStamp.
	Stamp string
	// Pins are the pins to write in place of all that the template carries; meaningful with WriteStamp. An empty name asks
	// for a snapshot of what is applied: see [Decision.ToCopy].
	Pins snapshot.Pins
	// Record is the record to write; meaningful with WriteRecord and WriteStamp. Its times are left as they were: the
	// caller notes the write with [Record.Noted].
	Record Record
}
