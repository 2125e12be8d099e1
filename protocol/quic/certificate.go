package quic

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"net"
	"time"
)

const (
	// Browsers accept a pinned certificate only if its whole validity, back-dated
	// start included, is at most 14 days.
	certificateValidity = 13 * 24 * time.Hour
	// certificateBackdate forgives clocks that are behind ours.
	certificateBackdate = time.Hour
)

// ErrCertificate is wrapped by the error of a dial whose server showed another
// certificate than the pinned one.
var ErrCertificate = errors.New("server certificate is not the pinned one")

// DevelopmentCertificate makes a self-signed ECDSA P-256 certificate for
// localhost, 127.0.0.1 and ::1, valid for 13 days in all from an hour before
// now, and returns it with the SHA-256 of its DER form, which is what browsers
// and Dial pin.
func DevelopmentCertificate(now time.Time) (tls.Certificate, [32]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, [32]byte{}, fmt.Errorf("certificate key: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return tls.Certificate{}, [32]byte{}, fmt.Errorf("certificate serial: %w", err)
	}
	start := now.Add(-certificateBackdate)
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: "localhost"},
		NotBefore:    start,
		NotAfter:     start.Add(certificateValidity),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:     []string{"localhost"},
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, [32]byte{}, fmt.Errorf("certificate: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, sha256.Sum256(der), nil
}

// pinned returns a client's TLS configuration that trusts one certificate by
// its hash, as browsers do with serverCertificateHashes, while it is valid.
func pinned(base *tls.Config, hash [32]byte, now func() time.Time) *tls.Config {
	c := base.Clone()
	c.InsecureSkipVerify = true // replaced by the check below, which is stricter
	c.VerifyConnection = func(state tls.ConnectionState) error {
		leaf := state.PeerCertificates[0]
		if sha256.Sum256(leaf.Raw) != hash {
			return ErrCertificate
		}
		if t := now(); t.Before(leaf.NotBefore) || t.After(leaf.NotAfter) {
			return fmt.Errorf("%w any more: valid from %v to %v", ErrCertificate,
				leaf.NotBefore, leaf.NotAfter)
		}
		return nil
	}
	return c
}
