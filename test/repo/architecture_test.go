package repo

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// row matches a table row that begins with something in code: | `name` | text |.
var row = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (.*) \\|$")

// tableRows gives the rows of the tables below a heading of ARCHITECTURE.md: name and text.
func tableRows(t *testing.T, heading string) map[string]string {
	t.Helper()
	_, section, found := strings.Cut(read(t, "ARCHITECTURE.md"), "\n## "+heading+"\n")
	if !found {
		t.Fatalf("ARCHITECTURE.md has no section %q", heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	rows := map[string]string{}
	for _, m := range row.FindAllStringSubmatch(section, -1) {
		rows[m[1]] = m[2]
	}
	return rows
}

func TestArchitectureListsEveryPackage(t *testing.T) {
	compareRows(t, tableRows(t, "Packages"), dirs(packages(t)), "package")
}

// What no rule names, depguard lets through.
func TestLinterHasARuleForEveryProductPackage(t *testing.T) {
	config := read(t, ".golangci.yml")
	for _, dir := range dirs(packages(t)) {
		if strings.HasPrefix(dir, "internal/") && !strings.Contains(config, "**/"+dir+"/*") && dir != "internal/app" {
			t.Errorf(".golangci.yml says nowhere what %s may import", dir)
		}
	}
}

func TestArchitectureGivesAReasonForEachDirectDependency(t *testing.T) {
	want := directDependencies(t, "go.mod")
	compareRows(t, tableRows(t, "Direct dependencies"), want, "module")
}

// compareRows wants one row with a text for each name, and no row for anything else.
func compareRows(t *testing.T, rows map[string]string, names []string, what string) {
	t.Helper()
	for _, name := range names {
		if text, listed := rows[name]; !listed {
			t.Errorf("ARCHITECTURE.md does not list the %s %s", what, name)
		} else if len(strings.TrimSpace(text)) < 10 {
			t.Errorf("ARCHITECTURE.md says too little about the %s %s: %q", what, name, text)
		}
	}
	for name := range rows {
		if !slices.Contains(names, name) {
			t.Errorf("ARCHITECTURE.md lists the %s %s, which is not there", what, name)
		}
	}
}

// directDependencies lists the modules that a go.mod requires without the mark "indirect".
func directDependencies(t *testing.T, path string) []string {
	t.Helper()
	var modules []string
	inRequire := false
	for line := range strings.Lines(read(t, path)) {
		line = strings.TrimSpace(line)
		switch {
		case line == "require (":
			inRequire = true
		case line == ")":
			inRequire = false
		case (inRequire || strings.HasPrefix(line, "require ")) && !strings.HasSuffix(line, "// indirect"):
			if fields := strings.Fields(strings.TrimPrefix(line, "require ")); len(fields) > 1 {
				modules = append(modules, fields[0])
			}
		}
	}
	if len(modules) == 0 {
		t.Fatalf("%s requires nothing: the reading is wrong", path)
	}
	return modules
}
