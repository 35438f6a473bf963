package sample

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Disk is the file system of the machine that the caller itself runs on.
type Disk struct{}

// ReadFile implements Files.
func (Disk) ReadFile(path string) ([]byte, error) { return os.ReadFile(path) }

// List implements Files.
func (Disk) List(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, syscall.ENOTDIR) {
		return nil, ErrNotDirectory
	}
	if err != nil {
		return nil, err
	}
	var names []string
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), "..") {
			continue
		}
		// A mounted key is a link, so the entry alone does not say whether it is a file.
		if info, err := os.Stat(filepath.Join(dir, entry.Name())); err == nil && info.Mode().IsRegular() {
			names = append(names, entry.Name())
		}
	}
	return names, nil
}
