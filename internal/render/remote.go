package render

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/konfig"

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

// maxLooked is how many nodes of one file are looked at, those behind aliases each time that they are reached.
const maxLooked = 1_000_000

// looker looks for what is remote in one file. It goes over nodes rather than values: of a key that is there twice, or is merged in
// from two maps, both are seen, whichever kustomize takes.
type looker struct {
	dir   string
	nodes int
	err   error
}

// remoteField finds the first field of a file that names something remote, as an error.
func remoteField(file, text string) error {
	l := &looker{dir: filepath.Dir(file)}
	field := ""
	if slices.Contains(kustomizationFiles, filepath.Base(file)) {
		for _, n := range parsed(text) {
			if field = l.remote("", n, false, 0); field != "" {
				break
			}
		}
	} else {
		field = l.plugin(text)
	}
	if field != "" {
		return fmt.Errorf("%s %w", field, errRemote)
	}
	return l.err
}

// parsed are the documents of a text; none where kustomize refuses it, too.
func parsed(text string) []*yaml.Node {
	nodes, err := yamltree.Parse(text)
	if err != nil {
		return nil
	}
	return nodes
}

// plugin is the field that names something remote in what configures a plugin of kustomize; "" for none, and for other objects. Most
// files are told by their text: it says "builtin" unless it is written in another way.
func (l *looker) plugin(text string) string {
	if !strings.Contains(text, konfig.BuiltinPluginApiVersion) && !strings.Contains(text, `\`) && !strings.Contains(text, "!") {
		return ""
	}
	for _, n := range parsed(text) {
		if field := l.configuration("", n, 0); field != "" {
			return field
		}
	}
	return ""
}

// configuration looks into an object, or each of a List.
func (l *looker) configuration(field string, n *yaml.Node, depth int) string {
	if !l.goOn(depth) {
		return ""
	}
	for _, version := range values(n, "apiVersion", 0) {
		if path.Base(scalar(version)) == konfig.BuiltinPluginApiVersion {
			return l.remote(field, n, false, depth)
		}
	}
	for _, items := range values(n, "items", 0) {
		for i, item := range items.Content {
			if found := l.configuration(fmt.Sprintf("items[%d]", i), yamltree.Resolve(item), depth+1); found != "" {
				return found
			}
		}
	}
	return ""
}

func (l *looker) goOn(depth int) bool {
	l.nodes++
	switch {
	case depth > yamltree.MaxDepth:
		l.err = yamltree.ErrDeep
	case l.nodes > maxLooked:
		l.err = yamltree.ErrAliases
	}
	return l.err == nil
}

// remote is the field of a node, or below it, that names something remote; "" for none. names says that its scalars are names.
func (l *looker) remote(field string, n *yaml.Node, names bool, depth int) string {
	if !l.goOn(depth) {
		return ""
	}
	switch n.Kind {
	case yaml.DocumentNode, yaml.AliasNode:
		return l.remote(field, below(n), names, depth+1)
	case yaml.MappingNode:
		return l.remoteOf(field, n, depth)
	case yaml.SequenceNode:
		for i, element := range n.Content {
			if found := l.remote(fmt.Sprintf("%s[%d]", field, i), element, names, depth+1); found != "" {
				return found
			}
		}
	case yaml.ScalarNode:
		if value := scalar(n); names && (isRemote(l.dir, value) || l.plugin(value) != "") {
			return field
		}
	}
	return ""
}

// remoteOf looks into the fields of a map, and into what is merged into it.
func (l *looker) remoteOf(field string, n *yaml.Node, depth int) string {
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := yamltree.Resolve(n.Content[i]), n.Content[i+1]
		name := scalar(key)
		merged := []*yaml.Node{value}
		switch {
		case key.ShortTag() != "!!merge":
			merged = nil
			if isOne(free, name) {
				continue
			}
			if found := l.remote(strings.TrimPrefix(field+"."+name, "."), value, isOne(naming, name), depth+1); found != "" {
				return found
			}
		case yamltree.Resolve(value).Kind == yaml.SequenceNode:
			merged = yamltree.Resolve(value).Content
		}
		for _, m := range merged {
			if found := l.remote(field, m, false, depth+1); found != "" {
				return found
			}
		}
	}
	return ""
}

// isOne reports whether a field is one of a list, as Go's decoder of JSON takes names for the same.
func isOne(list []string, name string) bool {
	return slices.ContainsFunc(list, func(one string) bool { return strings.EqualFold(one, name) })
}

// below is the content of a document or an alias.
func below(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.DocumentNode && len(n.Content) > 0 {
		n = n.Content[0]
	}
	return yamltree.Resolve(n)
}

// values are those that a field of a map may have, merged in or not.
func values(n *yaml.Node, name string, depth int) []*yaml.Node {
	if n = below(n); n.Kind != yaml.MappingNode || depth > yamltree.MaxDepth {
		return nil
	}
	var out []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := yamltree.Resolve(n.Content[i]), below(n.Content[i+1])
		switch {
		case key.ShortTag() != "!!merge":
			if strings.EqualFold(scalar(key), name) {
				out = append(out, value)
			}
		case value.Kind == yaml.SequenceNode:
			for _, m := range value.Content {
				out = append(out, values(m, name, depth+1)...)
			}
		default:
			out = append(out, values(value, name, depth+1)...)
		}
	}
	return out
}

// scalar is the text of a scalar, which may be written in base64.
func scalar(n *yaml.Node) string {
	if n.ShortTag() == "!!binary" {
		if data, err := base64.StdEncoding.DecodeString(n.Value); err == nil {
			return string(data)
		}
	}
	return n.Value
}

// plugging are the fields of a kustomization that name what configures plugins.
var plugging = []string{"generators", "transformers", "validators"}

// plain are the fields of a kustomization that leave objects as they are.
var plain = []string{"apiVersion", "kind", "metadata", "resources", "bases"}

// errAltered is of what would be fetched, perhaps, and cannot be told from the files.
var errAltered = errors.New(`is in a kustomization that configures plugins, which it alters: what those fetch is not known before. Name the files of their ` +
	`configuration instead, or build it by a command: --render "kustomize build DIR"`)

// altered follows which directories configure plugins. What their files say is what a plugin gets, provided that no kustomization between
// alters it: a patch could give it an address that no file has.
func (t *tree) altered(file, text string) error {
	if !slices.Contains(kustomizationFiles, filepath.Base(file)) {
		return nil
	}
	dir := filepath.Dir(file)
	for _, document := range parsed(text) {
		n := below(document)
		named := plugging
		if t.configures[dir] {
			named = plain
			if field := strange(n); field != "" {
				return fmt.Errorf("%s %w", field, errAltered)
			}
		}
		for _, field := range named {
			for _, list := range values(n, field, 0) {
				for _, entry := range list.Content {
					if named, err := filepath.EvalSymlinks(filepath.Join(dir, scalar(yamltree.Resolve(entry)))); err == nil {
						t.configures[named] = true
					}
				}
			}
		}
	}
	return nil
}

// strange is the first field of a kustomization that may alter objects; "" for none.
func strange(n *yaml.Node) string {
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		key := yamltree.Resolve(n.Content[i])
		if name := scalar(key); !isOne(plain, name) || key.ShortTag() == "!!merge" {
			return name
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
