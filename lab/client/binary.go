package client

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const (
	// BinaryVariable is the environment variable that names the lab's binary.
	BinaryVariable = "TIDEMARK_LAB"
	module         = "tidemark.dev/tidemark"
)

// ErrNoBinary is returned when the lab's binary is not there.
var ErrNoBinary = errors.New("the lab is not built: run `make lab`")

// findBinary returns the path of the lab's binary: as given, or from the environment, or bin/lab of the repository
// that the working directory is in.
func findBinary(given string) (string, error) {
	path := given
	if path == "" {
		path = os.Getenv(BinaryVariable)
	}
	if path == "" {
		root, err := repositoryRoot()
		if err != nil {
			return "", fmt.Errorf("%w (%w, and %s is not set)", ErrNoBinary, err, BinaryVariable)
		}
		path = filepath.Join(root, "bin", "lab")
	}
	if info, err := os.Stat(path); err != nil || info.IsDir() {
		return "", fmt.Errorf("%w (no file %s)", ErrNoBinary, path)
	}
	return filepath.Abs(path)
}

// beside returns the path of something that `make lab` builds beside the lab's binary.
func (l *Lab) beside(name string) (string, error) {
	path := filepath.Join(filepath.Dir(l.binary), name)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%w (%s is not there)", ErrNoBinary, path)
	}
	return path, nil
}

func repositoryRoot() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		if content, err := os.ReadFile(filepath.Join(dir, "go.mod")); err == nil && moduleOf(content) == module {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("%s is not in a checkout of %s", start, module)
		}
	}
}

func moduleOf(goMod []byte) string {
	lines := bufio.NewScanner(bytes.NewReader(goMod))
	for lines.Scan() {
		if name, ok := strings.CutPrefix(lines.Text(), "module "); ok {
			return strings.TrimSpace(name)
		}
	}
	return ""
}
