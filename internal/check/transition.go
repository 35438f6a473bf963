package check

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/keys"
	"tidemark.dev/tidemark/internal/manifest"
	"tidemark.dev/tidemark/internal/workload"
)

// transition is one workload between two releases.
type transition struct {
	*checker

	before   Release
	old, new *manifest.Workload
	declared []pattern
	// invalid is what the old revision's schema says of the configuration of both releases; nil where it has none.
	invalid *violations
	cell    *Cell
}

// transition checks what pods of the old revision would meet, and whether the change takes effect.
func (c *checker) transition(before Release, old, w *manifest.Workload) {
	t := &transition{checker: c, before: before, old: old, new: w, declared: parseReads(old)}
	t.cell = &Cell{Workload: w.String(), Revision: before.Name, Configuration: c.After.Name, Outcome: OutcomeOK}
	if !w.Kind.Once || before.Running { // in a cluster, a CronJob that is not given starts its next Job as it is
		t.invalid = t.schema()
		for _, u := range before.consumed(old) {
			t.object(u)
		}
		t.schemaFindings()
	}
	if !before.Past && (!w.Kind.Once || w.Kind.Kind == "Pod" && !before.Running) { // the next Job reads what is there then
		t.effect()
	}
	c.Matrix = append(c.Matrix, *t.cell)
}

// outcome records the worst of what happens.
func (t *transition) outcome(o Outcome, why string) {
	rank := map[Outcome]int{OutcomeOK: 0, OutcomeNever: 1, OutcomeUnknown: 2, OutcomeBreaks: 3}
	if rank[o] > rank[t.cell.Outcome] {
		t.cell.Outcome, t.cell.Why = o, why
	}
}

// versioned matches names with a version at their end: kustomize's hash, kapp's number, Tidemark's own copies.
var versioned = regexp.MustCompile(`-([2456789bcdfghkmt]{10}|ver-\d+)$`)

// object checks what pods of the old revision would read of one object of the new release.
func (t *transition) object(u workload.Consumption) {
	if s, is := t.before.Settled[u.Object]; is {
		t.outcome(s.Outcome, s.Why)
		return
	}
	was := t.before.Set.Configs[u.Object]
	if was == nil {
		if u.Required {
			t.outcome(OutcomeUnknown, objectText(u.Object)+" is not among what was given")
		}
		return
	}
	config := t.After.Set.Configs[u.Object]
	if t.keeps(was) {
		t.outcome(OutcomeNever, "in mode pin each revision reads its own copy")
		return
	}
	switch {
	case config == nil && t.before.Running:
		return // it stays as it is
	case config == nil:
		t.gone(u, was)
		return
	}
	if ignored(config) {
		return
	}
	changes := keys.Compare(t.settings[was], t.settings[config], keys.Options{Secret: u.Object.Kind == workload.Secret})
	r := reading{use: u, declared: t.declared}
	t.changes(r, t.lost(r, changes, was, config), was, config)
	if len(changes) > 0 && len(t.declared) == 0 && t.invalid == nil && (u.Env.All || u.Files.All) {
		t.outcome(OutcomeUnknown, "what is read of "+objectText(u.Object)+" is not declared")
	}
}

// keeps reports whether pods of the old revision read their own copy of an object. In a release in which mode pin begins those before have
// none yet, and where it ends nothing says that theirs stays.
func (t *transition) keeps(was *manifest.Config) bool {
	return !t.before.Running && t.owned(t.before, t.old, was) && t.owned(t.After, t.new, was)
}

// lost reports the keys that are gone and that pods of the old revision do not start without, whatever is declared of what their program
// reads. It gives the changes that say something else.
func (t *transition) lost(r reading, changes []keys.Change, was, config *manifest.Config) []keys.Change {
	for _, key := range r.use.RequiredKeys {
		_, had := was.Data[key]
		_, has := config.Data[key]
		inData := had && !has && slices.Contains(r.use.RequiredEnv, key)
		if !inData && (!was.Has(key) || config.Has(key)) {
			continue
		}
		whole := keys.Path{Key: key}
		if slices.ContainsFunc(changes, func(c keys.Change) bool { return c.Kind == keys.Renamed && c.From == whole }) {
			continue // it is reported with its new name
		}
		t.removed(r, whole, keys.Path{}, config, reads)
		changes = slices.DeleteFunc(changes, func(c keys.Change) bool { return c.Path.Key == key || c.Kind == keys.Renamed && c.From.Key == key })
	}
	return changes
}

// changes reports what is renamed and removed in an object.
func (t *transition) changes(r reading, changes []keys.Change, was, config *manifest.Config) {
	removed := map[certainty][]keys.Path{}
	var successors *keys.Successors
	for _, c := range changes {
		switch c.Kind {
		case keys.Renamed:
			t.renamed(r, c, config)
		case keys.Removed:
			if successors == nil {
				successors = keys.NewSuccessors(t.settings[was], t.settings[config])
			}
			if sure := t.sure(r, c.Path, keys.Path{}); sure != doesNot && !t.secondStep(r, c.Path, successors) {
				removed[sure] = append(removed[sure], c.Path)
			}
		case keys.Added, keys.Changed:
		}
	}
	for _, sure := range []certainty{reads, mayRead} {
		for _, p := range gathered(removed[sure], t.settings[config]) {
			t.removed(r, p, keys.Path{}, config, sure)
		}
	}
}

func (t *transition) gone(u workload.Consumption, was *manifest.Config) {
	if !u.Required || versioned.MatchString(u.Object.Name) {
		return
	}
	at := t.new.Position
	t.outcome(OutcomeBreaks, objectText(u.Object)+" is gone")
	t.add(Finding{
		Rule: ObjectRemoved, Object: objectText(u.Object), Workload: t.new.String(), Before: t.before.Name, At: at,
		Why: fmt.Sprintf("%s requires it in %s and %s does not have it: pods of the release before do not start any more.",
			t.new, t.before.Name, t.After.Name),
		excusable: []map[string]string{was.Annotations, t.new.Annotations},
	})
}

func (t *transition) renamed(r reading, c keys.Change, config *manifest.Config) {
	sure := t.sure(r, c.From, c.Path)
	if sure == doesNot {
		return
	}
	if c.Match.Confidence == keys.Low {
		t.removed(r, c.From, c.Path, config, sure)
		return
	}
	kind := config.Kind
	from, to := shown(c.From, kind), shown(c.Path, kind)
	key, toKey := from, to
	how := "the names have the same words"
	switch {
	case kind == workload.Secret:
	case c.Match.Value && c.Match.SameWords:
		how = "the names have the same words and the value is the same"
	case c.Match.Value:
		how = "the value is the same"
	}
	if from == to { // a Secret's settings are not named
		from, to = "a setting in "+from, "another in it"
	}
	t.breaks(sure, fmt.Sprintf("%s of %s is gone", from, objectText(config.Object)))
	t.add(Finding{
		Rule: RenameInOneStep, Object: objectText(config.Object), Workload: t.new.String(), Key: key, To: toKey, Before: t.before.Name,
		At: config.At(c.Path.Key), Confidence: c.Match.Confidence.String(),
		Why: fmt.Sprintf("%s became %s (%s), and pods of %s %s the old name.", from, to, how, t.before.Name, verb(sure)),
		Fix: fmt.Sprintf("Ship it in two steps: first a release that reads %s and %s, with both in the configuration, then one that drops %s.", from, to, from),

		excusable: []map[string]string{config.Annotations, t.new.Annotations},
	})
}

// sure says whether pods of the old revision read a setting that is gone; to is its new name, if it has one.
func (t *transition) sure(r reading, from, to keys.Path) certainty {
	sure := r.of(from)
	if t.invalid != nil && sure == mayRead {
		return t.invalid.judge(from, to)
	}
	return sure
}

// gathered replaces settings that are gone by the section, or the key, that is gone with all of them.
func gathered(gone []keys.Path, present keys.Settings) []keys.Path {
	if len(gone) == 0 {
		return nil
	}
	stays := map[keys.Path]bool{}
	for p := range present {
		for _, q := range p.Above() {
			stays[q] = true
		}
	}
	var out []keys.Path
	for _, p := range gone {
		for _, q := range p.Above() {
			if !stays[q] {
				p = q
				break
			}
		}
		out = append(out, p)
	}
	return slices.Compact(out)
}

// removed reports a setting that is gone; like is one that it may have become.
func (t *transition) removed(r reading, p, like keys.Path, config *manifest.Config, sure certainty) {
	kind := config.Kind
	name := shown(p, kind)
	why := fmt.Sprintf("%s is gone in %s, and pods of %s %s it.", name, t.After.Name, t.before.Name, verb(sure))
	confidence := certain
	switch {
	case sure == mayRead:
		confidence = possible
		why += " What they read is not declared."
	case slices.Contains(r.use.RequiredKeys, p.Key) && p.Setting == "":
		why += " They do not start without it."
	}
	if like != (keys.Path{}) {
		why += fmt.Sprintf(" It may have become %s.", shown(like, kind))
	}
	t.breaks(sure, fmt.Sprintf("%s of %s is gone", name, objectText(config.Object)))
	t.add(Finding{
		Rule: KeyRemovedWhileRead, Object: objectText(config.Object), Workload: t.new.String(), Key: name, Before: t.before.Name,
		At: config.At(p.Key), Confidence: confidence, Why: why, excusable: []map[string]string{config.Annotations, t.new.Annotations},
	})
}

// breaks records what a setting that is gone does to pods of the old revision.
func (t *transition) breaks(sure certainty, why string) {
	if sure == reads {
		t.outcome(OutcomeBreaks, why)
		return
	}
	t.outcome(OutcomeUnknown, why+", and what is read is not declared")
}

// secondStep reports whether a setting is gone in the second step of a rename: another of its meaning was there before, and
// the program does not insist on the old one. Of a past revision in a cluster it is not known: what it was released with is not
// what is applied.
func (t *transition) secondStep(r reading, p keys.Path, successors *keys.Successors) bool {
	if t.before.Past || r.names(p) || r.needs(p) || t.invalid != nil && t.invalid.judge(p, keys.Path{}) == reads {
		return false
	}
	to, is := successors.Of(p)
	return is && r.of(to) != doesNot
}

func verb(sure certainty) string {
	if sure == reads {
		return "read"
	}
	return "may read"
}

// effect checks whether the change reaches any pod.
func (t *transition) effect() {
	same := reflect.DeepEqual(t.old.Template, t.new.Template)
	mode := t.mode(t.After, t.new)
	for _, u := range t.After.consumed(t.new) {
		config, was := t.After.Set.Configs[u.Object], t.before.Set.Configs[u.Object]
		if config == nil || was == nil || config.Annotations[v1.AnnotationTreatAs] == v1.TreatAsLive || t.before.guards(u.Object) {
			continue
		}
		key := changedKey(u, was, config)
		if key == "" || mode == v1.ModeRoll || mode == v1.ModePin {
			continue
		}
		f := Finding{
			Object: t.new.String(), Before: t.before.Name, Key: Masked(key), At: config.At(key),
			excusable: []map[string]string{t.new.Annotations, config.Annotations},
		}
		sums, constant := t.checksums(u.Object)
		switch {
		case constant:
			f.Rule, f.At = HashConstant, t.new.Position
			f.Why = fmt.Sprintf("%s of %s changed, and %s on its pod template did not, so it says nothing of what pods read.", Masked(key), objectText(u.Object), sums)
			t.add(f)
		case same && mode == v1.ModeObserve && !t.reloads(u):
			f.Rule = UnversionedReference
			f.Why = fmt.Sprintf("%s of %s changed and the pod template is the same: running pods keep the old value until something else replaces them.",
				Masked(key), objectText(u.Object))
			t.add(f)
		}
		if same {
			t.stale(u, key, config)
		}
	}
}

// reloads reports whether the program takes all that it reads of an object from files that it reads again.
func (t *transition) reloads(u workload.Consumption) bool {
	return t.new.Annotation(v1.AnnotationReloads) == v1.True && u.Env.Empty() && u.Refreshed
}

// stale finds sub-path mounts that keep the old content.
func (t *transition) stale(u workload.Consumption, key string, config *manifest.Config) {
	for _, r := range t.new.References() {
		if r.Object != u.Object || r.SubPath == "" || r.Refreshed || !readsKey(r, key) {
			continue
		}
		t.add(Finding{
			Rule: SubPathNeverRefreshes, Object: t.new.String(), Key: Masked(key), Before: t.before.Name, At: config.At(key),
			Why: fmt.Sprintf("Container %s mounts %s of %s by sub-path at %s, and the pod template is the same: running containers keep the old content.",
				r.Container, Masked(key), objectText(u.Object), r.MountPath),
			excusable: []map[string]string{t.new.Annotations, config.Annotations},
		})
		return
	}
}

func readsKey(r workload.Reference, key string) bool {
	return r.Keys == nil || slices.Contains(r.Keys, key)
}

// changedKey is the first key that is read and changed; "" when there is none.
func changedKey(u workload.Consumption, was, config *manifest.Config) string {
	names := append(was.Keys(), config.Keys()...)
	slices.Sort(names)
	for _, k := range slices.Compact(names) {
		a, had := was.Data[k]
		b, has := config.Data[k]
		if (u.Env.Has(k) || u.Files.Has(k)) && (a != b || had != has) || u.Files.Has(k) && otherBinary(was, config, k) {
			return k
		}
	}
	return ""
}

// checksum matches names of annotations that people compute over their configuration.
var checksum = regexp.MustCompile(`(?i)(^|[/._-])(checksum|(config|configmap|secret)-?(hash|checksum|sha\d*|md5)|sha(1|256)?sum|hash)([/._-]|$)`)

// checksums names the checksums on the new template that are over an object, as far as their names tell, and reports whether there are
// any and none of all of them differs from the old ones.
func (t *transition) checksums(o workload.Object) (names string, constant bool) {
	var found []string
	for _, name := range slices.Sorted(maps.Keys(t.new.Template.Annotations)) {
		if !checksum.MatchString(name) || name == v1.AnnotationConfigHash {
			continue
		}
		if t.old.Template.Annotations[name] != t.new.Template.Annotations[name] {
			return "", false
		}
		if checksumOf(name, o) {
			found = append(found, name)
		}
	}
	return strings.Join(found, ", "), len(found) > 0
}

// plainWords of a checksum's name do not say which object of its kind it is over.
var plainWords = []string{"checksum", "hash", "sha", "sha1", "sha256", "sha256sum", "shasum", "sum", "md5", "config", "configmap", "cm", "configuration", "secret", "env", "data"}

// checksumOf reports whether a checksum of the name may be over an object: a word of its name says the kind, and others that are
// not in the object's name say that it is over another one.
func checksumOf(name string, o workload.Object) bool {
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		name = name[i+1:]
	}
	words := keys.Words(name)
	if secret := slices.Contains(words, "secret"); secret != (o.Kind == workload.Secret) && (secret || slices.ContainsFunc(words, saysConfigMap)) {
		return false
	}
	own := keys.Words(o.Name)
	words = slices.DeleteFunc(words, func(word string) bool { return slices.Contains(plainWords, word) })
	return len(words) == 0 || slices.ContainsFunc(words, func(word string) bool { return slices.Contains(own, word) })
}

func saysConfigMap(word string) bool {
	return slices.Contains([]string{"config", "configmap", "cm", "configuration"}, word)
}
