package notify

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/smtp"
	"net/textproto"
	"strings"
	"time"
)

// smtpSession is a connection to a mail server. It is used for one mail.
type smtpSession struct {
	c         *smtp.Client
	conn      *bounded
	tls       *tls.Config
	encrypted bool
	open      bool // mail may be sent without TLS
}

// newSMTPSession reads the greeting of the server and returns the session.
func newSMTPSession(c net.Conn, under *bounded, t *tls.Config, open bool) (*smtpSession, error) {
	_, encrypted := c.(*tls.Conn)
	client, err := smtp.NewClient(c, t.ServerName)
	if err != nil {
		under.Close()
		return nil, mailError("greeting", err)
	}
	return &smtpSession{c: client, conn: under, tls: t, encrypted: encrypted, open: open}, nil
}

func (s *smtpSession) close() { s.conn.Close() }

// deliver sends a mail to the receivers whom the server accepts. The parameter "write" is a
// function that returns the mail. The result "delivered" lists the receivers who have the mail. The
// result "rejected" lists the receivers whom the server rejects permanently. The mail must be sent
// again to all others.
func (s *smtpSession) deliver(
	o MailOptions, from string, to []string, write func() ([]byte, error),
) (delivered, rejected []string, err error) {
	if err := s.c.Hello(from[strings.LastIndexByte(from, '@')+1:]); err != nil {
		return nil, nil, mailError("EHLO", err)
	}
	if err := s.encrypt(o.User != ""); err != nil {
		return nil, nil, err
	}
	if err := s.authenticate(o); err != nil {
		return nil, nil, err
	}
	if err := s.c.Mail(from); err != nil {
		return nil, nil, mailError("MAIL", err)
	}
	for _, t := range to {
		switch err := mailError("RCPT", s.c.Rcpt(t)); {
		case err == nil:
			delivered = append(delivered, t)
		case errors.Is(err, ErrPermanent):
			rejected = append(rejected, t)
		case !isReply(err): // the connection was lost
			return nil, nil, err
		}
	}
	if len(delivered) == 0 {
		_ = s.c.Quit()
		return nil, rejected, nil
	}
	text, err := write()
	if err != nil {
		return nil, nil, permanentError("the message cannot be written")
	}
	w, err := s.c.Data()
	if err != nil {
		return nil, nil, mailError("DATA", err)
	}
	if _, err := w.Write(text); err != nil {
		return nil, nil, mailError("DATA", err)
	}
	if err := w.Close(); err != nil {
		return nil, nil, mailError("DATA", err)
	}
	_ = s.c.Quit() // an error is ignored, because the server already has the mail
	return delivered, rejected, nil
}

// encrypt starts TLS. Without TLS, a mail is sent only to a private address, and a password is
// never sent. On loopback, no TLS is needed, because nobody can read the connection and
// certificates for loopback are rare.
func (s *smtpSession) encrypt(password bool) error {
	if s.encrypted {
		return nil
	}
	offered, _ := s.c.Extension("STARTTLS")
	if s.open && !password && (!offered || s.conn.loopback()) {
		return nil
	}
	if !offered {
		// this error is not permanent, because somebody in between may hide STARTTLS
		return errors.New("the mail server offers no STARTTLS, and nothing is sent without TLS")
	}
	if err := s.c.StartTLS(s.tls); err != nil {
		return mailError("STARTTLS", err)
	}
	s.encrypted = true
	return nil
}

func (s *smtpSession) authenticate(o MailOptions) error {
	if o.User == "" {
		return nil
	}
	if !s.encrypted {
		return errors.New("no password is sent without TLS")
	}
	ok, methods := s.c.Extension("AUTH")
	if !ok || !strings.Contains(" "+strings.ToUpper(methods)+" ", " PLAIN ") {
		return errors.New("the mail server offers no AUTH PLAIN")
	}
	return mailError("AUTH", s.c.Auth(plainAuth{o.User, o.Password}))
}

// plainAuth implements AUTH PLAIN (RFC 4616). The caller has checked that the connection is
// encrypted. The implementation of net/smtp cannot be used, because it does not notice that a
// connection was encrypted from its first byte.
type plainAuth struct{ user, password string }

func (p plainAuth) Start(*smtp.ServerInfo) (string, []byte, error) {
	return "PLAIN", []byte("\x00" + p.user + "\x00" + p.password), nil
}

func (p plainAuth) Next(_ []byte, more bool) ([]byte, error) {
	if more {
		return nil, errors.New("the mail server asks for more than AUTH PLAIN has")
	}
	return nil, nil
}

// replyError is the error for a temporary refusal of a mail server. dlo sends the mail again later.
// The error contains no text from the server, because the server could repeat what it received.
type replyError string

func (r replyError) Error() string { return string(r) }

func isReply(err error) bool { var r replyError; return errors.As(err, &r) }

// mailError describes an error in a step of an SMTP session. A 5xx reply is permanent. A 4xx reply,
// such as 421, is not.
func mailError(step string, err error) error {
	if err == nil {
		return nil
	}
	var answered *textproto.Error
	if !errors.As(err, &answered) {
		return fmt.Errorf("%s: %w", step, explain(err))
	}
	text := fmt.Sprintf("the mail server answered %d to %s", answered.Code, step)
	if answered.Code >= 500 && answered.Code < 600 {
		return permanentError("%s", text)
	}
	return replyError(text)
}

// bounded is a connection to a mail server with two limits. It can be used only until a context
// ends, and only a limited number of bytes can be read from it.
type bounded struct {
	net.Conn
	left int
	stop func() bool
}

func newBounded(ctx context.Context, c net.Conn, most int) *bounded {
	if d, ok := ctx.Deadline(); ok {
		_ = c.SetDeadline(d)
	}
	return &bounded{Conn: c, left: most, stop: context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })}
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, io.ErrUnexpectedEOF
	}
	n, err := b.Conn.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

func (b *bounded) Close() error { b.stop(); return b.Conn.Close() }

func (b *bounded) loopback() bool {
	a, ok := b.RemoteAddr().(*net.TCPAddr)
	return ok && a.IP.IsLoopback()
}
