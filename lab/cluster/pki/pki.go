// Package pki issues the certificates of one lab.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"
)

// lifetime is longer than any lab is kept.
const lifetime = 30 * 24 * time.Hour

// Authority signs the certificates of one lab.
type Authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	encoded     []byte
}

// Identity is whom a certificate names: a client by name and groups, a server by its addresses.
type Identity struct {
	Name   string
	Groups []string
	Hosts  []string
	IPs    []net.IP
}

// Pair is a certificate with its key, both PEM.
type Pair struct{ Certificate, Key []byte }

// NewAuthority returns an authority that nobody else trusts.
func NewAuthority(name string) (*Authority, error) {
	key, err := NewKey()
	if err != nil {
		return nil, err
	}
	template, err := newTemplate(Identity{Name: name})
	if err != nil {
		return nil, err
	}
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage |= x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("sign authority %s: %w", name, err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("parse authority %s: %w", name, err)
	}
	return &Authority{certificate: certificate, key: key, encoded: encode("CERTIFICATE", der)}, nil
}

// PEM returns the authority's own certificate.
func (a *Authority) PEM() []byte { return a.encoded }

// Issue signs a certificate that serves as client and as server.
func (a *Authority) Issue(of Identity) (Pair, error) {
	key, err := NewKey()
	if err != nil {
		return Pair{}, err
	}
	template, err := newTemplate(of)
	if err != nil {
		return Pair{}, err
	}
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return Pair{}, fmt.Errorf("sign certificate of %s: %w", of.Name, err)
	}
	private, err := PrivatePEM(key)
	if err != nil {
		return Pair{}, err
	}
	return Pair{Certificate: encode("CERTIFICATE", der), Key: private}, nil
}

// NewKey returns a fresh key.
func NewKey() (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate key: %w", err)
	}
	return key, nil
}

// PrivatePEM encodes a key.
func PrivatePEM(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode key: %w", err)
	}
	return encode("EC PRIVATE KEY", der), nil
}

// PublicPEM encodes the public half of a key.
func PublicPEM(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, fmt.Errorf("encode public key: %w", err)
	}
	return encode("PUBLIC KEY", der), nil
}

func newTemplate(of Identity) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("draw serial number: %w", err)
	}
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: of.Name, Organization: of.Groups},
		DNSNames:     of.Hosts,
		IPAddresses:  of.IPs,
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.Add(lifetime),
		KeyUsage:     x509.KeyUsageDigitalSignature,
	}, nil
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
