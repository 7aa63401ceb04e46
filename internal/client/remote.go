package client

import (
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/musterdl/muster/internal/access"
)

// Remote is a server elsewhere, and how it is known that it is that server.
type Remote struct {
	Address string `json:"server"` // host:port, or http://host:port on this machine
	Token   string `json:"token"`
	// CA is a file of certificates, one of which vouches for the server's; Fingerprint
	// is that of the server's own. Without either the machine's authorities vouch.
	CA          string `json:"ca,omitempty"`
	Fingerprint string `json:"fingerprint,omitempty"`
}

// NewRemote returns a client of a server elsewhere; nothing is dialled yet. Where r is
// mistaken every call says so.
//
// An Address of http://HOST:PORT is a server on this machine, such as the end of a
// kubectl port-forward, which is not encrypted and asks for no token.
func NewRemote(r Remote) *Client {
	if address, plain := strings.CutPrefix(r.Address, "http://"); plain {
		return newLoopback(address)
	}
	c := &Client{base: "https://" + r.Address, server: r.Address, token: r.Token}
	config, err := r.tls()
	if err != nil {
		c.broken = err
	}
	c.http.Transport = &http.Transport{MaxIdleConnsPerHost: 64, TLSClientConfig: config, TLSHandshakeTimeout: 10 * time.Second,
		DialContext: (&net.Dialer{Timeout: 10 * time.Second}).DialContext}
	c.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse } // a token goes nowhere else
	return c
}

// newLoopback returns a client of a server on this machine.
func newLoopback(address string) *Client {
	c := &Client{base: "http://" + address, server: address}
	host, _, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err != nil || host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		c.broken = fmt.Errorf("server http://%s: what is not encrypted stays on this machine: expected http://127.0.0.1:PORT or http://localhost:PORT", address)
	}
	c.http.Transport = &http.Transport{MaxIdleConnsPerHost: 64, DialContext: (&net.Dialer{Timeout: 10 * time.Second}).DialContext}
	c.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return c
}

// Broken returns a client whose every call returns an error, for who finds out too
// late to say so.
func Broken(err error) *Client { return &Client{broken: err} }

func (r *Remote) tls() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS13}
	if _, _, err := net.SplitHostPort(r.Address); err != nil {
		return nil, fmt.Errorf("server %q: expected HOST:PORT", r.Address)
	}
	switch {
	case r.Token == "":
		return nil, fmt.Errorf("no token for %s: muster login %s, or set MUSTER_TOKEN", r.Address, r.Address)
	case r.CA != "" && r.Fingerprint != "":
		return nil, errors.New("a CA and a fingerprint: expected one of them")
	case r.CA != "":
		data, err := os.ReadFile(r.CA)
		if err != nil {
			return nil, fmt.Errorf("reading the CA: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(data) {
			return nil, fmt.Errorf("%s: expected certificates in PEM, found none", r.CA)
		}
	case r.Fingerprint != "":
		want, err := hex.DecodeString(strings.ReplaceAll(r.Fingerprint, ":", ""))
		if err != nil || len(want) != 32 {
			return nil, fmt.Errorf("fingerprint %q: expected the 64 hexadecimal digits that muster up printed", r.Fingerprint)
		}
		// The certificate itself is known, so nobody needs to vouch for it.
		config.InsecureSkipVerify = true
		config.VerifyConnection = func(s tls.ConnectionState) error {
			got := access.Fingerprint(s.PeerCertificates[0].Raw)
			if subtle.ConstantTimeCompare([]byte(got), []byte(hex.EncodeToString(want))) != 1 {
				return fmt.Errorf("%s shows another certificate than the one known, with fingerprint %s: ask its operator before you go on", r.Address, got)
			}
			return nil
		}
	}
	return config, nil
}
