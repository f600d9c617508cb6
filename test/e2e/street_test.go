package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/live/rackspace"
)

// A street leads from the addresses of a cloud to a server of the test, as a company's
// intercepting proxy does: Spotter connects to the public names over TLS, and trusts the
// company's certificate.
type street struct {
	proxy string // its URL
	trust string // a file with the certificate
}

// openStreet leads to h from all addresses of Rackspace, and from no other.
func openStreet(t *testing.T, h http.Handler) *street {
	t.Helper()
	c := rackspace.DefaultConfig()
	var hosts []string
	for _, address := range []string{c.Endpoint, c.LoginEndpoint, c.PricesURL} {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		hosts = append(hosts, u.Hostname())
	}
	cloud := httptest.NewUnstartedServer(h)
	cloud.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	certificate, file := certify(t, hosts)
	cloud.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
	cloud.StartTLS()
	serve(t, cloud)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil || r.Method != http.MethodConnect || !slices.Contains(hosts, host) {
			t.Errorf("somebody asks for %s %s, where nothing is", r.Method, r.Host)
			http.Error(w, "not here", http.StatusForbidden)
			return
		}
		tunnel(w, cloud.Listener.Addr().String())
	}))
	serve(t, proxy)
	return &street{proxy: proxy.URL, trust: file}
}

// tunnel joins who asks with an address, until one of both has enough.
func tunnel(w http.ResponseWriter, to string) {
	there, err := net.Dial("tcp", to)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer there.Close()
	here, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer here.Close()
	if _, err := io.WriteString(here, "HTTP/1.1 200 Connection Established\r\n\r\n"); err != nil {
		return
	}
	end := make(chan struct{}, 2)
	for _, way := range [][2]net.Conn{{here, there}, {there, here}} {
		go func() {
			_, _ = io.Copy(way[0], way[1])
			end <- struct{}{}
		}()
	}
	<-end
}

// certify makes a certificate for hosts, and a file that makes it trusted.
func certify(t *testing.T, hosts []string) (tls.Certificate, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	about := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "a company"}, DNSNames: hosts, IsCA: true, BasicConstraintsValid: true,
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	text, err := x509.CreateCertificate(rand.Reader, about, about, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "trust.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: text}), 0o600); err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{text}, PrivateKey: key}, file
}
