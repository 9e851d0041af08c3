package notify

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"math/big"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// mailServer is a small SMTP server. A test can set its reply to each step. It records the lines
// that it receives and the mails that it accepts.
type mailServer struct {
	net.Listener
	starttls bool
	implicit bool
	auth     string // methods of authentication; "" = none
	// reply by the beginning of the received line, e.g. RCPT TO:<a@b>; the replies "cut" and "hang"
	// are actions of the server
	answers map[string]string
	config  *tls.Config
	roots   *x509.CertPool

	mu    sync.Mutex
	lines []string // received lines; a line received over TLS begins with +
	mails []string
	hung  chan struct{}
	conns sync.WaitGroup
}

func newMailServer(t testing.TB, s *mailServer) *mailServer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.Listener, s.hung = l, make(chan struct{})
	s.config, s.roots = certified(t, "mail.example.com", "127.0.0.1")
	s.conns.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.conns.Go(func() { s.serve(c) })
		}
	})
	t.Cleanup(func() {
		close(s.hung)
		l.Close()
		s.conns.Wait()
	})
	return s
}

// certified returns a certificate for the given names, and a pool that trusts it.
func certified(t testing.TB, names ...string) (*tls.Config, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}
	for _, n := range names {
		if ip := net.ParseIP(n); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, n)
		}
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(cert)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{raw}, PrivateKey: key}}}, roots
}

func (s *mailServer) serve(c net.Conn) {
	defer func() { c.Close() }()
	secure := false
	if s.implicit {
		c, secure = tls.Server(c, s.config), true
	}
	r := bufio.NewReader(c)
	say := func(format string, args ...any) { fmt.Fprintf(c, format+"\r\n", args...) }
	if !s.answer(c, "greeting", "220 mail.example.com ESMTP") {
		return
	}
	for {
		text, err := r.ReadString('\n')
		if err != nil {
			return
		}
		text = strings.TrimRight(text, "\r\n")
		s.note(secure, text)
		verb, _, _ := strings.Cut(strings.ToUpper(text), " ")
		switch verb {
		case "EHLO":
			lines := []string{"mail.example.com", "8BITMIME", "PIPELINING"}
			if s.starttls && !secure {
				lines = append(lines, "STARTTLS")
			}
			if s.auth != "" {
				lines = append(lines, "AUTH "+s.auth)
			}
			for i, l := range lines {
				say("250%s%s", map[bool]string{true: " ", false: "-"}[i == len(lines)-1], l)
			}
		case "STARTTLS":
			say("220 go ahead")
			c, secure = tls.Server(c, s.config), true
			r = bufio.NewReader(c)
		case "DATA":
			if !s.answer(c, "DATA", "354 go on") {
				return
			}
			if s.set("DATA") != "" {
				continue
			}
			var mail strings.Builder
			for {
				l, err := r.ReadString('\n')
				if err != nil {
					return
				}
				if l == ".\r\n" {
					break
				}
				mail.WriteString(strings.TrimPrefix(l, "."))
			}
			if s.set(".") == "" {
				s.mu.Lock()
				s.mails = append(s.mails, mail.String())
				s.mu.Unlock()
			}
			if !s.answer(c, ".", "250 taken") {
				return
			}
		case "QUIT":
			say("221 bye")
			return
		default:
			usual := "250 ok"
			if verb == "AUTH" {
				usual = "235 welcome"
			}
			if !s.answer(c, text, usual) {
				return
			}
		}
	}
}

// answer sends the reply that the test has set for a step. If there is none, it sends the usual
// reply.
func (s *mailServer) answer(c net.Conn, step, usual string) bool {
	if a := s.set(step); a != "" {
		usual = a
	}
	switch usual {
	case "cut":
		return false
	case "hang":
		<-s.hung
		return false
	}
	fmt.Fprintf(c, "%s\r\n", usual)
	return true
}

// set returns the reply that the test has set for a step. If there is none, it returns "".
func (s *mailServer) set(step string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for begin, a := range s.answers {
		if strings.HasPrefix(step, begin) {
			return a
		}
	}
	return ""
}

func (s *mailServer) note(secure bool, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, map[bool]string{true: "+", false: ""}[secure]+text)
}

// received returns the lines and mails that were received so far.
func (s *mailServer) received() (lines, mails []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.lines...), append([]string(nil), s.mails...)
}

// mailTo returns a channel that sends mails to the test server. The channel connects to
// mail.example.com, and this name resolves to the address "at".
func mailTo(t testing.TB, s *mailServer, at string, o MailOptions) *Mail {
	t.Helper()
	o.Host, o.From = "mail.example.com", "dlo@example.com"
	if o.To == nil {
		o.To = []string{"team@example.com"}
	}
	o.Now = func() time.Time { return time.Date(2026, 11, 20, 15, 3, 0, 0, time.FixedZone("CET", 3600)) }
	m, err := NewMail(o)
	if err != nil {
		t.Fatal(err)
	}
	m.tls.RootCAs = s.roots
	redirectTo(m.guard, s.Addr().String(), map[string][]string{"mail.example.com": {at}})
	return m
}

// plainOf returns the data that AUTH PLAIN sends for a user and a password.
func plainOf(user, password string) string {
	return base64.StdEncoding.EncodeToString([]byte("\x00" + user + "\x00" + password))
}
