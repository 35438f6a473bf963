// Package snapshot is about the immutable copies of config objects that pinned revisions use: named, made, read, retired.
//
// A snapshot is a copy of one whole ConfigMap or Secret, in the same namespace, under a name that contains a part of the
// digest of its content: equal content has one snapshot, whoever asks for it. It takes no label, annotation or owner from
// its source, so that nothing that manages the source ever takes the copy for its own.
package snapshot
