//go:build race

package acceptance

// buildFlags make the controller program like the test: with the race detector. A race ends the program with an error.
var buildFlags = []string{"-race"}
