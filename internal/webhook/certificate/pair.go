// Package certificate keeps the certificate valid that a webhook serves with.
//
// The certificates are made by client-go. Each has an authority of its own, whose key is thrown away when the certificate is
// made: so nobody who reads the Secret can sign another one. What is done here is to keep them in a Secret that all replicas
// share, to have the API server trust the next one before it serves, and to say when.
package certificate

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"time"

	"k8s.io/client-go/util/cert"
)

// Pair is a certificate, followed by that of its authority, with its key, in PEM.
type Pair struct{ Certificate, Key []byte }

// early is how long before it is made a certificate is valid, so that clocks may differ.
const early = time.Hour

// makePair makes a certificate for the names, which may be addresses, that is valid from now on.
func makePair(names []string, validity time.Duration) (Pair, error) {
	options := cert.SelfSignedCertKeyOptions{Host: names[0], MaxAge: validity + early}
	for _, name := range names[1:] {
		if ip := net.ParseIP(name); ip != nil {
			options.AlternateIPs = append(options.AlternateIPs, ip)
		} else {
			options.AlternateDNS = append(options.AlternateDNS, name)
		}
	}
	chain, key, err := cert.GenerateSelfSignedCertKeyWithOptions(options)
	if err != nil {
		return Pair{}, fmt.Errorf("make certificate: %w", err)
	}
	return Pair{Certificate: chain, Key: key}, nil
}

// parse reads a pair. The leaf is parsed with it.
func (p Pair) parse() (*tls.Certificate, error) {
	if len(p.Certificate) == 0 || len(p.Key) == 0 {
		return nil, errors.New("there is no certificate")
	}
	c, err := tls.X509KeyPair(p.Certificate, p.Key)
	if err != nil {
		return nil, fmt.Errorf("read certificate: %w", err)
	}
	return &c, nil
}

// serves says why a pair cannot serve for the names at a time; nil when it can.
func (p Pair) serves(names []string, now time.Time) error {
	c, err := p.parse()
	if err != nil {
		return err
	}
	if authorityOf(p.Certificate) == nil {
		return errors.New("the certificate is without that of its authority")
	}
	if err := current(c.Leaf, now); err != nil {
		return err
	}
	for _, name := range names {
		if err := c.Leaf.VerifyHostname(name); err != nil {
			return fmt.Errorf("check certificate: %w", err)
		}
	}
	return nil
}

func current(c *x509.Certificate, now time.Time) error {
	if now.Before(c.NotBefore) || !now.Before(c.NotAfter) {
		return fmt.Errorf("the certificate is valid from %s to %s", c.NotBefore.UTC().Format(time.RFC3339), c.NotAfter.UTC().Format(time.RFC3339))
	}
	return nil
}

// authorityOf gives the certificate of the authority out of a chain, in PEM; nil where there is none.
func authorityOf(chain []byte) []byte {
	for len(chain) > 0 {
		var block *pem.Block
		if block, chain = pem.Decode(chain); block == nil {
			return nil
		}
		if c, err := x509.ParseCertificate(block.Bytes); err == nil && c.IsCA {
			return pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes})
		}
	}
	return nil
}

// Held is what the Secret holds.
type Held struct {
	// Current is the pair that serves.
	Current Pair
	// Next serves when it is trusted; empty while none is due.
	Next Pair
	// Retired is the certificate before Current: a replica may serve with it still, for a moment.
	Retired []byte
}

// bundle are the authorities to trust.
func (h Held) bundle() []byte {
	var authorities [][]byte
	for _, chain := range [][]byte{h.Retired, h.Current.Certificate, h.Next.Certificate} {
		if authority := authorityOf(chain); authority != nil {
			authorities = append(authorities, authority)
		}
	}
	return bytes.Join(authorities, nil)
}

// Settings say how certificates are to be.
type Settings struct {
	// Names that it is for: names of hosts, or addresses.
	Names []string
	// Validity is how long each is valid. It is renewed when two thirds of that are over.
	Validity time.Duration
}

// again is how long after a look it is looked again whether something is due, when what serves is valid for that long still. Somebody
// may have asked for a short validity before, and for a long one now: the end is approached by halves.
func (s Settings) again(left time.Duration) time.Duration {
	return max(min(s.Validity/60, 30*time.Second, left/2), 100*time.Millisecond)
}

// overlap is how long the next certificate is trusted before it serves: more than it takes until every API server knows of it. Where
// the one that serves ends sooner, it is as long as that would go on.
func (s Settings) overlap() time.Duration { return min(s.Validity/10, time.Minute) }

// next says what is to be held, from what is held, and for how long the API has been told to trust the next certificate. It is the
// same when nothing is due.
func (s Settings) next(h Held, trusted time.Duration, now time.Time) (Held, error) {
	waits := h.Next.serves(s.Names, now) == nil
	serves := h.Current.serves(s.Names, now) == nil
	switch {
	case waits && (!serves || trusted >= min(s.overlap(), ends(h.Current).Sub(now))):
		return Held{Current: h.Next, Retired: h.Current.Certificate}, nil
	case !serves:
		made, err := makePair(s.Names, s.Validity)
		return Held{Current: made, Retired: h.Current.Certificate}, err
	case waits || !s.due(h.Current, now):
		return h, nil
	}
	made, err := makePair(s.Names, s.Validity)
	h.Next = made
	return h, err
}

// due reports whether a pair is to be renewed: at two thirds of its time, or when it would be valid for longer than it should.
func (s Settings) due(p Pair, now time.Time) bool {
	left := ends(p).Sub(now)
	return left < s.Validity/3 || left > s.Validity+early
}

func ends(p Pair) time.Time {
	c, err := p.parse()
	if err != nil {
		return time.Time{}
	}
	return c.Leaf.NotAfter
}
