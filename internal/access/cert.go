package access

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// certLife is how long a certificate that is made here lasts. Who pins it by its
// fingerprint does not ask.
const certLife = 10 * 366 * 24 * time.Hour

// Certificate is the server's certificate out of two PEM files.
func Certificate(certFile, keyFile string) (tls.Certificate, error) {
	c, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return c, fmt.Errorf("reading the server's certificate: %w", err)
	}
	return c, nil
}

// OwnCertificate is the certificate kept in a directory, which vouches for itself. The
// first time it is made, for the given hosts besides this machine's name.
func OwnCertificate(dir string, now time.Time, hosts ...string) (tls.Certificate, error) {
	certFile, keyFile := filepath.Join(dir, "tls-cert.pem"), filepath.Join(dir, "tls-key.pem")
	if _, err := os.Stat(certFile); errors.Is(err, fs.ErrNotExist) {
		if err := makeCertificate(certFile, keyFile, now, hosts); err != nil {
			return tls.Certificate{}, fmt.Errorf("making a certificate: %w", err)
		}
	}
	return Certificate(certFile, keyFile)
}

func makeCertificate(certFile, keyFile string, now time.Time, hosts []string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return err
	}
	name, err := os.Hostname()
	if err != nil {
		return err
	}
	c := x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: "Muster on " + name}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(certLife),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true, IsCA: true, MaxPathLenZero: true}
	for _, host := range append([]string{name, "localhost", "127.0.0.1", "::1"}, hosts...) {
		if ip := net.ParseIP(host); ip == nil && host != "" {
			c.DNSNames = append(c.DNSNames, host)
		} else if ip != nil && !ip.IsUnspecified() {
			c.IPAddresses = append(c.IPAddresses, ip)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, &c, &c, &key.PublicKey, key)
	if err != nil {
		return err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	// The key first: a certificate that is there has one.
	if err := replace(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})); err != nil {
		return err
	}
	return replace(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// Fingerprint is what a client can pin a certificate by: the SHA-256 of all of it, in
// hexadecimal digits.
func Fingerprint(der []byte) string {
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:])
}
