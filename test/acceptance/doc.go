// Package acceptance proves on a real Kubernetes what Tidemark promises, one scenario to a test.
package acceptance
