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

// MailOptions are the keys of a mail channel.
type MailOptions struct {
	Host         string
	Port         int // 0 = 587; 465 speaks TLS from the first byte
	User         string
	Password     string // a secret
	From         string
	To           []string
	AllowPrivate bool
	Now          func() time.Time // time.Now when nil
}

// Mail sends by SMTP, one message to all receivers.
type Mail struct {
	o     MailOptions
	from  *mail.Address
	to    []*mail.Address
	guard *guard
	tls   *tls.Config

	mu   sync.Mutex
	done map[string]map[string]bool // of messages that some receivers still wait for: who has it (true), who never will (false)
}

const (
	mailTimeout = 30 * time.Second // in all: servers make strangers wait
	mailAnswers = 64 << 10         // bytes that a server may say
	mostReplays = 200              // messages of which we remember who has them
)

// NewMail checks the options.
func NewMail(o MailOptions) (*Mail, error) {
	if o.Port == 0 {
		o.Port = 587
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	m := &Mail{o: o, guard: newGuard(o.AllowPrivate, false), tls: &tls.Config{ServerName: o.Host, MinVersion: tls.VersionTLS12}, done: map[string]map[string]bool{}}
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

// address reads a mail address; those beyond ASCII need an extension that not every server on the
// way has.
func address(s string) (*mail.Address, error) {
	a, err := mail.ParseAddress(s)
	if err != nil || strings.ContainsFunc(a.Address, func(r rune) bool { return r <= ' ' || r > '~' || r == '<' || r == '>' }) {
		return nil, fmt.Errorf("%q is not a mail address", line(s, 100))
	}
	return a, nil
}

// Channel is how a mail box wants to be told.
func (m *Mail) Channel() Channel {
	return Channel{Sender: m, Together: true, Every: 5 * time.Second, Burst: 1}
}

// Send sends a message to all receivers that do not have it. Answers of 4xx are tried again, of 5xx
// not; a receiver that is refused for good does not keep it from the others.
func (m *Mail) Send(ctx context.Context, msg Message) error {
	ctx, cancel := context.WithTimeout(ctx, mailTimeout)
	defer cancel()
	to := m.missing(msg.ID)
	s, err := m.dial(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	now, never, err := s.deliver(m.o, m.from.Address, to, func() ([]byte, error) { return mailMessage(&msg, m.from, m.to, m.o.Now()) })
	if err != nil {
		return err
	}
	waiting, refusals := m.remember(msg.ID, now, never)
	switch {
	case waiting > 0:
		return fmt.Errorf("%d of %d receivers cannot have it for now", waiting, len(m.to))
	case refusals == len(m.to):
		return refused("the mail server refuses all receivers")
	case refusals > 0:
		return &PartlyError{Text: fmt.Sprintf("the mail server refuses %d of %d receivers", refusals, len(m.to))}
	}
	return nil
}

// dial connects, and encrypts where that has to be from the first byte.
func (m *Mail) dial(ctx context.Context) (*smtpSession, error) {
	c, err := m.guard.dial(ctx, "tcp", net.JoinHostPort(m.o.Host, strconv.Itoa(m.o.Port)))
	if err != nil {
		return nil, explain(err)
	}
	open := m.private(c)
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

// private says whether the other end is one that allow_private admits: there mail may go without
// TLS.
func (m *Mail) private(c net.Conn) bool {
	a, err := netip.ParseAddrPort(c.RemoteAddr().String())
	return err == nil && m.o.AllowPrivate && isPrivate(kindOf(a.Addr().Unmap()))
}

// missing returns the receivers of whom it is not known that they have a message, or never will.
func (m *Mail) missing(id string) []string {
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

// remember notes who has a message and who never will, until that is known of all, and returns how
// many still wait and how many never will. What is noted is lost when dlo ends: then some get a
// message twice, under the same Message-ID.
func (m *Mail) remember(id string, now, never []string) (waiting, refusals int) {
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
	for _, t := range now {
		known[t] = true
	}
	for _, t := range never {
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
