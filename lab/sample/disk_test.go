package sample

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestDiskListsAMountedConfigMap(t *testing.T) {
	dir := t.TempDir()
	// The kubelet's layout: keys are links into a directory that ..data points at.
	version := filepath.Join(dir, "..2026")
	for _, err := range []error{
		os.MkdirAll(filepath.Join(version, "deep"), 0o755),
		os.WriteFile(filepath.Join(version, "one"), []byte("1"), 0o644),
		os.Symlink("..2026", filepath.Join(dir, "..data")),
		os.Symlink("..data/one", filepath.Join(dir, "one")),
		os.Symlink("..data/deep", filepath.Join(dir, "deep")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	names, err := Disk{}.List(dir)
	if err != nil || !slices.Equal(names, []string{"one"}) {
		t.Errorf("names are %q, error %v", names, err)
	}
	if _, err := (Disk{}).List(filepath.Join(dir, "one")); !errors.Is(err, ErrNotDirectory) {
		t.Errorf("a file: %v", err)
	}
	if _, err := (Disk{}).List(filepath.Join(dir, "absent")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing: %v", err)
	}
}
