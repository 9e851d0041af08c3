package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	amqp "github.com/rabbitmq/amqp091-go"
)

// These are the ports at which RabbitMQ has its management API unless its configuration says
// otherwise, without and with TLS.
const (
	usualPort    = "15672"
	usualPortTLS = "15671"
)

// FindManagement looks once for the management API of a broker for which none is configured. It
// looks only at the host of AMQP, at the usual port, with TLS if AMQP has TLS, and with the account
// of AMQP. If the API answers and belongs to the same broker, dlo uses it from then on as if it
// were configured. FindManagement returns its address, without user and password. The error says
// why it was not found.
func (l *Link) FindManagement(ctx context.Context) (address string, err error) {
	raw, err := usualManagement(l.url())
	if err != nil {
		return "", err
	}
	management, looks, err := managementOf(raw, l.broker.PasswordFile)
	if err != nil {
		return "", err
	}
	management.stayAtHost()
	looks.stayAtHost()
	if err := l.isManagementHere(ctx, management); err != nil {
		return "", fmt.Errorf("no management API was found at %s: %w", management.base, err)
	}
	l.management.Store(management)
	l.looks.Store(looks)
	l.updateStatus(func(s *deadletter.BrokerStatus) { s.Managed, s.ManagementFound = true, management.base })
	select {
	case l.lookNow <- struct{}{}:
	default:
	}
	return management.base, nil
}

// usualManagement returns the usual URL of the management API of a broker, from its AMQP URL.
func usualManagement(raw string) (string, error) {
	uri, err := amqp.ParseURI(raw)
	if err != nil {
		return "", withoutURL(err)
	}
	u := url.URL{Scheme: "http", Host: net.JoinHostPort(uri.Host, usualPort)}
	u.User = url.UserPassword(uri.Username, uri.Password)
	for _, mechanism := range uri.AuthMechanism {
		if strings.EqualFold(mechanism, "EXTERNAL") {
			return "", errors.New("no management API was looked for, because dlo logs in to AMQP without a password")
		}
	}
	if uri.Scheme == "amqps" {
		u.Scheme, u.Host = "https", net.JoinHostPort(uri.Host, usualPortTLS)
		q := url.Values{}
		for name, value := range map[string]string{
			caParameter: uri.CACertFile, certParameter: uri.CertFile, keyParameter: uri.KeyFile,
			nameParameter: uri.ServerName,
		} {
			if value != "" {
				q.Set(name, value)
			}
		}
		u.RawQuery = q.Encode()
	}
	return u.String(), nil
}

// stayAtHost keeps the client from sending the password anywhere else: to a proxy, or to where an
// answer redirects.
func (m *Management) stayAtHost() {
	transport, ok := m.client.Transport.(*http.Transport)
	if !ok {
		transport = http.DefaultTransport.(*http.Transport).Clone()
	}
	transport.Proxy = nil
	m.client.Transport = transport
	m.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
}

// isManagementHere checks that the management API of the broker of this link answers. It sends the
// password only to something that asks for one in the way of RabbitMQ (seen on 3.10.8).
func (l *Link) isManagementHere(ctx context.Context, m *Management) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, m.base+"/api/overview", nil)
	if err != nil {
		return err
	}
	answer, err := m.client.Do(r)
	if err != nil {
		return withoutURL(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusUnauthorized ||
		!strings.Contains(answer.Header.Get("WWW-Authenticate"), "RabbitMQ") {
		return errors.New("something else answers there")
	}
	var overview struct {
		Cluster string `json:"cluster_name"`
	}
	if err := m.get(ctx, "/api/overview", &overview); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if overview.Cluster == "" || overview.Cluster != l.cluster {
		return errors.New("it belongs to another broker")
	}
	return nil
}
