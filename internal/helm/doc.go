// Package helm reads the records that Helm keeps of releases.
package helm
