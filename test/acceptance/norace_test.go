//go:build !race

package acceptance

var buildFlags []string
