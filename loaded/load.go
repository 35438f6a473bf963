package loaded

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Load is one go at loading an object. Its reads hand on what they read, so that what is reported is what the program got. It is
// used by one goroutine; [Load.Done] or [Load.Failed] ends it.
type Load struct {
	source     *Source
	options    options
	started    time.Time
	env, files map[string]value
	leftOut    []string
}

// snapshot is what a load that is done has read.
type snapshot struct {
	at         time.Time
	env, files map[string]value
	leftOut    []string // sorted, unique
}

// Getenv reads an environment variable that comes from one key of the object (`env` with a configMapKeyRef), and whether it is set.
func (l *Load) Getenv(key, variable string) (string, bool) {
	v, ok := os.LookupEnv(variable)
	l.note(l.env, key, []byte(v), ok)
	return v, ok
}

// EnvFrom reads the variables that come from the object as a whole (`envFrom` with that prefix), by key. The keys are those
// named, of which the ones that are not set are left out of the result; with none named, all whose variables begin with the prefix,
// but for those by which Kubernetes tells of a Service whose name begins alike. Whoever names the keys is safe from all others too.
// Without prefix and names it is an error, because nothing tells those variables from others.
func (l *Load) EnvFrom(prefix string, keys ...string) (map[string]string, error) {
	if len(keys) == 0 && prefix == "" {
		return nil, fmt.Errorf("read the environment of %s: name the keys: without a prefix nothing tells its variables from others", l.source)
	}
	if len(keys) == 0 {
		keys = keysWith(prefix)
	}
	out := make(map[string]string, len(keys))
	for _, key := range keys {
		v, ok := os.LookupEnv(prefix + key)
		if ok {
			out[key] = v
		}
		if slices.Contains(l.options.overridden, key) {
			l.leftOut = append(l.leftOut, key)
			continue
		}
		l.note(l.env, key, []byte(v), ok)
	}
	return out, nil
}

// keysWith lists what follows the prefix in the names of environment variables, but for those that tell of Services.
func keysWith(prefix string) []string {
	var keys []string
	services := linkedServices()
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		if key, ok := strings.CutPrefix(name, prefix); ok && key != "" && !isServiceLink(name, services) {
			keys = append(keys, key)
		}
	}
	return keys
}

// linkedServices are the Services of which variables of the environment tell, each by what its variables begin with. Kubernetes gives a
// pod those of all Services of its namespace (https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables),
// so a Service named as the prefix says would look like keys.
func linkedServices() []string {
	var services []string
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		service, is := strings.CutSuffix(name, "_SERVICE_HOST")
		if _, has := os.LookupEnv(service + "_SERVICE_PORT"); is && has && strings.Contains(os.Getenv(service+"_PORT"), "://") {
			services = append(services, service)
		}
	}
	return services
}

// portLink is what the name of a variable about one port of a Service ends with.
var portLink = regexp.MustCompile(`^_PORT(_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?$`)

func isServiceLink(name string, services []string) bool {
	return slices.ContainsFunc(services, func(service string) bool {
		rest, of := strings.CutPrefix(name, service)
		return of && (rest == "_SERVICE_HOST" || rest == "_SERVICE_PORT" || strings.HasPrefix(rest, "_SERVICE_PORT_") || portLink.MatchString(rest))
	})
}

// ReadFile reads the file that a volume shows a key as. A file that is not there is an error for which errors.Is(err,
// fs.ErrNotExist) holds, and the key counts as absent.
func (l *Load) ReadFile(key, path string) ([]byte, error) {
	content, err := os.ReadFile(path) //nolint:gosec // the program names its own file
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read key %s of %s: %w", key, l.source, err)
	}
	l.note(l.files, key, content, err == nil)
	if err != nil {
		return nil, fmt.Errorf("read key %s of %s: %w", key, l.source, err)
	}
	return content, nil
}

// ReadDir reads every file of a directory in which a volume without `items` shows the object, by key. All are of one state of the
// volume, also while the kubelet replaces it.
func (l *Load) ReadDir(dir string) (map[string][]byte, error) {
	const tries = 3
	for try := 1; ; try++ {
		files, err := readState(dir)
		if errors.Is(err, fs.ErrNotExist) && try < tries {
			continue // replaced while it was read
		}
		if err != nil {
			return nil, fmt.Errorf("read the files of %s: %w", l.source, err)
		}
		for key, content := range files {
			l.note(l.files, key, content, true)
		}
		return files, nil
	}
}

// readState reads the state of a volume that the kubelet's link "..data" leads to; without that link, the directory itself.
func readState(dir string) (map[string][]byte, error) {
	state, err := filepath.EvalSymlinks(filepath.Join(dir, "..data"))
	if errors.Is(err, fs.ErrNotExist) {
		state, err = dir, nil
	}
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(state)
	if err != nil {
		return nil, err
	}
	files := make(map[string][]byte, len(entries))
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), "..") {
			continue // the kubelet's own; no key begins so
		}
		if entry.IsDir() {
			return nil, fmt.Errorf("%s is a directory: read volumes with items by ReadFile", entry.Name())
		}
		if files[entry.Name()], err = os.ReadFile(filepath.Join(state, entry.Name())); err != nil { //nolint:gosec // as above
			return nil, err
		}
	}
	return files, nil
}

// Bytes notes the content of a key that the program read as a file by itself, or through the API.
func (l *Load) Bytes(key string, content []byte) { l.note(l.files, key, content, true) }

// note takes a value into the view, unless it is declared to be left out.
func (l *Load) note(view map[string]value, key string, content []byte, present bool) {
	switch {
	case l.source.kind == secret:
		return
	case slices.Contains(l.options.leftOut, key):
		l.leftOut = append(l.leftOut, key)
		return
	case !present:
		view[key] = value{}
		return
	}
	v := value{present: true}
	if lines := l.options.lines[key]; lines != nil {
		v.partly = true
		content = withoutLines(content, lines.Match)
	}
	v.sum = l.source.sumOf(key, content)
	view[key] = v
}

func withoutLines(content []byte, match func([]byte) bool) []byte {
	var kept []byte
	for line := range bytes.Lines(content) {
		if !match(bytes.TrimRight(line, "\r\n")) {
			kept = append(kept, line...)
		}
	}
	return kept
}

// Done says that the program runs with what it read by this load.
func (l *Load) Done() {
	slices.Sort(l.leftOut)
	s := l.source
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = &snapshot{at: l.started, env: cloneMap(l.env), files: cloneMap(l.files), leftOut: slices.Compact(l.leftOut)}
	s.successes++
	s.lastFailed = false
}

// Failed says that the program does not use what it read, and goes on with what it had.
func (l *Load) Failed() {
	s := l.source
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures++
	s.lastFailed = true
}
