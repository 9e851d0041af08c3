package rabbitmq

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
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/testenv"
	amqp "github.com/rabbitmq/amqp091-go"
)

// TestAnInboxOverTLS reads a letter with a header larger than a frame from a broker behind TLS that
// requires a client certificate. The TLS options in a URL work as they do for the client.
func TestAnInboxOverTLS(t *testing.T) {
	t.Parallel()
	node := testenv.Broker(t)
	vhost, plain := node.VHost(t)
	p := newRawPublisher(t, plain)
	p.declare(t, "inbox", amqp.Table{"x-queue-type": "classic"})
	p.declare(t, "work", dying("inbox"))
	p.publish(t, "work", headers("x", "S"+longString(strings.Repeat("e", 130_900))), "last")

	cert, certFile, keyFile := certificateOf(t, "broker.test")
	roots := x509.NewCertPool()
	roots.AddCert(cert.Leaf)
	relay := tlsRelay(t, node.AMQPAddr(), &tls.Config{Certificates: []tls.Certificate{cert}, ClientCAs: roots, ClientAuth: tls.RequireAndVerifyClientCert})
	over := func(values url.Values) string {
		return "amqps" + strings.TrimPrefix(node.AMQPURLVia(relay, vhost), "amqp") + "?" + values.Encode()
	}
	ours := url.Values{"cacertfile": {certFile}, "certfile": {certFile}, "keyfile": {keyFile}, "server_name_indication": {"broker.test"}, "heartbeat": {"5"}}
	inbox := readingInbox(t, over(ours), Limits{Letters: 16, Bytes: 1 << 20, Linger: time.Millisecond})
	if got := inbox.conn.Config.Heartbeat; got != 5*time.Second {
		t.Errorf("a heartbeat of %s", got)
	}
	letters, _ := takeAll(t, inbox, "last")
	if text, _ := letters[0].Properties.Headers["x"].(string); len(text) != 130_900 {
		t.Errorf("a header of %d bytes", len(text))
	}
	for name, c := range map[string]struct {
		without, want string
	}{
		"of an authority that nobody knows": {"cacertfile", "unknown authority"},
		"of another name":                   {"server_name_indication", "127.0.0.1"},
		"and none of the client":            {"certfile", ""}, // TLS 1.3 reports this after the handshake, without an address
	} {
		values := url.Values{}
		for k, v := range ours {
			if k != c.without {
				values[k] = v
			}
		}
		link, err := Connect(Broker{Name: "main", URL: over(values), InFlight: 1}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := link.dialReading(t.Context(), "test"); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("a certificate %s: %v", name, err)
		}
	}
}

// certificateOf creates a self-signed certificate.
func certificateOf(t *testing.T, host string) (cert tls.Certificate, certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: host}, DNSNames: []string{host}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, kind string, content []byte) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	certFile, keyFile = write("cert.pem", "CERTIFICATE", der), write("key.pem", "PRIVATE KEY", private)
	if cert, err = tls.LoadX509KeyPair(certFile, keyFile); err != nil {
		t.Fatal(err)
	}
	return cert, certFile, keyFile
}

// tlsRelay forwards what arrives over TLS to target.
func tlsRelay(t *testing.T, target string, config *tls.Config) (addr string) {
	t.Helper()
	l, err := tls.Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", target)
			if err != nil {
				client.Close()
				return
			}
			go func() {
				io.Copy(server, client)
				server.Close()
			}()
			go func() {
				io.Copy(client, server)
				client.Close()
			}()
		}
	}()
	return l.Addr().String()
}
