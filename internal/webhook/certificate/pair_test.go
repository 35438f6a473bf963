package certificate

import (
	"bytes"
	"testing"
	"time"
)

var names = []string{"tidemark-webhook.tidemark-system.svc", "127.0.0.1"}

func made(t *testing.T, validity time.Duration, names ...string) Pair {
	t.Helper()
	p, err := makePair(names, validity)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestWhatIsHeldNext(t *testing.T) {
	const validity = 90 * 24 * time.Hour
	s := Settings{Names: names, Validity: validity}
	a, b, other := made(t, validity, names...), made(t, validity, names...), made(t, validity, "elsewhere.svc")
	now := time.Now()
	const two = validity * 2 / 3
	for name, tc := range map[string]struct {
		held    Held
		trusted time.Duration
		now     time.Time
		// want is what each of the held certificates is then.
		current, next, retired string
	}{
		"nothing is held: one is made":                     {held: Held{}, now: now, current: "new"},
		"it is young":                                      {held: Held{Current: a}, now: now.Add(two - time.Hour), current: "a"},
		"two thirds of its time are over":                  {held: Held{Current: a, Retired: b.Certificate}, now: now.Add(two + time.Hour), current: "a", next: "new", retired: "b"},
		"the next one is not trusted yet":                  {held: Held{Current: a, Next: b}, now: now.Add(two + time.Hour), current: "a", next: "b"},
		"the next one was trusted only now":                {held: Held{Current: a, Next: b}, trusted: time.Second, now: now, current: "a", next: "b"},
		"the next one is trusted for long enough":          {held: Held{Current: a, Next: b}, trusted: 2 * time.Minute, now: now, current: "b", retired: "a"},
		"the next one is for other names":                  {held: Held{Current: a, Next: other}, trusted: time.Hour, now: now.Add(two + time.Hour), current: "a", next: "new"},
		"it is for other names: another serves at once":    {held: Held{Current: other}, now: now, current: "new", retired: "other"},
		"it is over: the next one serves at once":          {held: Held{Current: other, Next: b}, now: now, current: "b", retired: "other"},
		"it is over: another serves at once":               {held: Held{Current: a}, now: now.Add(validity + time.Hour), current: "new", retired: "a"},
		"it begins later, by another clock":                {held: Held{Current: a}, now: now.Add(-2 * time.Hour), current: "new", retired: "a"},
		"it cannot be read":                                {held: Held{Current: Pair{a.Certificate, []byte("no key")}}, now: now, current: "new", retired: "a"},
		"its key is another's":                             {held: Held{Current: Pair{a.Certificate, b.Key}}, now: now, current: "new", retired: "a"},
		"it would be valid for longer than is asked for":   {held: Held{Current: made(t, 4*validity, names...)}, now: now, current: "same", next: "new"},
		"it was renewed and what retired is not forgotten": {held: Held{Current: b, Retired: a.Certificate}, now: now, current: "b", retired: "a"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := s.next(tc.held, tc.trusted, tc.now)
			if err != nil {
				t.Fatal(err)
			}
			name := func(certificate []byte) string {
				for of, known := range map[string][]byte{"a": a.Certificate, "b": b.Certificate, "other": other.Certificate} {
					if bytes.Equal(certificate, known) {
						return of
					}
				}
				switch {
				case len(certificate) == 0:
					return ""
				case bytes.Equal(certificate, tc.held.Current.Certificate):
					return "same"
				}
				return "new"
			}
			if c, n, r := name(got.Current.Certificate), name(got.Next.Certificate), name(got.Retired); c != tc.current || n != tc.next || r != tc.retired {
				t.Errorf("it serves %q, then %q, retired %q; want %q, %q, %q", c, n, r, tc.current, tc.next, tc.retired)
			}
		})
	}
}

func TestACertificateIsForEveryNameAndItsAuthorityIsInTheBundle(t *testing.T) {
	a, b := made(t, time.Hour, names...), made(t, time.Hour, names...)
	if err := a.serves(names, time.Now()); err != nil {
		t.Error(err)
	}
	if err := a.serves(append(names, "other.svc"), time.Now()); err == nil {
		t.Error("it serves for a name that it was not made for")
	}
	bundle := Held{Current: a, Next: b}.bundle()
	for what, p := range map[string]Pair{"current": a, "next": b} {
		if authority := authorityOf(p.Certificate); authority == nil || !bytes.Contains(bundle, authority) {
			t.Errorf("the bundle is without the authority of the %s certificate", what)
		}
	}
	if bytes.Contains(bundle, []byte("PRIVATE")) {
		t.Error("there is a key in the bundle")
	}
}
