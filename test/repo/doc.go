// Package repo holds the repository to its own rules.
//
// Its tests read files only: nothing is built, started or fetched.
package repo
