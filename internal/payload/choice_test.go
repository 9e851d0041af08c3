package payload

import (
	"fmt"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/testenv"
)

// TestTypeChoice compares the type that is chosen for a body, and by what, with
// testdata/type_choice.golden.
func TestTypeChoice(t *testing.T) {
	t.Parallel()
	body := sample(t)
	bind := []deadletter.Binding{{Queue: "other", Type: "acme.odd.Order"}, {Queue: "email-*", Key: "email.*", Type: email}}
	tests := []struct {
		name         string
		h            Hints
		withBindings bool
	}{
		{name: "nothing names a type"},
		{name: "an own word in the type property", h: Hints{Type: "user.created"}},
		{name: "full name in the type property", h: Hints{Type: email}},
		{name: "short name in the type property", h: Hints{Type: "EmailRequested"}},
		{name: "leading dot", h: Hints{Type: "." + email}},
		{name: "type URL", h: Hints{Type: "type.googleapis.com/" + email}},
		{
			name: "messageType parameter",
			h:    Hints{ContentType: `Application/Protobuf; MessageType="` + email + `"`, Type: "acme.odd.Order"},
		},
		{
			name: "proto parameter of another media type",
			h:    Hints{ContentType: "application/octet-stream; proto=" + email},
		},
		{name: "type parameter", h: Hints{ContentType: "application/vnd.google.protobuf;type=EmailRequested"}},
		{
			name:         "binding by queue and key",
			h:            Hints{Queue: "email-queue", Key: "email.welcome"},
			withBindings: true,
		},
		{
			name:         "binding of another key",
			h:            Hints{Queue: "email-queue", Key: "sms"},
			withBindings: true,
		},
		{
			name:         "the letter wins over a binding",
			h:            Hints{Type: "acme.notify.v1.EmailAddress", Queue: "email-queue", Key: "email.x"},
			withBindings: true,
		},
		{name: "not registered", h: Hints{Type: "acme.nope.v1.X"}},
		{
			name: "not registered, named by the content type, never replaced by a binding",
			h: Hints{
				ContentType: "application/protobuf; messageType=acme.X", Queue: "email-queue", Key: "email.x",
			},
			withBindings: true,
		},
		{
			name:         "an own word in the type property, then a binding",
			h:            Hints{Type: "user.created", Queue: "email-queue", Key: "email.x"},
			withBindings: true,
		},
		{name: "ambiguous short name", h: Hints{Type: "Order"}},
		{name: "does not parse", h: Hints{Type: "acme.shop.v1.Order"}},
		{name: "protobuf without a name", h: Hints{ContentType: "application/protobuf"}},
		{name: "hostile name", h: Hints{Type: "\x00\u202e" + strings.Repeat("x", 5000)}},
	}
	var all strings.Builder
	for _, tt := range tests {
		d := &Decoder{Types: schemas()}
		if tt.withBindings {
			d.Bindings = bind
		}
		doc := d.Decode(body, tt.h, nil)
		fmt.Fprintf(
			&all, "%s: type %q by %q, named %q, problem %q\n", tt.name, doc.Type, doc.Chosen, doc.named, doc.Problem,
		)
		if want := map[bool]Kind{true: Protobuf, false: Binary}[doc.Type != ""]; doc.Kind != want {
			t.Errorf("%s: kind %s", tt.name, doc.Kind)
		}
	}
	testenv.GoldenText(t, "type_choice.golden", all.String())
}

func TestBodiesThatAreNotTheNamedType(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		body    string
		h       Hints
		kind    Kind
		problem string
	}{
		{"JSON beside a property that names a type", `{"a":1}`, Hints{Type: email}, JSON, ""},
		{
			"JSON, and the content type says protobuf",
			`{"a":1}`,
			Hints{ContentType: "application/protobuf; messageType=" + email},
			JSON,
			"could not decode as",
		},
		{"JSON with the publisher's own type", `{"a":1}`, Hints{Type: "user.created"}, JSON, ""},
		{"text", "hello there", Hints{Type: email}, Text, "could not decode as"},
		{"truncated", "\x0a\x0ereq", Hints{Type: email}, Binary, ": truncated at byte 1"},
		{"text field that is not UTF-8", "\x0a\x02\xff\xfe", Hints{Type: email}, Binary, "contains invalid UTF-8"},
		{
			"only unknown fields",
			"\xa0\x06\x01",
			Hints{Type: email},
			Binary,
			"1 field is on the wire, none of which it knows",
		},
		{"empty", "", Hints{Type: email}, Empty, ""},
		{"white space", " \n", Hints{Type: email}, Text, "could not decode as"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			doc := decode([]byte(tt.body), tt.h)
			if doc.Kind != tt.kind || !strings.Contains(doc.Problem, tt.problem) ||
				(tt.problem == "") != (doc.Problem == "") {
				t.Errorf("got %s, problem %q", doc.Kind, doc.Problem)
			}
			if doc.Type != "" {
				t.Errorf("type %s", doc.Type)
			}
		})
	}
}
