package cli

import (
	"cmp"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"tidemark.dev/tidemark/internal/manifest"
	"tidemark.dev/tidemark/internal/yamltree"
)

// locator finds where positions are in the repository.
type locator struct {
	// prefix of the working directory within the repository; "" at its top, or outside of one.
	prefix string
	// top of the repository, or the working directory.
	top string
	// charts are the directories of charts, relative to the top, by the names of the charts; they are looked for once, where they are
	// asked for.
	charts func() map[string][]string
}

// newLocator makes one for the working directory. Where charts have one name, those that the command names are looked into first.
func newLocator(command string) locator {
	here, err := os.Getwd()
	if err != nil {
		return locator{charts: func() map[string][]string { return nil }}
	}
	l := locator{top: here}
	for top := here; ; top = filepath.Dir(top) {
		if _, err := os.Stat(filepath.Join(top, ".git")); err == nil {
			l.prefix, _ = filepath.Rel(top, here)
			l.top = top
			break
		}
		if filepath.Dir(top) == top {
			break
		}
	}
	l.charts = sync.OnceValue(func() map[string][]string { return l.findCharts(strings.Fields(command)) })
	return l
}

// locate gives paths relative to the top of the repository.
func (l locator) locate(p manifest.Position) manifest.Position {
	p.File = l.relative(p.File)
	if p.Source != "" {
		p.Source = l.source(p)
	}
	return p
}

// source is the path of what something was rendered from. One of a kustomization is relative to the working directory. One of helm's
// begins with the name of the chart, whose directory may have another; a part of a chart that is no file in the repository, because
// it comes in an archive, is at its chart. What is of no chart in the repository stays as it is.
func (l locator) source(p manifest.Position) string {
	if file := l.relative(p.Source); l.has(file) {
		return file
	}
	if info, err := os.Stat(filepath.Join(l.top, p.File)); err == nil && info.IsDir() {
		return l.relative(p.Source) // of another revision, or from a remote base
	}
	chart := ""
	for rest, isChart := p.Source, true; isChart; {
		name, file, _ := strings.Cut(rest, "/")
		for _, dir := range l.charts()[name] {
			if at := filepath.Join(dir, filepath.FromSlash(file)); l.has(at) {
				return at
			}
			chart = cmp.Or(chart, filepath.Join(dir, chartFile))
		}
		rest, isChart = strings.CutPrefix(file, "charts/")
	}
	return cmp.Or(chart, p.Source)
}

// has reports whether the repository has a file.
func (l locator) has(file string) bool {
	info, err := os.Stat(filepath.Join(l.top, file))
	return err == nil && filepath.IsLocal(file) && !info.IsDir()
}

func (l locator) relative(file string) string {
	if strings.Contains(file, "//") {
		return file // of a remote base
	}
	if !filepath.IsAbs(file) {
		return filepath.Join(l.prefix, file)
	}
	if relative, err := filepath.Rel(l.top, file); err == nil && filepath.IsLocal(relative) {
		return relative
	}
	return file
}

const (
	chartFile = "Chart.yaml"
	// maxEntries is how many files and directories are passed in search of charts.
	maxEntries = 200_000
	// maxChart is how large the file of a chart may be, in bytes.
	maxChart = 1 << 20
)

// findCharts looks for charts in the repository. Those that the words name come first, then those that lie higher.
func (l locator) findCharts(words []string) map[string][]string {
	found := map[string][]string{}
	entries := 0
	_ = filepath.WalkDir(l.top, func(file string, entry fs.DirEntry, err error) error { // what cannot be read has no charts
		entries++
		switch {
		case err != nil || entry.IsDir() && (entry.Name() == ".git" || entry.Name() == "node_modules"):
			return fs.SkipDir
		case entries > maxEntries:
			return fs.SkipAll
		case entry.Name() != chartFile || !entry.Type().IsRegular():
			return nil
		}
		if dir, err := filepath.Rel(l.top, filepath.Dir(file)); err == nil {
			name := chartName(file)
			found[name] = append(found[name], dir)
		}
		return nil
	})
	named := func(dir string) int {
		if slices.ContainsFunc(words, func(word string) bool { return l.relative(word) == dir }) {
			return 0
		}
		return 1
	}
	for _, dirs := range found {
		slices.SortStableFunc(dirs, func(a, b string) int {
			separators := func(dir string) int { return strings.Count(path.Clean(filepath.ToSlash(dir)), "/") }
			return cmp.Or(cmp.Compare(named(a), named(b)), cmp.Compare(separators(a), separators(b)))
		})
	}
	return found
}

// chartName is the name that a chart's file gives it; "" where it gives none.
func chartName(file string) string {
	f, err := os.Open(file) //nolint:gosec // of the repository that is checked
	if err != nil {
		return ""
	}
	defer f.Close() //nolint:errcheck // it was only read
	text, err := io.ReadAll(io.LimitReader(f, maxChart))
	if err != nil {
		return ""
	}
	nodes, err := yamltree.Parse(string(text))
	if err != nil || len(nodes) == 0 {
		return ""
	}
	value, err := yamltree.Value(nodes[0])
	if err != nil {
		return ""
	}
	chart, _ := value.(map[string]any)
	name, _ := chart["name"].(string)
	return name
}
