package rabbitmq

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
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

// TestAnInboxOverTLS uses a broker that requires TLS and a client certificate. It reads a letter
// whose header is larger than a frame. The TLS options in a URL must work as they do in the AMQP
// client library.
func TestAnInboxOverTLS(t *testing.T) {
	t.Parallel()
	node := testenv.Broker(t)
	vhost, plain := node.VHost(t)
	p := newRawPublisher(t, plain)
	p.declare(t, "inbox", amqp.Table{"x-queue-type": "classic"})
	p.declare(t, "work", dyingArguments("inbox"))
	p.publish(t, "work", headers("x", "S"+longString(strings.Repeat("e", 130_900))), "last")

	cert, certFile, keyFile := certificateOf(t, "broker.test")
	roots := x509.NewCertPool()
	roots.AddCert(cert.Leaf)
	relay := tlsRelay(t, node.AMQPAddr(), &tls.Config{
		Certificates: []tls.Certificate{cert},
		ClientCAs:    roots,
		ClientAuth:   tls.RequireAndVerifyClientCert,
	})
	over := func(values url.Values) string {
		return "amqps" + strings.TrimPrefix(node.AMQPURLVia(relay, vhost), "amqp") + "?" + values.Encode()
	}
	ours := url.Values{
		"cacertfile":             {certFile},
		"certfile":               {certFile},
		"keyfile":                {keyFile},
		"server_name_indication": {"broker.test"},
		"heartbeat":              {"5"},
	}
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
		// with TLS 1.3, the client reports this after the handshake, and without an address
		"and none of the client": {"certfile", ""},
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
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: host},
		DNSNames:              []string{host},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(time.Hour),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
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

// tlsRelay accepts TLS connections and forwards what arrives. The parameter "target" is the address
// to which it forwards.
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

// TestTheManagementAPIOverTLS queries a management API that requires TLS with a client certificate.
func TestTheManagementAPIOverTLS(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	node := testenv.Broker(t)
	cert, certFile, keyFile := certificateOf(t, "broker.test")
	roots := x509.NewCertPool()
	roots.AddCert(cert.Leaf)
	relay := tlsRelay(t, strings.TrimPrefix(node.ManagementURL(), "http://"), &tls.Config{
		Certificates: []tls.Certificate{cert},
		ClientCAs:    roots,
		ClientAuth:   tls.RequireAndVerifyClientCert,
	})
	ours := url.Values{
		"cacertfile":             {certFile},
		"certfile":               {certFile},
		"keyfile":                {keyFile},
		"server_name_indication": {"broker.test"},
	}
	m, err := newManagement("https://guest:guest@" + relay + "?" + ours.Encode())
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Version string `json:"rabbitmq_version"`
	}
	if err := m.get(t.Context(), "/api/overview", &answer); err != nil || answer.Version != node.Version() {
		t.Errorf("%+v %v", answer, err)
	}
	for _, without := range []string{"cacertfile", "server_name_indication", "certfile"} {
		values := url.Values{}
		for k, v := range ours {
			if k != without {
				values[k] = v
			}
		}
		m, err := newManagement("https://guest:guest@" + relay + "?" + values.Encode())
		if err == nil {
			err = m.get(t.Context(), "/api/overview", &answer)
		}
		if err == nil {
			t.Errorf("without %s, it answers", without)
		}
	}
	if _, err := newManagement(
		"https://guest:guest@" + relay + "?cacertfile=" + keyFile,
	); err == nil || !strings.Contains(err.Error(), "holds no certificate in PEM") {
		t.Error(err)
	}
}

// TestAPasswordIsReadAgain changes the password of a user and the file that holds it. The next
// connection and the next request use the new password.
func TestAPasswordIsReadAgain(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	node := testenv.Broker(t)
	vhost, _ := node.VHost(t)
	name, address := node.User(t, vhost, "management")
	node.Grant(t, vhost, name, ".*", ".*", ".*")
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	old, _ := u.User.Password()
	file := filepath.Join(t.TempDir(), "password")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(old)
	link, err := Connect(Broker{
		Name: "main", URL: address, PasswordFile: file, Management: node.ManagementURLOf(name + ":" + old),
		APIPassword: file, InFlight: 1,
	}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	use := func() error {
		conn, err := link.dial(t.Context(), "test")
		if err != nil {
			return err
		}
		_ = conn.Close()
		var list []any
		return link.management.Load().get(t.Context(), "/api/vhosts", &list)
	}
	if err := use(); err != nil {
		t.Fatal(err)
	}
	if err := node.API("PUT", "/api/users/"+url.PathEscape(name), map[string]any{
		"password": "p/w#?@ new", "tags": "management",
	}, nil); err != nil {
		t.Fatal(err)
	}
	if err := use(); err == nil {
		t.Error("the old password works")
	}
	write("p/w#?@ new")
	if err := use(); err != nil {
		t.Error(err)
	}
	if err := os.Remove(file); err != nil { // as happens while somebody replaces the file
		t.Fatal(err)
	}
	if err := link.management.Load().get(t.Context(), "/api/vhosts", &[]any{}); err != nil {
		t.Error(err)
	}
}

// TestTheCertificateIsTheUser connects to a broker that takes the name of the user from the client
// certificate (EXTERNAL, plugin rabbitmq_auth_mechanism_ssl).
func TestTheCertificateIsTheUser(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	authority, caFile, _ := certificateOf(t, "authority")
	certFile, keyFile := issuedBy(t, authority, "guest") // Erlang refuses a self-signed certificate of a peer
	files := map[string][]byte{}
	for name, path := range map[string]string{"ca.pem": caFile, "cert.pem": certFile, "key.pem": keyFile} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = text
	}
	port := testenv.FreePort(t)
	node := testenv.PrivateBrokerWith(t, testenv.Options{
		Plugins: []string{"rabbitmq_auth_mechanism_ssl"},
		Files:   files,
		Conf: []string{
			fmt.Sprintf("listeners.ssl.default = 127.0.0.1:%d", port), "ssl_options.cacertfile = %DIR%/ca.pem",
			"ssl_options.certfile = %DIR%/cert.pem", "ssl_options.keyfile = %DIR%/key.pem",
			"ssl_options.verify = verify_peer", "ssl_options.fail_if_no_peer_cert = true",
			"auth_mechanisms.1 = EXTERNAL",
			"auth_mechanisms.2 = PLAIN", "ssl_cert_login_from = common_name",
		},
	})
	values := url.Values{
		"cacertfile":             {caFile},
		"certfile":               {certFile},
		"keyfile":                {keyFile},
		"server_name_indication": {"guest"},
		"auth_mechanism":         {"EXTERNAL"},
	}
	link, err := Connect(Broker{
		Name: "main", URL: fmt.Sprintf("amqps://nobody:@127.0.0.1:%d/?%s", port, values.Encode()), InFlight: 1,
	}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := link.dial(t.Context(), "test")
	for until := time.Now().Add(time.Minute); err != nil && strings.Contains(err.Error(), "connection refused") &&
		time.Now().Before(until); time.Sleep(100 * time.Millisecond) {
		conn, err = link.dial(t.Context(), "test") // the node opens this listener last
	}
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	reading, _, err := link.dialReading(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	_ = reading.Close()
	if link.Status().Version != node.Version() {
		t.Errorf("%+v", link.Status())
	}
}

// issuedBy creates a certificate that the given authority has signed.
func issuedBy(t *testing.T, authority tls.Certificate, host string) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := x509.Certificate{
		SerialNumber: big.NewInt(2),
		Subject:      pkix.Name{CommonName: host},
		DNSNames:     []string{host},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(time.Hour),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, authority.Leaf, &key.PublicKey, authority.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, block := range map[string]*pem.Block{
		certFile: {Type: "CERTIFICATE", Bytes: der},
		keyFile:  {Type: "PRIVATE KEY", Bytes: private},
	} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certFile, keyFile
}
