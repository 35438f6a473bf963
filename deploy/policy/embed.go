// Package policy holds the admission policies of mode pin as they ship.
package policy

import "embed"

// FS holds two directories of YAML with a kustomization each: "rewriting", which makes new pods read what their pins say, and
// "protection", which keeps snapshots.
//
//go:embed rewriting protection
var FS embed.FS
