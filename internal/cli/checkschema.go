package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/manifest"
	"tidemark.dev/tidemark/internal/render"
)

// schemaFile reads a file with a schema, which a flag names or an annotation, as one release has it. The error is errOfAnother where that is
// not known: whoever renames a setting renames it in the schema, too.
type schemaFile func(name string, flagged bool) ([]byte, error)

var errOfAnother = errors.New("it is a file, and may be another than it was")

// onDisk reads schemas of what is on the disk.
func onDisk(source render.Source) schemaFile {
	return func(name string, flagged bool) ([]byte, error) {
		if flagged {
			return render.ReadFile(filepath.Clean(name))
		}
		return source.ReadFile(name)
	}
}

// inTree reads schemas of a revision of Git, whose source is given. Of a file outside of the repository there is one state, which is that of
// what is checked.
func inTree(tree *render.Checkout, source render.Source, before bool) schemaFile {
	return func(name string, flagged bool) ([]byte, error) {
		if !flagged {
			return source.ReadFile(name)
		}
		data, err := tree.ReadFile(name)
		switch {
		case before && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, render.ErrOutside)):
			return ofAnother(name, flagged)
		case errors.Is(err, render.ErrOutside):
			return render.ReadFile(filepath.Clean(name))
		}
		return data, err
	}
}

// ofAnother reads no schema: those that are there are of what is checked.
func ofAnother(name string, flagged bool) ([]byte, error) {
	if flagged {
		if _, err := os.Stat(name); err != nil {
			return nil, err
		}
	}
	return nil, errOfAnother
}

// unjudged says that a schema does not judge a release before.
func unjudged(release, file string, w *manifest.Workload) string {
	return fmt.Sprintf("%s is not known to be the schema of %s in %s, and is not used there: a schema in the annotation %s itself is its own, and so is a file of the revision of --from",
		file, w, release, v1.AnnotationSchema)
}

// schemaOf gives the JSON Schema of a workload's configuration, with where it is from: its annotation, else a flag; "" where there is
// none.
func (i checkInput) schemaOf(w *manifest.Workload, read schemaFile) (text, from string, err error) {
	if value := strings.TrimSpace(w.Annotation(v1.AnnotationSchema)); strings.HasPrefix(value, "{") {
		return value, "its annotation", nil
	} else if value != "" {
		data, err := read(value, false)
		return string(data), value, err
	}
	for _, flag := range i.schemas {
		if target, file, is := strings.Cut(flag, "="); is {
			if schemaFits(target, w) {
				data, err := read(file, true)
				return string(data), file, err
			}
			continue
		}
		file := filepath.Join(flag, strings.ToLower(w.Kind.Kind)+"-"+w.Name+".json")
		data, err := read(file, true)
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return string(data), file, err
		}
	}
	return "", "", nil
}
