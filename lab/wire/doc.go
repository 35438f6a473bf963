// Package wire defines the JSON that the lab exchanges with its client.
//
// The package imports nothing outside the standard library, because both the product's module and the
// lab's own module depend on it.
package wire
