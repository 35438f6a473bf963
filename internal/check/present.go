package check

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/credential"
	"tidemark.dev/tidemark/internal/keys"
	"tidemark.dev/tidemark/internal/manifest"
	"tidemark.dev/tidemark/internal/workload"
)

// present checks a workload of the new release against the configuration of the new release.
func (c *checker) present(w *manifest.Workload) {
	p := &present{checker: c, w: w, cell: &Cell{Workload: w.String(), Revision: c.After.Name, Configuration: c.After.Name, Outcome: OutcomeOK}}
	for _, r := range w.References() {
		if r.Source.Rolls() {
			p.reference(r)
		}
	}
	p.declared()
	p.schema()
	p.collisions()
	p.strays()
	c.Matrix = append(c.Matrix, *p.cell)
}

type present struct {
	*checker

	w    *manifest.Workload
	cell *Cell
}

func (p *present) finding(rule RuleID, r workload.Reference, key, why string) Finding {
	f := Finding{
		Rule: rule, Object: objectText(r.Object), Workload: p.w.String(), Key: Masked(key), At: p.w.Position, Why: why,
		excusable: []map[string]string{p.w.Annotations},
	}
	if config := p.After.Set.Configs[r.Object]; config != nil {
		f.excusable = append(f.excusable, config.Annotations)
	}
	return f
}

// breaks adds a finding because of which no pod starts, or a program cannot.
func (p *present) breaks(f Finding) {
	p.cell.Outcome, p.cell.Why = OutcomeBreaks, f.Why
	p.add(f)
}

func (p *present) reference(r workload.Reference) {
	config := p.After.Set.Configs[r.Object]
	if config == nil {
		p.absent(r)
		return
	}
	if ignored(config) {
		return
	}
	if r.Optional {
		p.optional(r, config)
	} else {
		p.required(r, config)
	}
	p.unrefreshed(r, config)
}

// absent is a reference to an object that is not among the manifests: it may come from elsewhere.
func (p *present) absent(r workload.Reference) {
	if !r.Optional {
		if p.cell.Outcome == OutcomeOK {
			p.cell.Outcome, p.cell.Why = OutcomeUnknown, objectText(r.Object)+" is not among what was given"
		}
		return
	}
	if similar := keys.Similar(r.Object.Name, p.besides(r.Object)); similar != "" {
		p.add(p.finding(OptionalHidesTypo, r, "", fmt.Sprintf("%s is optional for %s and is not there, while %s is.", objectText(r.Object), p.w, similar)))
	}
}

// besides names the objects of the kind and namespace of one, sorted.
func (c *checker) besides(o workload.Object) []string {
	if c.names == nil {
		c.names = map[workload.Object][]string{}
		for _, config := range c.After.Set.Sorted() {
			place := workload.Object{Kind: config.Kind, Namespace: config.Namespace}
			c.names[place] = append(c.names[place], config.Name)
		}
	}
	return c.names[workload.Object{Kind: o.Kind, Namespace: o.Namespace}]
}

func (p *present) required(r workload.Reference, config *manifest.Config) {
	for _, key := range r.Required {
		_, inData := config.Data[key]
		switch {
		case r.Source == workload.SourceEnv && !inData:
			p.breaks(p.finding(KeyMissing, r, key, fmt.Sprintf("Container %s needs %s of %s for its variable %s, and it is not there: the container does not start.",
				r.Container, Masked(key), objectText(r.Object), r.EnvName)))
		case r.Source != workload.SourceEnv && !config.Has(key):
			p.breaks(p.finding(ItemsKeyMissing, r, key, fmt.Sprintf("Volume %s has an item for %s of %s, and it is not there: no container of the pod starts.",
				r.Volume, Masked(key), objectText(r.Object))))
		}
	}
	if r.SubPath == "" || r.Refreshed || len(r.Required) > 0 || len(r.Keys) != 1 || config.Has(r.Keys[0]) {
		return
	}
	p.breaks(p.finding(KeyMissing, r, r.Keys[0], fmt.Sprintf("Container %s mounts %s of %s by sub-path, and it is not there: an empty directory stands at %s.",
		r.Container, Masked(r.Keys[0]), objectText(r.Object), r.MountPath)))
}

func (p *present) optional(r workload.Reference, config *manifest.Config) {
	for _, key := range r.Keys {
		if config.Has(key) {
			continue
		}
		if similar := keys.Similar(key, config.Keys()); similar != "" {
			p.add(p.finding(OptionalHidesTypo, r, key, fmt.Sprintf("%s of %s is optional for %s and is not there, while %s is.",
				Masked(key), objectText(r.Object), p.w, Masked(similar))))
		}
	}
}

// unrefreshed finds sub-path mounts of what is said to be reloaded.
func (p *present) unrefreshed(r workload.Reference, config *manifest.Config) {
	if r.SubPath == "" || r.Refreshed {
		return
	}
	var promise string
	switch {
	case p.w.Annotation(v1.AnnotationReloads) == v1.True:
		promise = p.w.String() + " says that it reloads"
	case config.Annotations[v1.AnnotationTreatAs] == v1.TreatAsLive:
		promise = objectText(r.Object) + " is said to be reloaded"
	default:
		return
	}
	p.add(p.finding(SubPathNeverRefreshes, r, "", fmt.Sprintf("%s, and container %s mounts it by sub-path at %s, where no change ever appears.", promise, r.Container, r.MountPath)))
}

// declared checks that what the program is said to read is there. Where an object is not among the manifests, it may be in it.
func (p *present) declared() {
	uses := p.After.consumed(p.w)
	for _, d := range parseReads(p.w) {
		if d.optional || !d.exact() || p.anywhere(d, uses) {
			continue
		}
		p.breaks(Finding{
			Rule: KeyMissing, Object: p.w.String(), Workload: p.w.String(), Key: Masked(d.text), At: p.w.Position,
			Why: fmt.Sprintf("%s reads %s, by %s, and no object that it uses has it.", p.w, Masked(d.text), v1.AnnotationReads), excusable: []map[string]string{p.w.Annotations},
		})
	}
}

func (p *present) anywhere(d pattern, uses []workload.Consumption) bool {
	for _, u := range uses {
		config := p.After.Set.Configs[u.Object]
		if config == nil {
			return true
		}
		for path := range p.settings[config] {
			if d.matches(path) {
				return true
			}
		}
		for _, key := range config.Keys() {
			if d.matches(keys.Path{Key: key}) || keys.Parse(key, config.Data[key]).Opaque != "" {
				return true
			}
		}
	}
	return false
}

// collisions finds variables that two sources give.
func (p *present) collisions() {
	spec := p.w.Template.Spec
	for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			p.collide(&list[i])
		}
	}
}

func (p *present) collide(c *corev1.Container) {
	given := map[string]string{}
	for i := range c.EnvFrom {
		source := p.envFrom(&c.EnvFrom[i])
		if source == nil {
			continue
		}
		for _, key := range slices.Sorted(maps.Keys(source.Data)) {
			name := c.EnvFrom[i].Prefix + key
			if other, twice := given[name]; twice {
				p.collision(c, name, other, objectText(source.Object))
			}
			given[name] = objectText(source.Object)
		}
	}
	listed := map[string]bool{}
	for _, e := range c.Env {
		if listed[e.Name] {
			p.collision(c, e.Name, "an entry of env", "another one")
		}
		listed[e.Name] = true // over what comes with an object, which is said on purpose
	}
}

func (p *present) envFrom(e *corev1.EnvFromSource) *manifest.Config {
	o := workload.Object{Namespace: p.w.Namespace}
	switch {
	case e.ConfigMapRef != nil:
		o.Kind, o.Name = workload.ConfigMap, e.ConfigMapRef.Name
	case e.SecretRef != nil:
		o.Kind, o.Name = workload.Secret, e.SecretRef.Name
	}
	return p.After.Set.Configs[o]
}

func (p *present) collision(c *corev1.Container, name, first, second string) {
	p.add(Finding{
		Rule: EnvNameCollision, Object: p.w.String(), Key: Masked(name), At: p.w.Position, excusable: []map[string]string{p.w.Annotations},
		Why: fmt.Sprintf("Container %s gets %s from %s and from %s, and the last one wins.", c.Name, Masked(name), first, second),
	})
}

// strays finds fields that the API drops. What is said of the template besides is true of it without them.
func (p *present) strays() {
	for _, s := range p.w.Strays {
		path := strings.TrimPrefix(s.Path+"."+s.Name, ".")
		if credential.Shaped(s.Name) {
			path = strings.TrimPrefix(s.Path+"."+hidden, ".")
		}
		f := Finding{
			Rule: FieldUnknown, Object: p.w.String(), Key: path, At: s.Position, Confidence: possible, excusable: []map[string]string{p.w.Annotations},
			Why: fmt.Sprintf("Kubernetes knows no field %s, so pods run without what it says.", path),
		}
		if meant := meant(s); meant != "" {
			f.Confidence = certain
			f.Why = fmt.Sprintf("Kubernetes knows no field %s, but %s, so pods run without what it says.", path, meant)
		}
		p.add(f)
	}
}

// meant is the field that a stray one is meant to be; "" for none.
func meant(s manifest.Stray) string {
	for _, known := range s.Known {
		if strings.EqualFold(known, s.Name) {
			return known
		}
	}
	return keys.Similar(s.Name, s.Known)
}

// credentials finds values in ConfigMaps that belong into a Secret.
func (c *checker) credentials() {
	for _, config := range c.After.Set.Sorted() {
		if config.Kind != workload.ConfigMap || ignored(config) {
			continue
		}
		accused := accuse(c.settings[config])
		for _, path := range slices.SortedFunc(maps.Keys(accused), keys.Path.Compare) {
			c.add(Finding{
				Rule: SecretInConfigMap, Object: objectText(config.Object), Key: shown(path, config.Kind), At: config.At(path.Key),
				Why: fmt.Sprintf("The value of %s is %s.", shown(path, config.Kind), accused[path]), excusable: []map[string]string{config.Annotations},
			})
		}
	}
}

// accuse tells of which settings the value is surely a credential, with what it is.
func accuse(settings keys.Settings) map[keys.Path]string {
	accused := map[keys.Path]string{}
	for path, value := range settings {
		if what := credential.Certain(cmp.Or(path.Setting, path.Key), value.Reveal()); what != "" {
			accused[path] = what
		}
	}
	return accused
}

// pipelines finds jobs of CI workflows that are cancelled while they deploy.
func (c *checker) pipelines() {
	for _, p := range c.After.Set.Pipelines {
		for _, d := range p.Deploys {
			c.add(Finding{
				Rule: CancelInProgress, Object: "job/" + d.Job, At: d.Position, place: d.File, comments: d.Comments,
				Why: fmt.Sprintf("Job %s deploys, and %s lets a newer run cancel it in the middle.", d.Job, d.Cancelled),
			})
		}
	}
}
