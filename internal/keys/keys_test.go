package keys_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"tidemark.dev/tidemark/internal/keys"
)

func TestFlatten(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		key, value string
		want       string // settings, or "opaque: why"
	}{
		"a plain value is a setting":                    {"LEASE", "10m", "LEASE"},
		"YAML is looked into":                           {"a.yaml", "rules:\n  path: /etc\n  n: 1\n", "a.yaml:rules.n a.yaml:rules.path"},
		"anchors and merges are followed":               {"a.yml", "b: &b {x: 1}\nc:\n  <<: *b\n  y: 2\n", "a.yml:b.x a.yml:c.x a.yml:c.y"},
		"each document of a stream has its settings":    {"a.yaml", "x: 1\n---\nx: 2\n", "a.yaml:document[2].x a.yaml:x"},
		"a list of scalars is one setting":              {"a.yaml", "hosts: [a, b]\n", "a.yaml:hosts"},
		"elements of a list share their settings":       {"a.yaml", "s:\n- {a: 1}\n- {a: 2, b: 3}\n", "a.yaml:s.[].a a.yaml:s.[].b"},
		"an empty map is a setting":                     {"a.yaml", "x: {}\n", "a.yaml:x"},
		"keys that are no text are":                     {"a.yaml", "1: a\ntrue: b\n", "a.yaml:1 a.yaml:true"},
		"JSON is looked into":                           {"a.json", `{"a":{"b":1.50},"c":null}`, "a.json:a.b a.json:c"},
		"TOML is looked into":                           {"a.toml", "[a]\nb = 2020-01-01\n[[c]]\nd = true\n", "a.toml:a.b a.toml:c.[].d"},
		"properties are looked into":                    {"log4j.properties", "a.b = ${c}\n! note\nd : x\\\n  y\n", "log4j.properties:a.b log4j.properties:d"},
		"INI is looked into":                            {"a.ini", "top = 1\n[s]\nk = v\nflag\n", "a.ini:s.flag a.ini:s.k a.ini:top"},
		"dotenv is looked into":                         {"prod.env", "export A=1\nB=\"x y\"\n", "prod.env:A prod.env:B"},
		"a file called .env is dotenv":                  {".env", "A=1\n", ".env:A"},
		"YAML is recognised without a name":             {"config", "a:\n  b: c\nd: e\n", "config:a.b config:d"},
		"JSON is recognised without a name":             {"config", `{"a": 1}`, "config:a"},
		"assignments are recognised in a .conf":         {"pricing.conf", "# rules\nrules.path=/etc\n", "pricing.conf:rules.path"},
		"sections are recognised in a .cfg":             {"a.cfg", "[s]\nk = v\n", "a.cfg:s.k"},
		"another language in a .conf is text":           {"nginx.conf", "a = 1\nserver {\n}\n", "nginx.conf"},
		"one assignment is a value":                     {"OPTS", "a=b", "OPTS"},
		"several are settings":                          {"config", "a=b\nc=d\n", "config:a config:c"},
		"a script is no settings":                       {"run.sh", "#!/bin/sh\necho a: b\n", "run.sh"},
		"one line with a colon is no YAML":              {"GREETING", "hello: world", "GREETING"},
		"an empty file is a value":                      {"a.yaml", "", "a.yaml"},
		"a template that does not parse is opaque":      {"a.yaml", "a: {{ .Values.x }}\n{{- if y }}\nb: 1\n", "opaque: is not valid YAML at its line 2; it looks like a template"},
		"a broken file is opaque":                       {"a.json", `{"a": `, "opaque: is not valid JSON"},
		"two JSON values are opaque":                    {"a.json", `{} {}`, "opaque: is not valid JSON"},
		"TOML with a repeated key is opaque":            {"a.toml", "a = 1\na = 2\n", "opaque: is not valid TOML"},
		"an alias to nothing is opaque":                 {"a.yaml", "a: *b\n", "opaque: is not valid YAML"},
		"a reason never quotes the file":                {"a.yaml", "a: 'MARKER\nMARKER: [\n", "opaque: is not valid YAML at its line 3"},
		"properties with a broken escape are opaque":    {"a.properties", "a = \\uZZZZ\n", "opaque: is not valid Java properties"},
		"dotenv with something else in it is opaque":    {"a.env", "this is no setting\n", "opaque: is not valid dotenv"},
		"INI with an unclosed section is opaque":        {"a.ini", "[s\n", "opaque: is not valid INI"},
		"INI with values of several lines is opaque":    {"a.ini", "[db]\npassword =\n  MARKER\n", "opaque: is not valid INI"},
		"INI whose second line has a = is opaque":       {"a.ini", "[db]\npassword =\n  MARKER=\n", "opaque: is not valid INI"},
		"INI that is indented is looked into":           {"a.ini", "[s]\n\t# why\n\tk = v\n\tempty =\n[t]\n\tl = w\n", "a.ini:s.empty a.ini:s.k a.ini:t.l"},
		"a template without a name is opaque":           {"config", "a: {{ .Values.x }}\n{{- if y }}\nb: 1\n", "opaque: looks like a template"},
		"a template in a .conf is opaque":               {"app.conf", "{{ if y }}\na=1\n{{ end }}\n", "opaque: looks like a template"},
		"a template of a file is opaque":                {"app.yaml.tmpl", "a: {{ x }}\nb: 1\n", "opaque: looks like a template"},
		"a template of JSON is opaque":                  {"config", "{\n\"a\": {{ x }}\n}\n", "opaque: looks like a template"},
		"a line with braces is a value":                 {"GREETING", "hello {{ name }}", "GREETING"},
		"a script with braces is none":                  {"run.sh", "docker ps --format '{{.ID}}'\necho\n", "run.sh"},
		"settings with braces are read":                 {"config", "a: '{{ x }}'\nb: c\n", "config:a config:b"},
		"a template without braces in YAML still reads": {"a.yaml", "a: \"{{ x }}\"\n", "a.yaml:a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			settings, opaque := keys.Flatten(map[string]string{c.key: c.value})
			var got []string
			for _, p := range settings.Sorted() {
				got = append(got, p.String())
			}
			text := strings.Join(got, " ")
			if len(opaque) > 0 {
				text = "opaque: " + opaque[0].Why
			}
			if text != c.want {
				t.Errorf("got  %s\nwant %s", text, c.want)
			}
		})
	}
}

// hostile gives files that are small and would cost much, or are large.
func hostile() map[string][2]string {
	bomb := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'm'; c++ {
		bomb += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c,", c-1), 10), ","))
	}
	var wide strings.Builder
	for i := range 60_000 {
		fmt.Fprintf(&wide, "k%d: 1\n", i)
	}
	lines := strings.ReplaceAll(wide.String(), ": ", " = ")
	var steps strings.Builder
	for i := range 150 {
		fmt.Fprintf(&steps, "%s%d:\n", strings.Repeat(" ", i), i)
	}
	return map[string][2]string{
		"aliases that expand":       {"a.yaml", bomb},
		"brackets in YAML":          {"a.yaml", strings.Repeat("[", 500_000)},
		"brackets in JSON":          {"a.json", strings.Repeat("[", 500_000)},
		"brackets in TOML":          {"a.toml", "a = " + strings.Repeat("[", 500_000)},
		"maps in TOML":              {"a.toml", "a = " + strings.Repeat("{b=", 500_000)},
		"deep maps":                 {"a.yaml", steps.String()},
		"many settings":             {"a.yaml", wide.String()},
		"many settings in TOML":     {"a.toml", lines},
		"many settings on one line": {"a.toml", "a = {" + strings.ReplaceAll(lines, "\n", ", ") + "z = 1}"},
		"many settings in INI":      {"a.ini", lines},
		"a large file":              {"a.json", `{"a":"` + strings.Repeat("x", 3<<20) + `"}`},
		"sequences in sequences":    {"a.yaml", strings.Repeat("- ", 20_000) + "x"},
		"a dotted key without end":  {"a.toml", strings.Repeat("a.", 200_000) + "a = 1"},
		"an alias within its value": {"a.yaml", "a: &a [*a]\n"},
	}
}

func TestHostileFilesAreOpaqueSoon(t *testing.T) {
	t.Parallel()
	for name, c := range hostile() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begun := time.Now()
			_, opaque := keys.Flatten(map[string]string{c[0]: c[1]})
			if len(opaque) != 1 {
				t.Errorf("opaque: %v", opaque)
			}
			if took := time.Since(begun); took > 20*time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
}

// A variable that holds another one twice, which holds another one twice, would not fit into any memory.
func TestVariablesOfDotenvAreNotPutIn(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"A=xxxxxxxx\n" + strings.Repeat("A=$A${A}\n", 24): "$A${A}",
		"B=x\nA=\"${B}$B\"\n":                             "${B}$B",
		"B=x\nA='${B}'\n":                                 "${B}",
		"A=$(B)\n":                                        "$(B)",
	} {
		f := keys.Parse("a.env", text)
		if len(f.Documents) != 1 {
			t.Fatalf("%.20q: %s", text, f.Opaque)
		}
		if m, _ := f.Documents[0].(map[string]any); m["A"] != want {
			t.Errorf("%.20q: got %.40q, want %q", text, m["A"], want)
		}
	}
	if f := keys.Parse("a.env", "A=$B\ufdd0\n"); f.Opaque != "is not valid dotenv" {
		t.Errorf("a character of no text: %q", f.Opaque)
	}
}

// What is said of a file tells a bomb from a mistake.
func TestHostileFilesAreNamedForWhatTheyAre(t *testing.T) {
	t.Parallel()
	wide := "a: &a [" + strings.Repeat("x,", 1000) + "]\nb: &b [" + strings.Repeat("*a,", 1000) + "]\n"
	for text, want := range map[string]string{
		wide: "has aliases that expand beyond all bounds", "a: &a [*a]\n": "is nested too deeply", "a: [\n": "is not valid YAML at its line 1", "a: [{{ x }}\n": "it looks like a template",
	} {
		if _, opaque := keys.Flatten(map[string]string{"a.yaml": text}); len(opaque) != 1 || !strings.Contains(opaque[0].Why, want) {
			t.Errorf("%.20q: %v, want %s", text, opaque, want)
		}
	}
}

func TestCompare(t *testing.T) {
	t.Parallel()
	type data = map[string]string
	for name, c := range map[string]struct {
		before, after data
		secret        bool
		want          string
	}{
		"nothing changed":      {data{"a": "1"}, data{"a": "1"}, false, ""},
		"a value":              {data{"a": "1"}, data{"a": "2"}, false, "changed a"},
		"a removed key":        {data{"alpha": "1"}, data{}, false, "removed alpha"},
		"an added key":         {data{}, data{"alpha": "1"}, false, "added alpha"},
		"a layout of a file":   {data{"a.yaml": "a: 1\nb: 2\n"}, data{"a.yaml": "# new\nb: 2\na:   1\n"}, false, ""},
		"a text for a number":  {data{"a.yaml": "a: 1\n"}, data{"a.yaml": "a: '1'\n"}, false, "changed a.yaml:a"},
		"the incident's":       {data{"a.yaml": "discount_rules_path: /etc/rules\n"}, data{"a.yaml": "rules:\n  discount_path: /etc/rules\n"}, false, "renamed a.yaml:discount_rules_path a.yaml:rules.discount_path high"},
		"with another value":   {data{"a.yaml": "discount_rules_path: /etc/rules\n"}, data{"a.yaml": "rules:\n  discount_path: /srv/r\n"}, false, "renamed a.yaml:discount_rules_path a.yaml:rules.discount_path medium"},
		"another spelling":     {data{"LOG_LEVEL": "info"}, data{"logLevel": "debug"}, false, "renamed LOG_LEVEL logLevel high"},
		"by a telling value":   {data{"DB_HOST": "orders-db.shop"}, data{"DATABASE_HOST": "orders-db.shop"}, false, "renamed DB_HOST DATABASE_HOST medium"},
		"by the value alone":   {data{"UPSTREAM": "orders-db.shop"}, data{"TARGET": "orders-db.shop"}, false, "renamed UPSTREAM TARGET low"},
		"a value of many":      {data{"CACHE": "true"}, data{"RETRY": "true"}, false, "removed CACHE, added RETRY"},
		"a moved section":      {data{"a.yaml": "spring: {redis: {port: 6379}}\n"}, data{"a.yaml": "spring: {data: {redis: {port: 6379}}}\n"}, false, "renamed a.yaml:spring.redis.port a.yaml:spring.data.redis.port high"},
		"two alike":            {data{"x.enabled": "true"}, data{"y.enabled": "true"}, false, "removed x.enabled, added y.enabled"},
		"another format":       {data{"a.properties": "lease.ttl=10m\n"}, data{"a.yaml": "lease:\n  ttl: 10m\n"}, false, "renamed a.properties:lease.ttl a.yaml:lease.ttl high"},
		"a misspelling":        {data{"TIMEOUT": "5s"}, data{"TIMEUOT": "6s"}, false, "renamed TIMEOUT TIMEUOT low"},
		"another number":       {data{"SHARD1": "a"}, data{"SHARD2": "b"}, false, "removed SHARD1, added SHARD2"},
		"one of each":          {data{"a_b": "1", "c": "1", "d": "1"}, data{"aB": "1", "d": "2", "e": "9"}, false, "renamed a_b aB high, removed c, changed d, added e"},
		"a Secret by its name": {data{"db_password": "x"}, data{"passwordDb": "y"}, true, "renamed db_password passwordDb medium"},
		"a Secret by no value": {data{"UPSTREAM": "hunter2hunter2"}, data{"TARGET": "hunter2hunter2"}, true, "removed UPSTREAM, added TARGET"},
		"a list that grew":     {data{"a.yaml": "s: [{a: 1}]\n"}, data{"a.yaml": "s: [{a: 1}, {a: 2}]\n"}, false, "changed a.yaml:s.[].a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before, _ := keys.Flatten(c.before)
			after, _ := keys.Flatten(c.after)
			var got []string
			for _, ch := range keys.Compare(before, after, keys.Options{Secret: c.secret}) {
				text := string(ch.Kind) + " " + ch.Path.String()
				if ch.Kind == keys.Renamed {
					text = fmt.Sprintf("renamed %s %s %s", ch.From, ch.Path, ch.Match.Confidence)
				}
				got = append(got, text)
			}
			slices.Sort(got)
			want := strings.Split(c.want, ", ")
			slices.Sort(want)
			if strings.Join(got, ", ") != strings.Join(want, ", ") {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

func TestSuccessorIsThereBeforeAndAfter(t *testing.T) {
	t.Parallel()
	both, _ := keys.Flatten(map[string]string{"discount_rules_path": "/etc/r", "rules.discount_path": "/etc/r", "other": "/etc/r"})
	after, _ := keys.Flatten(map[string]string{"rules.discount_path": "/etc/r", "other": "/etc/r"})
	if p, is := keys.NewSuccessors(both, after).Of(keys.Path{Key: "discount_rules_path"}); !is || p.Key != "rules.discount_path" {
		t.Errorf("got %v, %v", p, is)
	}
	without, _ := keys.Flatten(map[string]string{"discount_rules_path": "/etc/r", "other": "/etc/r"})
	if p, is := keys.NewSuccessors(without, after).Of(keys.Path{Key: "discount_rules_path"}); is {
		t.Errorf("%v is no second step: it was not there before", p)
	}
	siblings, _ := keys.Flatten(map[string]string{"http.read.timeout": "30000", "http.write.timeout": "30000"})
	one, _ := keys.Flatten(map[string]string{"http.read.timeout": "30000"})
	if p, is := keys.NewSuccessors(siblings, one).Of(keys.Path{Key: "http.write.timeout"}); is {
		t.Errorf("%v is another setting, which has the same value", p)
	}
}

func TestValuesDoNotPrint(t *testing.T) {
	t.Parallel()
	v := keys.NewValue("MARKER")
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		if text := fmt.Sprintf(format, v); strings.Contains(text, "MARKER") {
			t.Errorf("%s prints %s", format, text)
		}
	}
}

func TestSimilar(t *testing.T) {
	t.Parallel()
	present := []string{"LOG_LEVEL", "lease-ttl", "shard1"}
	for key, want := range map[string]string{
		"LOG_LEVLE": "LOG_LEVEL", "logLevel": "LOG_LEVEL", "leaseTTL": "lease-ttl", "leese-ttl": "lease-ttl", "shard2": "", "other": "", "LOG_LEVEL": "",
	} {
		if got := keys.Similar(key, present); got != want {
			t.Errorf("%s: got %q, want %q", key, got, want)
		}
	}
}
