package scenario

import (
	"embed"
	"io/fs"
	"os"
	"path/filepath"
)

//go:embed testdata/chart
var chart embed.FS

// Chart writes the Helm chart of the service `checkout` to a directory of its own below dir, and returns its path. Its values.yaml
// says what can be set.
func Chart(dir string) (string, error) {
	files, err := fs.Sub(chart, "testdata/chart")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "checkout")
	return path, os.CopyFS(path, files)
}
