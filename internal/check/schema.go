package check

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"tidemark.dev/tidemark/internal/keys"
	"tidemark.dev/tidemark/internal/manifest"
	"tidemark.dev/tidemark/internal/workload"
)

// Schemas are compiled schemas of configuration, by what [manifest.Workload.String] gives.
type Schemas map[string]*jsonschema.Schema

// CompileSchema compiles the JSON Schema of a workload's configuration. It may refer to no other document. The error does not
// quote it.
func CompileSchema(text string) (*jsonschema.Schema, error) {
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("it is not valid JSON")
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(jsonschema.SchemeURLLoader{})
	const here = "tidemark:///configuration"
	if err := compiler.AddResource(here, document); err != nil {
		return nil, err
	}
	schema, err := compiler.Compile(here)
	if elsewhere := new(jsonschema.LoadURLError); errors.As(err, &elsewhere) {
		return nil, errElsewhere
	}
	return schema, err
}

var errElsewhere = errors.New("it refers to another document ($ref), which is not read: put what it refers to into its $defs")

// violations is where a configuration does not fit a schema.
type violations struct{ missing, unknown, other []keys.Path }

// judge says whether a program with the schema minds that a setting is gone, and that one by another name is there.
func (v *violations) judge(from, to keys.Path) certainty {
	for _, p := range v.missing {
		if p.Under(from) || from.Under(p) {
			return reads
		}
	}
	for _, p := range v.unknown {
		if to != (keys.Path{}) && to.Under(p) {
			return reads
		}
	}
	return doesNot
}

// validate fits the configuration of a release to a schema. A document of which a part is not known, because an object is not
// among the manifests, is not judged for what is missing.
func (r Release) validate(schema *jsonschema.Schema, uses []workload.Consumption) *violations {
	document, whole := map[string]any{}, true
	for _, u := range uses {
		config := r.Set.Configs[u.Object]
		if config == nil {
			whole = false
			continue
		}
		for _, key := range slices.Sorted(maps.Keys(config.Data)) {
			if u.Env.Has(key) || u.Files.Has(key) {
				document[key] = content(key, config)
			}
		}
	}
	out := &violations{}
	if err, is := schema.Validate(document).(*jsonschema.ValidationError); is { //nolint:errorlint // the library returns it unwrapped
		out.collect(err)
	}
	if !whole {
		out.missing = nil
	}
	for _, list := range [][]keys.Path{out.missing, out.unknown, out.other} {
		slices.SortFunc(list, keys.Path.Compare) // the library walks maps
	}
	return out
}

// content is the value of a key as a schema sees it.
func content(key string, config *manifest.Config) any {
	f := keys.Parse(key, config.Data[key])
	switch len(f.Documents) {
	case 0:
		return config.Data[key]
	case 1:
		return f.Documents[0]
	}
	return f.Documents
}

func (v *violations) collect(err *jsonschema.ValidationError) {
	at := pathOf(err.InstanceLocation)
	switch k := err.ErrorKind.(type) {
	case *kind.Required:
		for _, name := range k.Missing {
			v.missing = append(v.missing, below(at, name))
		}
	case *kind.AdditionalProperties:
		for _, name := range k.Properties {
			v.unknown = append(v.unknown, below(at, name))
		}
	default:
		if len(err.Causes) == 0 {
			v.other = append(v.other, at)
		}
	}
	for _, cause := range err.Causes {
		v.collect(cause)
	}
}

// pathOf turns a location in the document into a setting.
func pathOf(location []string) keys.Path {
	var p keys.Path
	for i, part := range location {
		switch {
		case i == 0:
			p.Key = part
		default:
			p = below(p, part)
		}
	}
	return p
}

func below(p keys.Path, name string) keys.Path {
	if _, err := strconv.Atoi(name); err == nil {
		name = "[]"
	}
	switch {
	case p.Key == "":
		p.Key = name
	case p.Setting == "":
		p.Setting = name
	default:
		p.Setting += "." + name
	}
	return p
}

// schema fits the new configuration to the schema of the old revision; nil where it has none, or where pods of it never read it.
func (t *transition) schema() *violations {
	schema := t.before.Schemas[t.old.String()]
	if schema == nil {
		return nil
	}
	uses := slices.DeleteFunc(t.before.consumed(t.old), func(u workload.Consumption) bool {
		was := t.before.Set.Configs[u.Object]
		_, settled := t.before.Settled[u.Object]
		return settled || was != nil && t.keeps(was)
	})
	if len(uses) == 0 {
		return nil
	}
	v, already := t.After.validate(schema, uses), t.before.validate(schema, uses)
	known := func(list []keys.Path) func(keys.Path) bool {
		return func(p keys.Path) bool { return slices.Contains(list, p) }
	}
	v.missing = slices.DeleteFunc(v.missing, known(already.missing))
	v.unknown = slices.DeleteFunc(v.unknown, known(already.unknown))
	v.other = slices.DeleteFunc(v.other, known(already.other))
	return v
}

// schemaFindings reports what the old revision's schema refuses in the new configuration. What is missing is reported as removed or
// renamed.
func (t *transition) schemaFindings() {
	if t.invalid == nil {
		return
	}
	report := func(rule RuleID, p keys.Path, why string) {
		f := t.violation(t.After, t.new, t.before.consumed(t.old), rule, p, why)
		f.Before = t.before.Name
		t.outcome(OutcomeBreaks, f.Why)
		t.add(f)
	}
	for _, p := range t.invalid.unknown {
		if !t.reported(p) {
			report(KeyUnknown, p, fmt.Sprintf("is not known to the schema of %s, so its pods would refuse it", t.before.Name))
		}
	}
	for _, p := range t.invalid.other {
		report(ValueInvalid, p, fmt.Sprintf("has a value that the schema of %s does not allow", t.before.Name))
	}
}

// reported reports whether a setting is the new name in a rename that was found.
func (t *transition) reported(p keys.Path) bool {
	return slices.ContainsFunc(t.Findings, func(f Finding) bool {
		return f.Rule == RenameInOneStep && f.Workload == t.new.String() && (f.To == p.String() || strings.HasPrefix(f.To, p.String()+"."))
	})
}

// schema checks the new configuration against the schema of the new revision.
func (p *present) schema() {
	schema := p.After.Schemas[p.w.String()]
	if schema == nil {
		return
	}
	uses := p.After.consumed(p.w)
	v := p.After.validate(schema, uses)
	for _, list := range []struct {
		rule  RuleID
		paths []keys.Path
		why   string
	}{
		{KeyMissing, v.missing, "is required by the schema, and is not there"},
		{KeyUnknown, v.unknown, "is not known to the schema"},
		{ValueInvalid, v.other, "has a value that the schema does not allow"},
	} {
		for _, path := range list.paths {
			p.breaks(p.violation(p.After, p.w, uses, list.rule, path, list.why))
		}
	}
}

// violation is a finding about a setting that does not fit a schema.
func (c *checker) violation(r Release, w *manifest.Workload, uses []workload.Consumption, rule RuleID, p keys.Path, why string) Finding {
	f := Finding{Rule: rule, Object: w.String(), Workload: w.String(), Key: shown(p, workload.ConfigMap), At: w.Position, excusable: []map[string]string{w.Annotations}}
	for _, u := range uses {
		config := r.Set.Configs[u.Object]
		if config == nil || !config.Has(p.Key) {
			continue
		}
		f.Object, f.Key, f.At = objectText(u.Object), shown(p, u.Object.Kind), config.At(p.Key)
		f.excusable = append(f.excusable, config.Annotations)
	}
	f.Why = fmt.Sprintf("%s %s.", cmp.Or(f.Key, "The configuration of "+w.String()+" as a whole"), why)
	return f
}
