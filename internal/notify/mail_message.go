package notify

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"html/template"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"net/textproto"
	"strings"
	"time"
	"unicode/utf8"
)

// mailMessage returns a message as a mail with a text part and an HTML part. Every header is fixed,
// encoded, or contains only parsed addresses. The parts are quoted-printable. A text in the message
// can therefore not start a header or a part, and cannot end the mail.
func mailMessage(m *Message, from *mail.Address, to []*mail.Address, now time.Time) ([]byte, error) {
	var b bytes.Buffer
	domain := from.Address[strings.LastIndexByte(from.Address, '@')+1:]
	parts := multipart.NewWriter(&b)
	if err := parts.SetBoundary("dlo-" + digestOf("boundary", m.ID)); err != nil {
		return nil, err
	}
	var list []string
	for _, t := range to {
		list = append(list, t.String())
	}
	thread := "<" + digestOf("thread", m.Key) + "@" + domain + ">"
	for _, h := range [][2]string{
		{"From", from.String()},
		{"To", strings.Join(list, ",\r\n ")},
		{"Subject", subject("[dlo] " + line(m.Title, titleBytes))},
		{"Date", now.Format(time.RFC1123Z)},
		{"Message-ID", "<" + digestOf("message", m.ID) + "@" + domain + ">"},
		// no mail has this id: it stands for the cause, so that all mails about the cause are in
		// one thread
		{"In-Reply-To", thread},
		{"References", thread},
		{"Auto-Submitted", "auto-generated"},
		{"X-Auto-Response-Suppress", "All"},
		{"MIME-Version", "1.0"},
		{"Content-Type", `multipart/alternative; boundary="` + parts.Boundary() + `"`},
	} {
		fmt.Fprintf(&b, "%s: %s\r\n", h[0], h[1])
	}
	b.WriteString("\r\n")
	var page bytes.Buffer
	if err := mailPage.Execute(&page, mailView(m)); err != nil {
		return nil, err
	}
	for _, p := range []struct{ kind, text string }{{"text/plain", mailText(m)}, {"text/html", page.String()}} {
		w, err := parts.CreatePart(textproto.MIMEHeader{
			"Content-Type":              {p.kind + "; charset=utf-8"},
			"Content-Transfer-Encoding": {"quoted-printable"},
		})
		if err != nil {
			return nil, err
		}
		q := quotedprintable.NewWriter(w)
		if _, err := q.Write([]byte(p.text)); err != nil {
			return nil, err
		}
		if err := q.Close(); err != nil {
			return nil, err
		}
	}
	if err := parts.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// subject encodes the subject of a mail as in RFC 2047, in words that fit on a line. A short ASCII
// text that does not look encoded stays as it is.
func subject(s string) string {
	s = strings.TrimSpace(s)
	plain := !strings.Contains(s, "=?") && len(s) <= 70
	for _, r := range s {
		plain = plain && r >= ' ' && r <= '~'
	}
	if plain {
		return s
	}
	const most = 42 // bytes per word; a word has 56 bytes in base64 and 12 others
	var words []string
	for s != "" {
		n := min(most, len(s))
		for n > 0 && n < len(s) && !utf8.RuneStart(s[n]) {
			n--
		}
		if n == 0 {
			n = min(most, len(s))
		}
		words = append(words, "=?utf-8?b?"+base64.StdEncoding.EncodeToString([]byte(s[:n]))+"?=")
		s = s[n:]
	}
	return strings.Join(words, "\r\n ")
}

// mailText returns the text part of a mail.
func mailText(m *Message) string {
	var b strings.Builder
	v := mailView(m)
	b.WriteString(v.Title + "\n")
	if v.Text != "" {
		b.WriteString("\n" + v.Text + "\n")
	}
	if len(v.Facts) > 0 {
		b.WriteString("\n")
	}
	for _, f := range v.Facts {
		fmt.Fprintf(&b, "%s: %s\n", f.Name, f.Value)
	}
	for _, l := range v.Lines {
		fmt.Fprintf(&b, "\n- %s\n", l.Title)
		for _, s := range []string{l.Text, l.URL} {
			if s != "" {
				b.WriteString("  " + s + "\n")
			}
		}
	}
	if v.URL != "" {
		b.WriteString("\n" + v.Link + ": " + v.URL + "\n")
	}
	return b.String()
}

// page is the content of both parts of a mail. Its texts are visible and have a limited length.
type page struct {
	Title, Text string
	Facts       []Fact
	Lines       []Line
	URL, Link   string
}

func mailView(m *Message) page {
	v := page{Title: line(m.Title, titleBytes), Text: lines(m.Text, textBytes), URL: m.URL, Link: linkName(m.URL)}
	for _, f := range m.Facts {
		if f.Value != "" {
			v.Facts = append(v.Facts, Fact{line(f.Name, 50), line(f.Value, factBytes)})
		}
	}
	for _, l := range m.Lines {
		v.Lines = append(v.Lines, Line{Title: line(l.Title, titleBytes), Text: line(l.Text, factBytes), URL: l.URL})
	}
	return v
}

// mailPage is the HTML part of a mail. It loads nothing and runs no scripts, because a loaded image
// would reveal that the mail was opened.
var mailPage = template.Must(template.New("mail").Parse(`<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark"><title>{{.Title}}</title></head>
<body style="font: 15px/1.5 system-ui, sans-serif; max-width: 44em; margin: 1em auto; padding: 0 1em">
<h1 style="font-size: 18px">{{.Title}}</h1>
{{- with .Text}}
<p style="white-space: pre-wrap; overflow-wrap: anywhere">{{.}}</p>
{{- end}}
{{- with .Facts}}
<table role="presentation" style="border-spacing: 0">
{{- range .}}
<tr><td style="padding: 1px 1em 1px 0; vertical-align: top">{{.Name}}</td><td style="overflow-wrap: anywhere">{{.Value}}</td></tr>
{{- end}}
</table>
{{- end}}
{{- with .Lines}}
<ul style="padding-left: 1.2em">
{{- range .}}
<li style="margin: .6em 0; overflow-wrap: anywhere"><a href="{{.URL}}">{{.Title}}</a>{{with .Text}}<br>{{.}}{{end}}</li>
{{- end}}
</ul>
{{- end}}
{{- with .URL}}
<p><a href="{{.}}">{{$.Link}}</a></p>
{{- end}}
</body></html>
`))
