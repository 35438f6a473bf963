// Package v1 is the public contract: the names that Tidemark reads from, or writes to, Kubernetes objects.
//
// Nothing here has behaviour. A name is never changed or reused within v1; a value's format carries its own version
// where one is needed (see the digest in [AnnotationConfigHash]).
package v1

// Domain prefixes every annotation and label of Tidemark.
const Domain = "tidemark.dev"

// FieldManager is the server-side field manager under which Tidemark writes.
const FieldManager = "tidemark"

// DefaultNamespace is where Tidemark keeps its own objects unless it is told otherwise.
const DefaultNamespace = "tidemark-system"
