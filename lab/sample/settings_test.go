package sample

import (
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
)

// memory is a file system of path and content, whose directories are those that hold a file.
type memory map[string]string

func (m memory) ReadFile(name string) ([]byte, error) {
	content, ok := m[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return []byte(content), nil
}

func (m memory) List(dir string) ([]string, error) {
	if _, ok := m[dir]; ok {
		return nil, ErrNotDirectory
	}
	var names []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if path.Dir(name) == dir {
			names = append(names, path.Base(name))
		}
	}
	if names == nil {
		return nil, &fs.PathError{Op: "open", Path: dir, Err: fs.ErrNotExist}
	}
	return names, nil
}

func TestLoad(t *testing.T) {
	env := map[string]string{"MODE": "v1", "EMPTY": "", "OTHER": "x"}
	files := memory{
		"/cfg/app.conf": "# comment\n\nrules.path = /a=b\nurl: http://x\r\n",
		"/dir/one":      "1",
		"/dir/two":      "a\nb\n",
		"/bad":          "rules\n",
		"/nokey":        "=x\n",
	}
	for name, test := range map[string]struct {
		args string
		want map[string]string
		err  string
	}{
		"nothing is read without options":       {want: map[string]string{}},
		"listed variables are settings":         {args: "--env MODE,ABSENT", want: map[string]string{"MODE": "v1"}},
		"required variables are settings":       {args: "--require MODE --require EMPTY", want: map[string]string{"MODE": "v1", "EMPTY": ""}},
		"a file has lines of both forms":        {args: "--file /cfg/app.conf", want: map[string]string{"rules.path": "/a=b", "url": "http://x"}},
		"a directory has a file per key":        {args: "--file /dir", want: map[string]string{"one": "1", "two": "a\nb\n"}},
		"a later file wins":                     {args: "--file /dir --file /cfg/app.conf --env OTHER", want: map[string]string{"one": "1", "two": "a\nb\n", "rules.path": "/a=b", "url": "http://x", "OTHER": "x"}},
		"known keys are accepted":               {args: "--know one,two --file /dir", want: map[string]string{"one": "1", "two": "a\nb\n"}},
		"required keys are known":               {args: "--know one --require two --file /dir", want: map[string]string{"one": "1", "two": "a\nb\n"}},
		"an unknown key is refused":             {args: "--know one --file /dir", err: `unknown setting "two" in /dir`},
		"a variable is never unknown":           {args: "--know one,two --env MODE --file /dir", want: map[string]string{"one": "1", "two": "a\nb\n", "MODE": "v1"}},
		"a missing required key is refused":     {args: "--require ABSENT --file /dir", err: `required setting "ABSENT" is missing`},
		"a missing file is refused":             {args: "--file /absent", err: "read /absent: file does not exist"},
		"a line without a separator is refused": {args: "--file /bad", err: "read /bad: line 1 is not key=value"},
		"a line without a key is refused":       {args: "--file /nokey", err: "read /nokey: line 1 is not key=value"},
	} {
		t.Run(name, func(t *testing.T) {
			options, err := Parse(strings.Fields(test.args), t.Output())
			if err != nil {
				t.Fatal(err)
			}
			got, err := load(options, env, files)
			if message := errorText(err); message != test.err {
				t.Errorf("error is %q, want %q", message, test.err)
			}
			if !maps.Equal(got, test.want) {
				t.Errorf("settings are %v, want %v", got, test.want)
			}
		})
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestParseRefusesWhatItDoesNotKnow(t *testing.T) {
	for _, args := range [][]string{{"--nothing"}, {"stray"}, {"--http=x"}} {
		if _, err := Parse(args, t.Output()); err == nil {
			t.Errorf("accepted %q", args)
		}
	}
}
