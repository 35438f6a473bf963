package acceptance

import (
	"maps"
	"strings"

	"tidemark.dev/tidemark/lab/wire"
)

// data is what a config object holds; nil when it is absent. Of a ConfigMap the key [binaryKey] is in binaryData, which files show and
// no environment does.
type data map[string]string

const binaryKey = "BLOB"

// reading is one way in which a container reads a config object. It is written down here by hand, and not walked out of the
// manifest: the record is compared with contents by nothing that Tidemark has a part in.
type reading struct {
	env    map[string]string // by variable, the key that it shows
	prefix string            // with envFrom, that of the variables that show every key
	files  map[string]string // by path, the key that it shows
	dir    string            // the directory in which each key is a file
}

// readings lists how each container of testdata/evidence.yaml reads each object.
var readings = map[string]map[string][]reading{
	"keys/app": {
		"configmap/web": {{env: data{"WEB_A": "A"}}},
		"secret/creds":  {{env: data{"CREDS_A": "A"}}},
	},
	"whole/app": {
		"configmap/shared": {{prefix: "SHARED_"}},
		"secret/maybe":     {{prefix: "MAYBE_"}},
	},
	"files/app": {
		"configmap/files": {{files: data{"/items/a.conf": "A"}}},
		"secret/tls":      {{dir: "/tls/"}},
	},
	"store/prepare": {
		"configmap/web":   {{env: data{"WEB_A": "A"}}},
		"configmap/files": {{files: data{"/all/files/b": "B"}}},
		"secret/creds":    {{files: data{"/all/creds/b": "B"}}},
	},
	"store/app": {
		"configmap/calm":   {{env: data{"CALM_A": "A"}}},
		"configmap/files":  {{files: data{"/all/files/b": "B"}}},
		"secret/creds":     {{files: data{"/all/creds/b": "B"}}},
		"configmap/shared": {{files: data{"/pinned/a": "A"}}},
	},
	"ledger/side": {
		"secret/tls": {{prefix: "TLS_"}},
	},
	"ledger/app": {
		"configmap/shared": {{env: data{"SHARED_A": "A"}}, {dir: "/shared/"}},
		"configmap/calm":   {{dir: "/calm/"}},
	},
	"agent/app": {
		"configmap/fixed": {{env: data{"FIXED_A": "A"}}, {dir: "/fixed/"}},
		"secret/maybe":    {{env: data{"MAYBE_A": "A"}}},
		"configmap/web":   {{env: data{"WEB_B": "B"}}},
	},
	"optional/app": {
		"configmap/rare": {{dir: "/rare/"}},
		"secret/maybe":   {{files: data{"/maybe/a": "A"}}},
	},
	"reloading/app": {
		"configmap/files": {{dir: "/files/"}},
		"secret/tls":      {{files: data{"/tls/a": "A"}}},
	},
}

// gave reports whether a container that reads the object in all these ways, at a time when it held the data, was given
// exactly what it was given by the record.
func gave(d data, ways []reading, got wire.Start) bool {
	for _, r := range ways {
		if !r.shows(d, got) {
			return false
		}
	}
	return true
}

func (r reading) shows(d data, got wire.Start) bool {
	switch {
	case r.env != nil:
		return shown(d, r.env, got.Environment)
	case r.files != nil:
		return shown(d, r.files, got.Files)
	case r.dir != "":
		return maps.Equal(d, under(r.dir, got.Files))
	}
	return maps.Equal(d.text(), under(r.prefix, got.Environment))
}

// shown reports whether each place shows its key, and nothing where the data have no such key.
func shown(d data, places map[string]string, got map[string][]byte) bool {
	for place, key := range places {
		want, there := d[key]
		value, given := got[place]
		if there != given || want != string(value) {
			return false
		}
	}
	return true
}

// under is what has the prefix, without it.
func under(prefix string, got map[string][]byte) data {
	out := data{}
	for place, value := range got {
		if key, ok := strings.CutPrefix(place, prefix); ok {
			out[key] = string(value)
		}
	}
	return out
}
