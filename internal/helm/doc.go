// Package helm reads the releases of a cluster, beside the leases of guards; it marks a pending revision failed.
package helm
