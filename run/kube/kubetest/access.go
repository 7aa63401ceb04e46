package kubetest

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// User returns the access of a named user and groups, who has only the rights that role bindings give. Users prove
// themselves with a client certificate, so they can be made at any time.
func (c *Cluster) User(name string, groups ...string) *rest.Config {
	c.t.Helper()
	config, err := c.pki.user(c.url, name, groups...)
	if err != nil {
		c.t.Fatal(err)
	}
	return unlimited(config)
}

// ServiceAccount returns the access of a service account with a token, as a pod has it. The account and its
// namespace are made where they are absent.
func (c *Cluster) ServiceAccount(namespace, name string) *rest.Config {
	c.t.Helper()
	ctx := context.Background()
	c.Namespace(namespace)
	accounts := c.client.CoreV1().ServiceAccounts(namespace)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := accounts.Create(ctx, account, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		c.t.Fatalf("making service account %s/%s: %v", namespace, name, err)
	}
	hours := int64(24 * 3600)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &hours}}
	answer, err := accounts.CreateToken(ctx, name, request, metav1.CreateOptions{})
	if err != nil {
		c.t.Fatalf("asking for a token of %s/%s: %v", namespace, name, err)
	}
	return unlimited(&rest.Config{Host: c.url, BearerToken: answer.Status.Token, TLSClientConfig: rest.TLSClientConfig{CAData: c.pki.caPEM}})
}

// Namespace makes a namespace where it is absent.
func (c *Cluster) Namespace(name string) {
	c.t.Helper()
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	_, err := c.client.CoreV1().Namespaces().Create(context.Background(), object, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		c.t.Fatalf("making namespace %s: %v", name, err)
	}
}

// KubeconfigFor writes an access to a kubeconfig file, for a program, and returns its path.
func (c *Cluster) KubeconfigFor(config *rest.Config) string {
	c.t.Helper()
	path := filepath.Join(c.t.TempDir(), "kubeconfig")
	if err := writeKubeconfig(path, config); err != nil {
		c.t.Fatal(err)
	}
	return path
}

func writeKubeconfig(path string, config *rest.Config) error {
	const name = "kubetest"
	file := clientcmdapi.NewConfig()
	file.Clusters[name] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	file.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: config.BearerToken, ClientCertificateData: config.CertData,
		ClientKeyData: config.KeyData}
	file.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	file.CurrentContext = name
	if err := clientcmd.WriteToFile(*file, path); err != nil {
		return fmt.Errorf("writing the kubeconfig %s: %w", path, err)
	}
	return nil
}

// authority signs the certificates of one control plane.
type authority struct {
	dir                   string // also holds tls.crt and tls.key, the names webhook servers look for
	caFile                string
	serverCert, serverKey string
	accountKey            string
	caPEM                 []byte
	certificate           *x509.Certificate
	key                   *ecdsa.PrivateKey
}

func newAuthority(dir string) (*authority, error) {
	a := &authority{dir: dir, caFile: filepath.Join(dir, "ca.crt"), serverCert: filepath.Join(dir, "tls.crt"),
		serverKey: filepath.Join(dir, "tls.key"), accountKey: filepath.Join(dir, "sa.key")}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	var err error
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, err
	}
	self := template(pkix.Name{CommonName: "kubetest"})
	self.IsCA, self.BasicConstraintsValid = true, true
	self.KeyUsage |= x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, self, self, a.key.Public(), a.key)
	if err != nil {
		return nil, err
	}
	if a.certificate, err = x509.ParseCertificate(der); err != nil {
		return nil, err
	}
	a.caPEM = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	server := template(pkix.Name{CommonName: "localhost"})
	server.DNSNames, server.IPAddresses = []string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1)}
	cert, key, err := a.sign(server)
	if err != nil {
		return nil, err
	}
	_, accountKey, err := newKey()
	if err != nil {
		return nil, err
	}
	for path, text := range map[string][]byte{a.caFile: a.caPEM, a.serverCert: cert, a.serverKey: key, a.accountKey: accountKey} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			return nil, err
		}
	}
	return a, nil
}

func template(subject pkix.Name) *x509.Certificate {
	now := time.Now()
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 100))
	if err != nil {
		panic(err) // crypto/rand never fails on Linux
	}
	return &x509.Certificate{SerialNumber: serial, Subject: subject, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(48 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
}

func newKey() (crypto.Signer, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	return key, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}

// sign returns a certificate and its new key, as PEM.
func (a *authority) sign(request *x509.Certificate) (cert, key []byte, err error) {
	signer, key, err := newKey()
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, request, a.certificate, signer.Public(), a.key)
	if err != nil {
		return nil, nil, fmt.Errorf("signing a certificate for %s: %w", strings.TrimSpace(request.Subject.CommonName), err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), key, nil
}

// user returns the access of a user of the API server at url.
func (a *authority) user(url, name string, groups ...string) (*rest.Config, error) {
	cert, key, err := a.sign(template(pkix.Name{CommonName: name, Organization: groups}))
	if err != nil {
		return nil, err
	}
	return &rest.Config{Host: url, TLSClientConfig: rest.TLSClientConfig{CAData: a.caPEM, CertData: cert, KeyData: key}}, nil
}

func (a *authority) caBase64() string { return base64.StdEncoding.EncodeToString(a.caPEM) }
