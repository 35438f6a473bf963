package repo

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// machineNames matches names of the machine that something was written on, or of the place that it was fetched from: they mean
// nothing in a clone. It is written so that it does not match itself.
var machineNames = regexp.MustCompile(`(?:^|[^\w/.-])/(?:work|root|home)/` +
	`|(?:proxy|sum)\.golang\.org|registry\.npmjs\.org|deb\.debian\.org|pypi\.org|index\.crates\.io|archive\.ubuntu\.com`)

func TestNoFileNamesAMachineOrARegistry(t *testing.T) {
	for _, p := range files(t, func(string) bool { return true }) {
		content := read(t, p)
		if !utf8.ValidString(content) {
			continue
		}
		for i, line := range strings.Split(content, "\n") {
			if name := machineNames.FindString(line); name != "" {
				t.Errorf("%s:%d names %s", p, i+1, strings.TrimSpace(name))
			}
		}
	}
}

func markdown(p string) bool { return strings.HasSuffix(p, ".md") }

var makeTarget = regexp.MustCompile("(?m)(?:`|^\\$? ?)make ([a-z-]+)")

func TestDocumentsNameTargetsThatExist(t *testing.T) {
	makefile := "\n" + read(t, "Makefile")
	for _, p := range append(files(t, markdown), ".ci/run") {
		for _, m := range makeTarget.FindAllStringSubmatch(read(t, p), -1) {
			if !strings.Contains(makefile, "\n"+m[1]+":") {
				t.Errorf("%s names `make %s`, which the Makefile does not have", p, m[1])
			}
		}
	}
}

var (
	testName = regexp.MustCompile("`(Test[A-Z]\\w+)`")
	testFunc = regexp.MustCompile(`(?m)^func (Test\w+)\(`)
)

func TestDocumentsNameTestsThatExist(t *testing.T) {
	there := map[string]bool{}
	for _, p := range files(t, func(p string) bool { return strings.HasSuffix(p, "_test.go") }) {
		for _, m := range testFunc.FindAllStringSubmatch(read(t, p), -1) {
			there[m[1]] = true
		}
	}
	for _, p := range files(t, markdown) {
		for _, m := range testName.FindAllStringSubmatch(read(t, p), -1) {
			if !there[m[1]] {
				t.Errorf("%s names %s, which is not there", p, m[1])
			}
		}
	}
}

var link = regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)

func TestLinksBetweenDocumentsLead(t *testing.T) {
	for _, p := range files(t, markdown) {
		for _, m := range link.FindAllStringSubmatch(read(t, p), -1) {
			target := path.Join(path.Dir(p), m[1])
			if _, err := os.Stat(filepath.Join(root, target)); err != nil {
				t.Errorf("%s links to %s, which is not there", p, m[1])
			}
		}
	}
}
