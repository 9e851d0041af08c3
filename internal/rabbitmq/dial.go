package rabbitmq

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	amqp "github.com/rabbitmq/amqp091-go"
)

// url returns the broker's URL with the current password.
func (l *Link) url() string { return withPassword(l.broker.URL, l.broker.PasswordFile) }

// dial opens a connection that has its own name at the broker. It does not use the recovery of the
// AMQP client library. If that recovery replaced the connection, the ack of an old delivery would
// acknowledge a different letter (client_trap_test.go).
func (l *Link) dial(ctx context.Context, purpose string) (*amqp.Connection, error) {
	return l.dialWith(ctx, purpose, l.url(), func(ctx context.Context, addr string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	})
}

// dialReading opens a connection for a session that reads letters. It withholds the properties of
// the letters from the AMQP client library. The returned letterConn has these properties.
func (l *Link) dialReading(ctx context.Context, purpose string) (*amqp.Connection, *letterConn, error) {
	address := l.url()
	uri, err := amqp.ParseURI(address)
	if err != nil {
		return nil, nil, withoutURL(err)
	}
	var letters *letterConn
	// dlo sets up TLS itself, because the letterConn reads the frames above TLS
	plain := "amqp" + address[len(uri.Scheme):]
	conn, err := l.dialWith(ctx, purpose, plain, func(ctx context.Context, _ string) (net.Conn, error) {
		c, err := dialBelow(ctx, uri)
		if err != nil {
			return nil, err
		}
		letters = newLetterConn(c)
		return letters, nil
	})
	return conn, letters, err
}

// dialBelow opens the TCP or TLS connection for the AMQP frames, in the same way as the AMQP client
// library (amqp091-go v1.16.0, DialConfig).
func dialBelow(ctx context.Context, uri amqp.URI) (net.Conn, error) {
	addr := net.JoinHostPort(uri.Host, strconv.Itoa(uri.Port))
	if uri.Scheme != "amqps" {
		return (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	}
	config, err := tlsConfig(uri)
	if err != nil {
		return nil, err
	}
	return (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", addr)
}

// tlsConfig returns the TLS configuration that the parameters of an amqps URL describe. These are
// cacertfile, certfile with keyfile, and server_name_indication, which defaults to the host.
func tlsConfig(uri amqp.URI) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: uri.ServerName}
	if config.ServerName == "" {
		config.ServerName = uri.Host
	}
	if uri.CACertFile != "" {
		var err error
		if config.RootCAs, err = authorities(uri.CACertFile); err != nil {
			return nil, err
		}
	}
	if uri.CertFile == "" || uri.KeyFile == "" {
		return config, nil
	}
	certificate, err := tls.LoadX509KeyPair(uri.CertFile, uri.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("load client certificate: %w", err)
	}
	config.Certificates = []tls.Certificate{certificate}
	return config, nil
}

// dialWith opens an AMQP connection. The parameter "dialTCP" is a function that opens the TCP or
// TLS connection for it.
func (l *Link) dialWith(
	ctx context.Context, purpose, url string, dialTCP func(ctx context.Context, addr string) (net.Conn, error),
) (*amqp.Connection, error) {
	uri, err := amqp.ParseURI(url)
	if err != nil {
		return nil, withoutURL(err)
	}
	handshaken := func() bool { return false }
	properties := amqp.Table{"connection_name": "dlo " + purpose, "product": "Dead Letter Office"}
	conn, err := amqp.DialConfig(url, amqp.Config{
		Heartbeat:  heartbeat,
		Locale:     "en_US",
		Properties: properties,
		SASL:       logins(uri, properties),
		Dial: func(_, addr string) (net.Conn, error) {
			dialing, cancel := context.WithTimeout(ctx, dialTimeout)
			defer cancel()
			c, err := dialTCP(dialing, addr)
			if err != nil {
				return nil, err
			}
			handshaken = context.AfterFunc(ctx, func() { c.Close() })
			// the deadline of the handshake, which the client clears afterwards
			return c, c.SetDeadline(time.Now().Add(dialTimeout))
		},
	})
	handshaken()
	if err != nil && errors.Is(ctx.Err(), context.Canceled) {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, explain(withoutURL(err))
	}
	version, _ := conn.Properties["version"].(string)
	cluster, _ := conn.Properties["cluster_name"].(string)
	l.updateStatus(func(s *deadletter.BrokerStatus) { s.Version, l.cluster = version, cluster })
	go cutAfter(ctx, conn)
	return conn, nil
}
