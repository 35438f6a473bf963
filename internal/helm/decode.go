package helm

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"tidemark.dev/tidemark/internal/release"
)

// DecodeLease reads a guard's Lease, at now by the API server's clock. An error names what of it cannot be read.
func DecodeLease(l *coordinationv1.Lease, now time.Time) (*release.Lease, error) {
	return decodeLease(l, now)
}
