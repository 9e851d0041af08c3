package notify

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"
)

// readMail splits a mail into its headers, its text part and its HTML part.
func readMail(t *testing.T, raw string) (mail.Header, string, string) {
	t.Helper()
	m, err := mail.ReadMessage(strings.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	kind, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/alternative" {
		t.Fatalf("%s, %v", kind, err)
	}
	parts := multipart.NewReader(m.Body, params["boundary"])
	var texts []string
	for {
		p, err := parts.NextRawPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(quotedprintable.NewReader(p))
		if err != nil {
			t.Fatal(err)
		}
		if want := []string{
			"text/plain; charset=utf-8", "text/html; charset=utf-8", "",
		}[min(2, len(texts))]; p.Header.Get("Content-Type") != want {
			t.Errorf("part %d is %s", len(texts), p.Header.Get("Content-Type"))
		}
		texts = append(texts, strings.ReplaceAll(string(text), "\r\n", "\n"))
	}
	if len(texts) != 2 {
		t.Fatalf("%d parts", len(texts))
	}
	return m.Header, texts[0], texts[1]
}

func TestWhatAMailSays(t *testing.T) {
	t.Parallel()
	s := newMailServer(t, &mailServer{starttls: true, auth: "LOGIN PLAIN"})
	m := mailTo(t, s, "8.8.8.8", MailOptions{
		User:     "dlo",
		Password: canary,
		To:       []string{"team@example.com", "Night Shift <night@example.com>"},
	})
	msg := Compose(office, someDelivery(deadletter.NoticeOpened))
	if _, err := m.Send(t.Context(), msg); err != nil {
		t.Fatal(err)
	}
	lines, mails := s.received()
	want := []string{
		"EHLO example.com", "STARTTLS", "+EHLO example.com", "+AUTH PLAIN " + plainOf("dlo", canary),
		"+MAIL FROM:<dlo@example.com> BODY=8BITMIME", "+RCPT TO:<team@example.com>", "+RCPT TO:<night@example.com>",
		"+DATA", "+QUIT",
	}
	if d := cmp.Diff(want, lines); d != "" {
		t.Error(d)
	}
	header, text, page := readMail(t, mails[0])
	thread := "<" + digestOf("thread", msg.Key) + "@example.com>"
	wanted := mail.Header{
		"From":                     {`"Dead Letter Office" <dlo@example.com>`},
		"To":                       {`<team@example.com>, "Night Shift" <night@example.com>`},
		"Subject":                  {header.Get("Subject")},
		"Date":                     {"Fri, 20 Nov 2026 15:03:00 +0100"},
		"Message-Id":               {"<" + digestOf("message", msg.ID) + "@example.com>"},
		"In-Reply-To":              {thread},
		"References":               {thread},
		"Auto-Submitted":           {"auto-generated"},
		"X-Auto-Response-Suppress": {"All"},
		"Mime-Version":             {"1.0"},
		"Content-Type":             {header.Get("Content-Type")},
	}
	if d := cmp.Diff(wanted, header); d != "" {
		t.Error(d)
	}
	if subject, err := new(mime.WordDecoder).DecodeHeader(header.Get("Subject")); err != nil || subject != "[dlo] "+msg.Title {
		t.Errorf("subject %q, %v", subject, err)
	}
	wantText := `312 letters dead in email-queue: template "welcome_v3" not found

TemplateError: template "welcome_v3" not found
  at render

group: G-418
queue: email-queue
broker: main
vhost: /
reason: rejected
type: acme.notify.v1.EmailRequested
letters: 312
waiting: 4
since: 2026-11-20 13:58 UTC
last: 2026-11-20 14:02 UTC
owner: lena

Open G-418: https://dlo.example.com/groups/G-418
`
	if d := cmp.Diff(wantText, text); d != "" {
		t.Error(d)
	}
	if got := texts(t, page); !strings.Contains(got, `template "welcome_v3" not found`) ||
		!strings.Contains(got, "Open G-418") {
		t.Errorf("the page says %q", got)
	}
}

func TestMailOfOneCauseIsOneThread(t *testing.T) {
	t.Parallel()
	s := newMailServer(t, &mailServer{})
	m := mailTo(t, s, "127.0.0.1", MailOptions{AllowPrivate: true})
	end := someDelivery(deadletter.NoticeResolved)
	end.Notice.ID++
	for _, d := range []deadletter.Delivery{
		someDelivery(deadletter.NoticeOpened), someDelivery(deadletter.NoticeOpened), end,
	} {
		if _, err := m.Send(t.Context(), Compose(office, d)); err != nil {
			t.Fatal(err)
		}
	}
	_, mails := s.received()
	var ids, threads []string
	for _, raw := range mails {
		h, _, _ := readMail(t, raw)
		ids, threads = append(ids, h.Get("Message-ID")), append(threads, h.Get("References"))
	}
	if ids[0] != ids[1] || ids[0] == ids[2] || threads[0] != threads[2] {
		t.Errorf("ids %v, threads %v", ids, threads)
	}
}

func TestWhenMailIsEncrypted(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		server *mailServer
		at     string
		o      MailOptions
		err    string
		tls    bool
	}{
		{"public, offered", &mailServer{starttls: true}, "8.8.8.8", MailOptions{}, "", true},
		{"public, not offered", &mailServer{}, "8.8.8.8", MailOptions{}, "offers no STARTTLS", false},
		{
			"public, not offered, whatever is allowed",
			&mailServer{},
			"8.8.8.8",
			MailOptions{AllowPrivate: true, Port: 2525},
			"",
			false,
		},
		{
			"TLS from the first byte",
			&mailServer{implicit: true, auth: "PLAIN"},
			"8.8.8.8",
			MailOptions{Port: 465, User: "dlo", Password: canary},
			"",
			true,
		},
		{
			"loopback, offered or not",
			&mailServer{starttls: true},
			"127.0.0.1",
			MailOptions{AllowPrivate: true},
			"",
			false,
		},
		{
			"loopback with a password",
			&mailServer{starttls: true, auth: "PLAIN"},
			"127.0.0.1",
			MailOptions{AllowPrivate: true, User: "dlo", Password: canary},
			"",
			true,
		},
		{
			"a password without TLS",
			&mailServer{auth: "PLAIN"},
			"127.0.0.1",
			MailOptions{AllowPrivate: true, User: "dlo", Password: canary},
			"offers no STARTTLS",
			false,
		},
		{"loopback, not allowed", &mailServer{}, "127.0.0.1", MailOptions{}, "needs allow_private", false},
		{"metadata", &mailServer{}, "169.254.169.254", MailOptions{AllowPrivate: true}, "never allowed", false},
		{
			"no AUTH PLAIN",
			&mailServer{starttls: true, auth: "LOGIN CRAM-MD5"},
			"8.8.8.8",
			MailOptions{User: "dlo", Password: canary},
			"offers no AUTH PLAIN",
			true,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newMailServer(t, c.server)
			m := mailTo(t, s, c.at, c.o)
			_, err := m.Send(t.Context(), Message{ID: "1", Title: "a"})
			if (err == nil) != (c.err == "") ||
				err != nil && (!strings.Contains(err.Error(), c.err) || errors.Is(err, ErrPermanent)) {
				t.Fatalf("got %v, want %q", err, c.err)
			}
			lines, mails := s.received()
			for _, l := range lines {
				if strings.Contains(l, plainOf("dlo", canary)) && !strings.HasPrefix(l, "+") {
					t.Error("the password went in the clear")
				}
				if c.tls && strings.HasPrefix(l, "MAIL") || !c.tls && strings.HasPrefix(l, "+") {
					t.Errorf("TLS is wanted: %t, got %s", c.tls, l)
				}
			}
			if (len(mails) == 1) != (err == nil) {
				t.Errorf("%d mails", len(mails))
			}
		})
	}
}

func TestACertificateForAnotherNameIsRefused(t *testing.T) {
	t.Parallel()
	s := newMailServer(t, &mailServer{starttls: true})
	m := mailTo(t, s, "8.8.8.8", MailOptions{})
	m.tls.ServerName = "other.example.com"
	if _, err := m.Send(t.Context(), Message{}); err == nil || !strings.Contains(err.Error(), "not valid for it") {
		t.Errorf("got %v", err)
	}
	m.tls.ServerName, m.tls.RootCAs = "mail.example.com", nil
	if _, err := m.Send(t.Context(), Message{}); err == nil || !strings.Contains(err.Error(), "unknown authority") {
		t.Errorf("got %v", err)
	}
}

func TestWhatAMailServerAnswers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		answers   map[string]string
		permanent bool
		err       string
	}{
		{
			"the password is refused",
			map[string]string{"AUTH": "535 no " + canary},
			true,
			"the mail server answered 535 to AUTH",
		},
		{
			"the password cannot be looked at",
			map[string]string{"AUTH": "454 later " + canary},
			false,
			"the mail server answered 454 to AUTH",
		},
		{"the sender is refused", map[string]string{"MAIL": "550 no"}, true, "the mail server answered 550 to MAIL"},
		{"a full disk", map[string]string{"MAIL": "452 full"}, false, "the mail server answered 452 to MAIL"},
		{
			"all receivers are refused",
			map[string]string{"RCPT": "550 no " + canary},
			true,
			"the mail server refuses all receivers",
		},
		{
			"all receivers are to come again",
			map[string]string{"RCPT": "450 greylisted"},
			false,
			"the mail server does not accept the message for 2 of 2 receivers for now",
		},
		{
			"the text is refused",
			map[string]string{".": "554 spam " + canary},
			true,
			"the mail server answered 554 to DATA",
		},
		{
			"the text is not taken now",
			map[string]string{".": "451 later"},
			false,
			"the mail server answered 451 to DATA",
		},
		{"closing", map[string]string{"greeting": "421 bye"}, false, "the mail server answered 421 to greeting"},
		{"not for us", map[string]string{"greeting": "554 no"}, true, "the mail server answered 554 to greeting"},
		{"cut before the end", map[string]string{".": "cut"}, false, "DATA: the connection was cut"},
		{"cut at a receiver", map[string]string{"RCPT TO:<night": "cut"}, false, "RCPT: the connection was cut"},
		{"nonsense", map[string]string{"greeting": "hello " + canary}, false, "greeting: the request failed"},
		{
			"an endless greeting",
			map[string]string{"greeting": "220-" + strings.Repeat("x", mailAnswers)},
			false,
			"greeting: the connection was cut",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newMailServer(t, &mailServer{starttls: true, auth: "PLAIN", answers: c.answers})
			m := mailTo(t, s, "8.8.8.8", MailOptions{
				User:     "dlo",
				Password: canary,
				To:       []string{"team@example.com", "night@example.com"},
			})
			_, err := m.Send(t.Context(), Message{ID: "1"})
			if err == nil || err.Error() != c.err || errors.Is(err, ErrPermanent) != c.permanent {
				t.Fatalf("got %v, want %q", err, c.err)
			}
			noSecret(t, err.Error())
		})
	}
}

func TestAServerThatNeverAnswersIsLeft(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"greeting", "MAIL", "."} {
		s := newMailServer(t, &mailServer{answers: map[string]string{step: "hang"}})
		m := mailTo(t, s, "127.0.0.1", MailOptions{AllowPrivate: true})
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := m.Send(ctx, Message{}); err == nil || !strings.Contains(err.Error(), "no answer in time") ||
			errors.Is(err, ErrPermanent) {
			t.Errorf("%s: got %v", step, err)
		}
	}
}

func TestAReceiverThatIsRefusedDoesNotKeepItFromTheOthers(t *testing.T) {
	t.Parallel()
	s := newMailServer(t, &mailServer{
		answers: map[string]string{"RCPT TO:<gone@": "550 no", "RCPT TO:<slow@": "450 later"},
	})
	m := mailTo(t, s, "127.0.0.1", MailOptions{
		AllowPrivate: true,
		To:           []string{"team@example.com", "gone@example.com", "slow@example.com"},
	})
	if _, err := m.Send(
		t.Context(), Message{ID: "1"},
	); err == nil || err.Error() != "the mail server does not accept the message for 1 of 3 receivers for now" ||
		errors.Is(err, ErrPermanent) {
		t.Fatalf("got %v", err)
	}
	s.mu.Lock()
	s.lines = nil
	delete(s.answers, "RCPT TO:<slow@")
	s.mu.Unlock()
	_, err := m.Send(t.Context(), Message{ID: "1"})
	var partly *PartlyError
	if !errors.As(err, &partly) || err.Error() != "the mail server refuses 1 of 3 receivers" {
		t.Errorf("got %v", err)
	}
	lines, mails := s.received()
	if got := strings.Join(lines, " "); strings.Count(got, "RCPT") != 1 || !strings.Contains(got, "slow@") ||
		len(mails) != 2 {
		t.Errorf("the second time went %s; %d mails", got, len(mails))
	}
	if len(m.done) != 0 {
		t.Errorf("it is not forgotten: %v", m.done)
	}
}

func TestMailOptionsThatAreNone(t *testing.T) {
	t.Parallel()
	good := MailOptions{
		Host:     "mail.example.com",
		From:     "dlo@example.com",
		To:       []string{"team@example.com"},
		User:     "dlo",
		Password: canary,
	}
	for name, change := range map[string]func(*MailOptions){
		"no host":               func(o *MailOptions) { o.Host = "" },
		"a host with a break":   func(o *MailOptions) { o.Host = "a\r\nb" },
		"a port beyond":         func(o *MailOptions) { o.Port = 70000 },
		"no sender":             func(o *MailOptions) { o.From = "" },
		"a sender with a break": func(o *MailOptions) { o.From = "dlo@example.com\r\nBcc: x@example.com" },
		"nobody":                func(o *MailOptions) { o.To = nil },
		"a receiver with words": func(o *MailOptions) { o.To = []string{"a@example.com, b@example.com"} },
		"a quoted break":        func(o *MailOptions) { o.To = []string{"\"a\r\nb\"@example.com"} },
		"a quoted space":        func(o *MailOptions) { o.To = []string{`"a b"@example.com`} },
		"a password for nobody": func(o *MailOptions) { o.User = "" },
	} {
		o := good
		change(&o)
		if _, err := NewMail(o); err == nil {
			t.Errorf("%s is taken", name)
		} else {
			noSecret(t, err.Error())
		}
	}
	if _, err := NewMail(good); err != nil {
		t.Error(err)
	}
}

// texts returns the text of an HTML page. It fails the test if text from a letter has an effect as
// markup in this page.
func texts(t *testing.T, page string) string {
	t.Helper()
	var shown strings.Builder
	z := html.NewTokenizer(strings.NewReader(page))
	for {
		switch z.Next() {
		case html.ErrorToken:
			return shown.String()
		case html.TextToken:
			shown.Write(z.Text())
		case html.StartTagToken, html.SelfClosingTagToken:
			tag := z.Token()
			if !strings.Contains(" html head meta title body h1 p table tr td ul li a br ", " "+tag.Data+" ") {
				t.Errorf("a tag that is not ours: %s", tag.Data)
			}
			for _, a := range tag.Attr {
				if a.Key == "href" && !ourURLs[a.Val] ||
					!strings.Contains(" lang charset name content style role href ", " "+a.Key+" ") {
					t.Errorf("an attribute that is not ours: %s=%.100q", a.Key, a.Val)
				}
			}
		case html.CommentToken:
			t.Error("a comment")
		}
	}
}

// plainMail fails the test if text from a letter has any effect in a mail besides being shown.
func plainMail(t *testing.T, m *Message) {
	t.Helper()
	from, to := &mail.Address{
		Name: "Dead Letter Office", Address: "dlo@example.com",
	}, []*mail.Address{{Address: "team@example.com"}}
	raw, err := mailMessage(m, from, to, time.Unix(1_800_000_000, 0))
	if err != nil {
		t.Fatal(err)
	}
	for l := range bytes.SplitSeq(raw, []byte("\r\n")) {
		if len(l) > 200 || bytes.ContainsAny(l, "\r\n\x00") {
			t.Errorf("a line of %d bytes: %.100q", len(l), l)
		}
		for _, b := range l {
			if b < ' ' && b != '\t' || b > '~' {
				t.Errorf("byte %x in %.100q", b, l)
			}
		}
	}
	header, text, page := readMail(t, string(raw))
	if len(header) != 11 {
		t.Errorf("headers %v", header)
	}
	subject, err := new(mime.WordDecoder).DecodeHeader(header.Get("Subject"))
	if want := strings.TrimSpace("[dlo] " + line(m.Title, titleBytes)); err != nil || subject != want {
		t.Errorf("subject %.200q, want %.200q, %v", subject, want, err)
	}
	if to, err := header.AddressList("To"); err != nil || len(to) != 1 {
		t.Errorf("to %v, %v", to, err)
	}
	isVisible(t, subject, "")
	isVisible(t, text, "\n\t")
	isVisible(t, html.UnescapeString(page), "\n\t")
	texts(t, page)
}

func TestHostileTextsAreTextInAMail(t *testing.T) {
	t.Parallel()
	for _, m := range hostileMessages() {
		plainMail(t, &m)
	}
}

func FuzzMail(f *testing.F) {
	for _, h := range hostile {
		f.Add(h[:min(len(h), 4096)], "and this")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		m := hostileMessage(a, b)
		plainMail(t, &m)
	})
}
