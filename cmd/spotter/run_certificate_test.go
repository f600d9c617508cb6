package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/test/testenv"
)

// writeCertificate puts a new certificate and its key into dir, and returns it.
func writeCertificate(t *testing.T, dir string) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	about := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), DNSNames: []string{"spotter-metrics"},
		NotAfter: time.Now().Add(time.Hour)}
	cert, err := x509.CreateCertificate(rand.Reader, about, about, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{"tls.key": {Type: "PRIVATE KEY", Bytes: plain},
		"tls.crt": {Type: "CERTIFICATE", Bytes: cert}} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert
}

// TestMetricsCertificate serves metrics with the user's certificate, and with the next
// one as it is rotated. One that cannot be used is no reason to make another.
func TestMetricsCertificate(t *testing.T) {
	dir := t.TempDir()
	wrongCallIs(t, "metrics.certDir: "+dir, "run", "--config", configured(t, "metrics: {certDir: "+dir+"}"))
	want := writeCertificate(t, dir)
	wrongCallIs(t, "not served over TLS", "run", "--config", configured(t, "metrics: {secure: false, certDir: "+dir+"}"))
	if testing.Short() {
		t.Skip("starts an API server and a process")
	}
	s := newStage(t, shadowRules)
	r := s.start(t, "metrics: {secure: true, certDir: "+dir+"}")
	address := strings.TrimSuffix(strings.TrimPrefix(r.metric, "http://"), "/metrics")
	for _, what := range []string{"the certificate is served", "the next one is served"} {
		testenv.Eventually(t, what, func() error {
			c, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // which one it is, is compared
			if err != nil {
				return err
			}
			defer c.Close()
			if !bytes.Equal(c.ConnectionState().PeerCertificates[0].Raw, want) {
				return errors.New("another one is served")
			}
			return nil
		})
		want = writeCertificate(t, dir)
	}
}
