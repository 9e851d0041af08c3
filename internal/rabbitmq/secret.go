package rabbitmq

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"

	amqp "github.com/rabbitmq/amqp091-go"
)

// secret is a password. If it is in a file, dlo reads the file before each use, so that a new
// password needs no restart. If the file cannot be read, dlo uses the password that it read last.
type secret struct {
	file string // "" = the password does not change

	mu   sync.Mutex
	text string
}

func (s *secret) read() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == "" {
		return s.text
	}
	if text, err := os.ReadFile(s.file); err == nil {
		s.text = strings.TrimRight(string(text), "\r\n")
	}
	return s.text
}

// withPassword returns an AMQP URL with the current password from a file. If the parameter "file"
// is "", the URL is unchanged.
func withPassword(raw, file string) string {
	u, err := url.Parse(raw)
	if file == "" || err != nil {
		return raw
	}
	before, _ := u.User.Password()
	u.User = url.UserPassword(u.User.Username(), (&secret{file: file, text: before}).read())
	return u.String()
}

// These are parameters of an AMQP URL (RabbitMQ URI query parameters). They name files for TLS, and
// the name that the broker's certificate must have. dlo accepts them in the URL of the management
// API as well.
const (
	caParameter   = "cacertfile"
	certParameter = "certfile"
	keyParameter  = "keyfile"
	nameParameter = "server_name_indication"
)

// managementTLS returns the TLS configuration that the parameters of a URL describe, and removes
// these parameters from the URL. It returns nil if there are none.
func managementTLS(u *url.URL) (*tls.Config, error) {
	q := u.Query()
	uri := amqp.URI{
		Host:       u.Hostname(),
		CACertFile: q.Get(caParameter),
		CertFile:   q.Get(certParameter),
		KeyFile:    q.Get(keyParameter),
		ServerName: q.Get(nameParameter),
	}
	given := false
	for _, name := range []string{caParameter, certParameter, keyParameter, nameParameter} {
		given = given || q.Has(name)
		q.Del(name)
	}
	u.RawQuery = q.Encode()
	if !given {
		return nil, nil
	}
	return tlsConfig(uri)
}

// authorities reads a file of CA certificates.
func authorities(file string) (*x509.CertPool, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read CA certificate: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("read CA certificate: %w", errors.New(file+" holds no certificate in PEM"))
	}
	return pool, nil
}
