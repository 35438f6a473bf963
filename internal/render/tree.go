package render

import "sigs.k8s.io/kustomize/kyaml/filesys"

// tree is the file system that a kustomization is built from.
type tree struct {
	filesys.FileSystem
	// above is the directory of the kustomization that asks for origins, of which nobody knows.
	above string
	// asked are the paths that kustomize asked for, and last is the file that it read last.
	asked []string
	last  string
}

func newTree(above string) *tree { return &tree{FileSystem: filesys.MakeFsOnDisk(), above: above} }

// CleanedAbs is asked for each path that a kustomization names.
func (t *tree) CleanedAbs(path string) (filesys.ConfirmedDir, string, error) {
	t.asked = append(t.asked, path)
	dir, file, err := t.FileSystem.CleanedAbs(path)
	if err == nil {
		t.asked = append(t.asked, dir.Join(file))
	}
	return dir, file, err
}

// ReadFile reads a file.
func (t *tree) ReadFile(path string) ([]byte, error) {
	data, err := t.FileSystem.ReadFile(path)
	if err == nil {
		t.last = path
	}
	return data, err
}
