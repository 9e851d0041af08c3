package web

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// FuzzImportLine checks that any line is either rejected with a reason, or becomes a letter that
// can be stored. If the letter is exported and imported again, it must be unchanged.
func FuzzImportLine(f *testing.F) {
	for _, line := range []string{
		`{"v":1,"id":"01a1f82e-3420-7001-8000-000000000001","state":"dead","origin":{"broker":"main","vhost":"/","queue":"sms","exchange":"e","routing_key":"k"},"inbox":"i","exchange":"x","routing_key":"r","received_at":"2026-11-20T08:59:00Z","reason":"rejected","attempts":0,"type":"","error":"","why":"","properties":{"message_id":"m","timestamp":"2026-11-20T08:59:00Z"},"headers":{"a":{"t":"array","v":[{"t":"int8","v":1}]}},"body":"eA=="}`,
		`{"v":1,"id":"01a1f82e-3420-7001-8000-000000000001","state":"held","origin":{"queue":{"b":"//4="}},"received_at":"2026-11-20T08:59:00Z","encoded":"AAA=","body":""}`,
		`{"masked":true}`, `{}`, `null`, `[]`, `"`, `{"body":{}}`,
	} {
		f.Add([]byte(line))
	}
	m := &importer{w: New(Options{}), by: deadletter.Local}
	f.Fuzz(func(t *testing.T, line []byte) {
		l, reason := m.read(line)
		if reason != "" {
			if deadletter.Visible(reason) != reason {
				t.Errorf("the reason would act on a terminal: %q", reason)
			}
			return
		}
		before, err := l.Properties.Encode()
		if err != nil {
			t.Fatal(err)
		}
		out, err := m.w.exportedOf(t.Context(), deadletter.Local, deadletter.Letter{
			Row:        l.Row,
			Inbox:      l.Inbox,
			ArrivedBy:  l.ArrivedBy,
			Properties: l.Properties,
			Body:       l.Body,
		}, false)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(out)
		if err != nil {
			t.Fatal(err)
		}
		again, reason := m.read(text)
		after, err := again.Properties.Encode()
		if reason != "" || err != nil || !bytes.Equal(before, after) || !bytes.Equal(l.Body, again.Body) ||
			l.ID != again.ID || l.Origin() != again.Origin() || l.Inbox != again.Inbox ||
			l.ArrivedBy != again.ArrivedBy ||
			l.Reason != again.Reason || !l.ReceivedAt.Equal(again.ReceivedAt) {
			t.Errorf("%s\nbecomes %s: %s %v", line, text, reason, err)
		}
	})
}
