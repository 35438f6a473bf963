package render

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"tidemark.dev/tidemark/internal/yamltree"
)

// errRemote is the remedy, too. It does not say what is remote: an address may have a password in it.
var errRemote = errors.New(`is remote, and is not fetched: what it is may be another thing tomorrow. Bring it into the repository (kustomize localize), ` +
	`or build it by a command: --render "kustomize build DIR"`)

// remote matches what kustomize gets by HTTP or Git. It may take an address without a scheme for a directory that is there, but
// never one for a file.
var (
	remoteFile = regexp.MustCompile(`(?i)^https?:`)
	remoteRoot = regexp.MustCompile(`(?i)^(git::)?((ssh|https?|file)://|github\.com[/:].*(/|\.git)|[a-z][a-z0-9-]*@[^/:]+[/:])`)
)

// naming are the fields that name files and directories, in kustomizations and in the configuration of kustomize's plugins. Case does
// not count.
var naming = []string{
	"resources", "bases", "components", "crds", "configurations", "generators", "transformers", "validators", "patchesstrategicmerge",
	"files", "envs", "env", "path", "paths", "valuesfile", "additionalvaluesfiles", "targetfilepath",
}

// free are the fields whose own fields have any names.
var free = []string{"commonannotations", "commonlabels", "annotations", "labels", "metadata"}

// remoteField finds the first field of a file that names something remote, as an error.
func remoteField(path, text string) error {
	kustomization := slices.Contains(kustomizationFiles, filepath.Base(path))
	if !kustomization && !strings.Contains(text, "builtin") {
		return nil
	}
	nodes, err := yamltree.Parse(text)
	if err != nil {
		return nil //nolint:nilerr // kustomize refuses what it cannot read
	}
	for _, n := range nodes {
		value, _ := yamltree.Value(n)
		document, isMap := value.(map[string]any)
		if !isMap || !kustomization && document["apiVersion"] != "builtin" {
			continue
		}
		if field := remoteIn(filepath.Dir(path), "", document, false); field != "" {
			return fmt.Errorf("%s %w", field, errRemote)
		}
	}
	return nil
}

// remoteIn is the field of a value, or below it, that names something remote; "" for none. names says that its scalars are names.
func remoteIn(dir, field string, value any, names bool) string {
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			lower := strings.ToLower(key)
			if slices.Contains(free, lower) {
				continue
			}
			if found := remoteIn(dir, strings.TrimPrefix(field+"."+key, "."), value[key], slices.Contains(naming, lower)); found != "" {
				return found
			}
		}
	case []any:
		for i, element := range value {
			if found := remoteIn(dir, fmt.Sprintf("%s[%d]", field, i), element, names); found != "" {
				return found
			}
		}
	case string:
		if names && (isRemote(dir, value) || remoteField(filepath.Join(dir, kustomizationFiles[0]), value) != nil) {
			return field
		}
	}
	return ""
}

// isRemote reports whether kustomize would fetch what a name stands for: in the list of files, after the key that it gets.
func isRemote(dir, name string) bool {
	if _, file, is := strings.Cut(name, "="); is && remoteFile.MatchString(file) || remoteFile.MatchString(name) {
		return true
	}
	if !remoteRoot.MatchString(name) {
		return false
	}
	info, err := os.Stat(filepath.Join(dir, name))
	return err != nil || info.IsDir()
}
