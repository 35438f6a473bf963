// Package helm reads the releases of a cluster, beside the leases of guards.
package helm
