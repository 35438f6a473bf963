// Package history remembers at which times which content of a config object surely was the applied one.
//
// A log holds versions. The true moment at which a version began lies in its window, from NotBefore to Seen; so version i
// may have been the applied one from its own NotBefore to the Seen of version i+1, and at no other instant. Windows may
// overlap, when changes follow each other faster than they reach the observer: then some versions were never surely the
// applied one, and [Log.Over] says so.
//
// The package relies on this of its observer, and on nothing else:
//
//   - every change reaches it within Observation.Lag, by its own clock, and observations are handed over in order;
//   - with Observation.EveryEvent, each change since the observation before was handed over by itself;
//   - without it, nothing was missed or merged before Observation.Unwatched.
//
// The API truncates its times to seconds; such a time stands for the second that it begins, and every rule here takes the
// end of it that is safe.
package history

import (
	"slices"
	"time"

	"tidemark.dev/tidemark/internal/digest"
	"tidemark.dev/tidemark/internal/workload"
)

const (
	// MaxVersions bounds a log.
	MaxVersions = 10
	// maxForgotten bounds the keys of which one version may have forgotten values.
	maxForgotten = 100
)

// Log is the history of one object, oldest version first. The zero value of a log knows nothing.
type Log struct {
	Object   workload.Object
	Versions []Version
	// Dropped is the time before which versions were dropped to bound the log; zero when none were.
	Dropped time.Time
	// Lingering says that a version was dropped that was immutable, so that a node may still serve it.
	Lingering bool
	// Values are those that are kept of the versions; nil where none was looked for, always for a Secret.
	Values Values
}

// Version is one content of an object. From Seen on, until the NotBefore of the next version, it surely was the applied
// one; between NotBefore and Seen it is not known whether it was this one or the one before.
type Version struct {
	// NotBefore is the latest moment at which the content before surely was still the applied one; zero when nothing is
	// known of what was before.
	NotBefore time.Time
	// Seen is the earliest moment from which the content surely was the applied one.
	Seen time.Time
	// UID and ResourceVersion are the object's when the version was last confirmed; empty when absent.
	UID, ResourceVersion string
	// Content is what the object held.
	Content digest.Content
	// Forgotten are keys that nobody read and that had other values than those in Content as well while this was the version,
	// sorted; nil for none. What was read of them is not known.
	Forgotten []string
	// Gap says that between NotBefore and Seen the content may have been any: nobody watched, or changes were merged.
	Gap bool
	// Immutable says that the object was immutable. A kubelet stops looking at such an object once it has read it, so a node
	// may serve this content after another object took the name.
	Immutable bool
}

// Tells reports whether the version tells what the consumption reads of it, of no key of which was forgotten what it had.
func (v Version) Tells(use workload.Consumption) bool {
	return !slices.ContainsFunc(v.Forgotten, use.Reads)
}

// sameRevision reports whether the observation is of the very state of the object that the version was last confirmed by.
func (v Version) sameRevision(o Observation) bool {
	return v.UID != "" && v.UID == o.UID && v.ResourceVersion == o.ResourceVersion
}

// Observation is one look at an object.
type Observation struct {
	// At is the observer's time.
	At time.Time
	// Content is what the object holds; [digest.AbsentIn] when it is absent.
	Content digest.Content
	// UID and ResourceVersion are the object's; empty when absent.
	UID, ResourceVersion string
	// Created is the object's creation time; zero when absent.
	Created time.Time
	// Written is the newest time that the object's managed fields state for its content, zero when none. It can only move
	// the beginning of the window back: it proves nothing.
	Written time.Time
	// Lag is how long a change may have taken to reach the observer.
	Lag time.Duration
	// Unwatched is set when something may have been missed: the last moment at which someone surely watched, and saved what
	// came. A change that was seen and not yet saved when the observer before ended is part of the gap. Zero, without
	// EveryEvent, means that this is not known: then the gap begins with the version before.
	Unwatched time.Time
	// EveryEvent says that every change since the observation before was observed, each by itself, as the events of an
	// unbroken watch are. A queue that merges keys, or a watch that began with a new list, cannot say so; then another
	// resourceVersion with the same content is taken for a content that went and came back.
	EveryEvent bool
	// Fresh says that the object was seen coming into being while watching, and holds what it held then, so that this is
	// its content from its creation on.
	Fresh bool
	// AbsentSince is since when the object is known to have been absent until it came into being; zero when that is not
	// known. Meaningful with Fresh, in a log that is empty.
	AbsentSince time.Time
	// Immutable says that the object is immutable.
	Immutable bool
	// Reads tells of each key whether anybody reads it: versions that differ only in what nobody reads are joined before a log
	// that is full forgets one. Nil where that is not known.
	Reads func(key string) bool
}

// unbroken reports whether nothing can have happened to the object that was not observed.
func (o Observation) unbroken() bool { return o.EveryEvent && o.Unwatched.IsZero() }

// Span is a stretch of time, both ends included.
type Span struct{ From, To time.Time }

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
