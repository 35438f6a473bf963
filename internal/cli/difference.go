package cli

import (
	"context"
	"regexp"
	"strconv"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/cluster/revisions"
	"tidemark.dev/tidemark/internal/credential"
	"tidemark.dev/tidemark/internal/revision"
	"tidemark.dev/tidemark/internal/workload"
)

// Words for a side that is no number.
const (
	sideApplied = "applied"
	sideCurrent = "current"
)

// side is one of the two that are compared.
type side struct {
	revision.Revision
	// applied says that it is the template of the revision with what is applied.
	applied  bool
	readings []revision.Reading
}

// sideOf finds what an argument names.
func sideOf(h *revisions.History, name string) (side, error) {
	current, has := revision.Current(h.Revisions)
	if !has {
		return side{}, usagef("%s has no template", h.Target)
	}
	switch name {
	case sideCurrent:
		return side{Revision: current, readings: current.Readings()}, nil
	case sideApplied:
		s := side{Revision: current, applied: true}
		for _, r := range current.Readings() {
			r.Pin = ""
			s.readings = append(s.readings, r)
		}
		return s, nil
	}
	n, err := strconv.ParseInt(name, 10, 64)
	if err != nil || n < 1 {
		return side{}, usagef("%q is no revision: write its number, %q or %q", name, sideCurrent, sideApplied)
	}
	r, err := revision.Find(h.Revisions, n)
	return side{Revision: r, readings: r.Readings()}, err
}

// text names the side for people.
func (s side) text() string {
	switch {
	case s.applied:
		return "what is applied"
	case s.Number == 0:
		return "the present template"
	case s.Current:
		return "revision " + revision.Number(s.Number) + " (current)"
	}
	return "revision " + revision.Number(s.Number)
}

func (s side) document() v1.DifferenceSide {
	if s.applied {
		return v1.DifferenceSide{Applied: true}
	}
	return v1.DifferenceSide{Revision: s.Number, Current: s.Current}
}

// place words where the side reads an object.
func (s side) place(o workload.Object) string {
	r, has := readingOf(s.readings, o)
	switch copied, is := r.Copy(); {
	case !has:
		return "not read"
	case is:
		return "copy " + copied.Name
	case r.Absent():
		return "absent"
	}
	return sideApplied
}

// difference is what two sides differ in, with the lines of values for people.
type difference struct {
	v1.Difference
	from, to side
	// lines of the keys whose values are compared line by line, by object and key.
	lines map[[2]string][]revision.Line
}

// reader reads what revisions read. What may not be read has a problem, and is no error.
type reader interface {
	Read(ctx context.Context, o workload.Object) (revisions.Held, error)
	ReadCopy(ctx context.Context, r revision.Reading) (revisions.Held, error)
}

// compare compares two sides. What may not be read becomes a note.
func compare(ctx context.Context, h *revisions.History, contents reader, from, to side) (difference, error) {
	d := difference{from: from, to: to, lines: map[[2]string][]revision.Line{}, Difference: v1.Difference{
		APIVersion: v1.APIVersion, Kind: v1.KindDifference, Workload: referenceTo(h), From: from.document(), To: to.document(),
		Images: imageDifferences(from, to), Template: fieldDifferences(from, to), Configuration: []v1.ObjectDifference{},
		Remarks: h.Remarks,
	}}
	for _, o := range revision.Merge(from.readings, to.readings) {
		if err := d.object(ctx, contents, o); err != nil {
			return difference{}, err
		}
	}
	d.Differs = len(d.Images)+len(d.Template)+len(d.Configuration) > 0
	return d, nil
}

func imageDifferences(from, to side) []v1.ImageDifference {
	out := []v1.ImageDifference{}
	before, after := map[string]string{}, revision.Images(to.Template)
	for _, i := range revision.Images(from.Template) {
		before[i.Container] = i.Image
	}
	for _, i := range after {
		if before[i.Container] != i.Image {
			out = append(out, v1.ImageDifference{Container: i.Container, From: before[i.Container], To: i.Image})
		}
		delete(before, i.Container)
	}
	for _, i := range revision.Images(from.Template) {
		if _, gone := before[i.Container]; gone {
			out = append(out, v1.ImageDifference{Container: i.Container, From: i.Image})
		}
	}
	return out
}

// fieldDifferences compares templates. A value that looks like a credential is withheld.
func fieldDifferences(from, to side) []v1.FieldDifference {
	out := []v1.FieldDifference{}
	for _, e := range revision.Edits(from.Template, to.Template) {
		f := v1.FieldDifference{Path: e.Path, From: e.From, To: e.To}
		for _, value := range []*string{e.From, e.To} {
			if value != nil && fieldLooksLikeCredential(e.Path, *value) {
				f.From, f.To, f.Note = nil, nil, noteCredential
			}
		}
		out = append(out, f)
	}
	return out
}

var (
	// naming matches paths to names of objects, which are no values.
	naming = regexp.MustCompile(`\.valueFrom\.|\.envFrom\[|\.(secret|configMap|serviceAccountToken|secretRef|configMapRef)\.|` +
		`\.(secretName|serviceAccountName|serviceAccount|automountServiceAccountToken)$|\.imagePullSecrets|\(order\)$`)
	// named matches paths to a value that has a name: a variable, a header, an annotation.
	named = regexp.MustCompile(`\[([^\]]+)\]\.value$|\.(?:annotations|labels)[.\[](.+?)\]?$`)
)

// fieldLooksLikeCredential judges a field of a template by its value, and by the name that the value has: the variable
// PASSWORD tells what its value is.
func fieldLooksLikeCredential(path, value string) bool {
	if naming.MatchString(path) {
		return false
	}
	name := ""
	if m := named.FindStringSubmatch(path); m != nil {
		name = firstOf(m[1:]...)
	}
	return credential.Like(name, value)
}

// object compares what the sides read of one object.
func (d *difference) object(ctx context.Context, contents reader, o workload.Object) error {
	before, had := readingOf(d.from.readings, o)
	after, has := readingOf(d.to.readings, o)
	if had && has && before.Pin == after.Pin {
		return nil
	}
	out := v1.ObjectDifference{Object: o.String(), From: d.from.place(o), To: d.to.place(o), Keys: []v1.KeyDifference{}}
	if !had || !has {
		d.Configuration = append(d.Configuration, out)
		return nil
	}
	a, err := held(ctx, contents, before)
	if err != nil {
		return err
	}
	b, err := held(ctx, contents, after)
	if err != nil {
		return err
	}
	if problem := firstOf(a.Problem, b.Problem); problem != "" {
		out.Note = "not compared: " + problem
		d.Configuration = append(d.Configuration, out)
		return nil
	}
	for _, k := range revision.Keys(a.Content, b.Content) {
		out.Keys = append(out.Keys, d.key(o, k, before.Reads(k.Key) || after.Reads(k.Key)))
	}
	if missing(a, before) || missing(b, after) {
		out.Note = "it does not exist"
	}
	if len(out.Keys) > 0 || a.Present != b.Present {
		d.Configuration = append(d.Configuration, out)
	}
	return nil
}

// missing reports whether an object that is read as it is applied is not there. Of a copy that would be a problem.
func missing(h revisions.Held, r revision.Reading) bool { return !h.Present && !r.Absent() }

// held reads what a reading reads: the copy, or what is applied.
func held(ctx context.Context, contents reader, r revision.Reading) (revisions.Held, error) {
	if _, copied := r.Copy(); copied {
		return contents.ReadCopy(ctx, r)
	}
	if r.Absent() {
		return revisions.Held{}, nil
	}
	return contents.Read(ctx, r.Object)
}

// key words what became of a key: of a Secret nothing but that.
func (d *difference) key(o workload.Object, k revision.KeyChange, read bool) v1.KeyDifference {
	out := v1.KeyDifference{Key: k.Key, Change: string(k.Change), Read: read}
	if o.Kind == workload.Secret {
		return out
	}
	from, noteFrom := maskedValue(k.Key, string(k.From))
	to, noteTo := maskedValue(k.Key, string(k.To))
	// What is withheld on one side is on the other: a value that was a credential tells of the one that follows.
	for _, note := range []string{noteNotText, noteCredential} {
		if noteFrom == note || noteTo == note {
			out.Note = note
			return out
		}
	}
	out.Note = firstOf(noteFrom, noteTo)
	if k.From != nil {
		out.From = &from
	}
	if k.To != nil {
		out.To = &to
	}
	if isLong(from) || isLong(to) {
		lines := revision.Lines(string(k.From), string(k.To))
		for i := range lines {
			lines[i].Text = maskLine(lines[i].Text)
		}
		d.lines[[2]string{o.String(), k.Key}] = lines
	}
	return out
}

func firstOf(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}
