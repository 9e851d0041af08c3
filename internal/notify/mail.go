package notify

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/mail"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"
)

// MailOptions contains the settings of a mail channel.
type MailOptions struct {
	Host         string
	Port         int // 0 = 587; on port 465, the connection is encrypted from the first byte
	User         string
	Password     string // a secret
	From         string
	To           []string
	AllowPrivate bool
	Now          func() time.Time // clock; nil = time.Now
}

// Mail sends mails by SMTP. A message is one mail to all receivers.
type Mail struct {
	o     MailOptions
	from  *mail.Address
	to    []*mail.Address
	guard *guard
	tls   *tls.Config

	mu sync.Mutex
	// receivers of each message that was not yet delivered to or rejected for all of them; true =
	// has the message, false = never gets it
	done map[string]map[string]bool
}

const (
	mailTimeout = 30 * time.Second // maximum duration of one mail; long, because servers delay unknown clients
	mailAnswers = 64 << 10         // maximum number of bytes that are read from a server
	mostReplays = 200              // maximum number of messages whose receivers are remembered
)

// NewMail checks the options and returns a Mail.
func NewMail(o MailOptions) (*Mail, error) {
	if o.Port == 0 {
		o.Port = 587
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	m := &Mail{
		o:     o,
		guard: newGuard(o.AllowPrivate, false),
		tls:   &tls.Config{ServerName: o.Host, MinVersion: tls.VersionTLS12},
		done:  map[string]map[string]bool{},
	}
	if o.Host == "" || strings.ContainsFunc(o.Host, func(r rune) bool { return r <= ' ' || r == '/' || r > '~' }) {
		return nil, errors.New("the host is missing or not valid")
	}
	if o.Port < 1 || o.Port > 65535 {
		return nil, errors.New("the port is missing or not valid")
	}
	if o.Password != "" && o.User == "" {
		return nil, errors.New("there is a password and no user")
	}
	var err error
	if m.from, err = address(o.From); err != nil {
		return nil, fmt.Errorf("from: %w", err)
	}
	if m.from.Name == "" {
		m.from.Name = "Dead Letter Office"
	}
	for _, t := range o.To {
		a, err := address(t)
		if err != nil {
			return nil, fmt.Errorf("to: %w", err)
		}
		m.to = append(m.to, a)
	}
	if len(m.to) == 0 {
		return nil, errors.New("there are no receivers")
	}
	return m, nil
}

// address parses a mail address. It rejects non-ASCII characters, because such an address needs an
// extension of SMTP that not every server on the way supports.
func address(s string) (*mail.Address, error) {
	a, err := mail.ParseAddress(s)
	if err != nil || strings.ContainsFunc(
		a.Address, func(r rune) bool { return r <= ' ' || r > '~' || r == '<' || r == '>' },
	) {
		return nil, fmt.Errorf("%q is not a mail address", line(s, 100))
	}
	return a, nil
}

// Channel returns the settings of a mail channel.
func (m *Mail) Channel() Channel {
	return Channel{Sender: m, Together: true, Every: 5 * time.Second, Burst: 1}
}

// Send sends a message as a mail to all receivers who do not have it yet. If the mail server
// replies with 4xx, the message is sent again. If it replies with 5xx, the message is not sent
// again. If one receiver is rejected permanently, the others still get the message.
func (m *Mail) Send(ctx context.Context, msg Message) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, mailTimeout)
	defer cancel()
	to := m.missingReceivers(msg.ID)
	s, err := m.dial(ctx)
	if err != nil {
		return "", err
	}
	defer s.close()
	now, never, err := s.deliver(
		m.o, m.from.Address, to, func() ([]byte, error) { return mailMessage(&msg, m.from, m.to, m.o.Now()) },
	)
	if err != nil {
		return "", err
	}
	waiting, refusals := m.recordReceivers(msg.ID, now, never)
	switch {
	case waiting > 0:
		return "", fmt.Errorf(
			"the mail server does not accept the message for %d of %d receivers for now", waiting, len(m.to),
		)
	case refusals == len(m.to):
		return "", permanentError("the mail server refuses all receivers")
	case refusals > 0:
		return "", &PartlyError{Text: fmt.Sprintf("the mail server refuses %d of %d receivers", refusals, len(m.to))}
	}
	return "the mail server accepted it for " + countOf(len(m.to), "receiver"), nil
}

// dial connects to the mail server. Some ports require that the connection is encrypted from the
// first byte; dial does this on such a port.
func (m *Mail) dial(ctx context.Context) (*smtpSession, error) {
	c, err := m.guard.dial(ctx, "tcp", net.JoinHostPort(m.o.Host, strconv.Itoa(m.o.Port)))
	if err != nil {
		return nil, explain(err)
	}
	open := m.isPrivate(c)
	bound := newBounded(ctx, c, mailAnswers)
	if m.o.Port == 465 {
		t := tls.Client(bound, m.tls)
		if err := t.HandshakeContext(ctx); err != nil {
			bound.Close()
			return nil, explain(err)
		}
		return newSMTPSession(t, bound, m.tls, open)
	}
	return newSMTPSession(bound, bound, m.tls, open)
}

// isPrivate reports whether the address of the mail server is private, so that dlo connects to it
// only because allow_private is set. Mail may be sent to such a server without TLS.
func (m *Mail) isPrivate(c net.Conn) bool {
	a, err := netip.ParseAddrPort(c.RemoteAddr().String())
	return err == nil && m.o.AllowPrivate && isPrivate(kindOf(a.Addr().Unmap()))
}

// missingReceivers returns the receivers who may still get a message. They do not have it yet, and
// the server has not rejected them permanently.
func (m *Mail) missingReceivers(id string) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []string
	for _, t := range m.to {
		if _, known := m.done[id][t.Address]; !known {
			out = append(out, t.Address)
		}
	}
	return out
}

// recordReceivers records which receivers have a message and which never get it. The record is
// deleted when this is known for all receivers. The method returns how many receivers still wait
// and how many were rejected. The record is lost when dlo stops. In that case, some receivers get a
// message twice, with the same Message-ID.
func (m *Mail) recordReceivers(id string, delivered, rejected []string) (waiting, refusals int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.done[id]
	if known == nil {
		if len(m.done) >= mostReplays {
			clear(m.done)
		}
		known = map[string]bool{}
		m.done[id] = known
	}
	for _, t := range delivered {
		known[t] = true
	}
	for _, t := range rejected {
		known[t] = false
	}
	for _, t := range m.to {
		has, ok := known[t.Address]
		if !ok {
			waiting++
		} else if !has {
			refusals++
		}
	}
	if waiting == 0 || len(known) == 0 {
		delete(m.done, id)
	}
	return waiting, refusals
}
