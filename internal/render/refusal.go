package render

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"tidemark.dev/tidemark/internal/credential"
)

// refusals say what kustomize minds, in words of our own, by what its message has. The first that is found counts: messages are
// chains, of which those come first here that say most.
var refusals = []struct {
	mark  *regexp.Regexp
	words string
}{
	{regexp.MustCompile(`invalid literal source`), "an entry of literals is not of the form KEY=VALUE"},
	{regexp.MustCompile(`missing (key name|file path) for|key name or file path contains '='`), "an entry of files is not of the form FILE or KEY=FILE"},
	{regexp.MustCompile(`invalid utf8`), "an env file has bytes that are no text"},
	{regexp.MustCompile(`illegally repeats the key`), "a generator has a key twice"},
	{regexp.MustCompile(`loading KV pairs`), "a source of a generator cannot be read"},
	{regexp.MustCompile(`Found multiple kustomization files`), "there is more than one kustomization file"},
	{regexp.MustCompile(`kustomization\.yaml is empty`), "the kustomization is empty"},
	{regexp.MustCompile(`unable to find one of`), "there is no kustomization file"},
	{regexp.MustCompile(`enable-helm`), "it has charts, which kustomize does not render here: use --render \"kustomize build --enable-helm DIR\""},
	{regexp.MustCompile(`external plugins? disabled|plugin load is disabled|external plugin`), "it needs a plugin, which does not run here: use --render \"kustomize build DIR\" with the flags for it"},
	{regexp.MustCompile(`cycle detected`), "it has itself as a base"},
	{regexp.MustCompile(`security;|cannot be absolute`), "it names a file outside of its directory"},
	{regexp.MustCompile(`expected kind (!= )?'Component'`), "a component is used as a base, or a base as a component"},
	{regexp.MustCompile(`may not add resource with an already registered id|ID conflict`), "one object is there twice"},
	{regexp.MustCompile(`unable to find patch target|no resource matches strategic merge patch|no matches for Id|failed to find unique target`), "a patch has no object that it is for"},
	{regexp.MustCompile(`unable to parse SM or JSON patch|trouble configuring builtin PatchTransformer`), "a patch is neither a part of an object nor a JSON patch"},
	{regexp.MustCompile(`replacement`), "a replacement does not fit the objects"},
	{regexp.MustCompile(`json: unknown field`), "the kustomization has a field that kustomize does not know"},
	{regexp.MustCompile(`invalid Kustomization: json`), "a field of the kustomization has another type than kustomize expects"},
	{regexp.MustCompile(`wrong node kind|wrong Node Kind|cannot unmarshal|expected (sequence|scalar|mapping)|expect a `), "a field has another type than kustomize expects"},
	{regexp.MustCompile(`missing metadata\.name`), "an object has no name"},
	{regexp.MustCompile(`MalformedYAML|yaml: line|converting YAML`), "not valid YAML"},
	{regexp.MustCompile(`permission denied`), "it may not be read"},
	{regexp.MustCompile(`no such file or directory`), "it is not there"},
	{regexp.MustCompile(`is a directory|must resolve to a file|file is not directory`), "a file is named where a directory is meant, or a directory for a file"},
	{regexp.MustCompile(`too many (links|levels of symbolic links)`), "links lead round in a circle"},
}

// generates marks what is said of the sources of generators. What one of those names where nothing is may be a value: "files:
// [password=hunter2]" is a literal in the wrong list.
var generates = regexp.MustCompile(`loading KV pairs|key name|file path`)

var yamlLine = regexp.MustCompile(`yaml: line (\d+)`)

// refused says why a kustomization was not built: where, and what is wrong there. Kustomize's own words quote what they are about,
// the values of Secrets among it, so nothing of them is kept but places that are the names of files, and the number of a line.
func (s Source) refused(t *tree, message string) string {
	words := "kustomize refuses it"
	for _, r := range refusals {
		if r.mark.MatchString(message) {
			words = r.words
			break
		}
	}
	if m := yamlLine.FindStringSubmatch(message); m != nil {
		words += " at its line " + m[1]
	}
	if at := s.place(t, message); at != "" {
		words = at + ": " + words
	}
	return words + " (kustomize's own words may have values and are not shown: run kustomize build for them)"
}

// place is where kustomize's message is about, relative to the source's directory: the last file or directory that it names of those
// that it was asked for; "" for none.
func (s Source) place(t *tree, message string) string {
	found := t.lastNamed(message)
	if t.last != "" && filepath.Dir(t.last) != t.above && strings.HasPrefix(t.last, found) && strings.Contains(message, filepath.Base(t.last)) {
		found = t.last // messages about what is in a file name it as the kustomization does
	}
	relative, err := s.relative(found)
	if found == "" || err != nil || credential.Shaped(relative) {
		return ""
	}
	return relative
}

// lastNamed is the path of those that were asked for that ends last in the message, the longest where several do; "" for none.
func (t *tree) lastNamed(message string) string {
	found, end := "", -1
	for _, asked := range t.asked {
		at := strings.LastIndex(message, asked)
		if at < 0 || at+len(asked) < end || at+len(asked) == end && len(asked) < len(found) || strings.HasPrefix(asked, t.above) {
			continue
		}
		if _, err := os.Lstat(asked); err != nil && generates.MatchString(message) {
			continue
		}
		found, end = asked, at+len(asked)
	}
	return found
}
