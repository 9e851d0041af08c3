package payload

import (
	"strings"
	"testing"
)

func TestTypeChoice(t *testing.T) {
	t.Parallel()
	body := sample(t)
	bind := []Binding{{Queue: "other", Type: "acme.odd.Order"}, {Queue: "email-*", Key: "email.*", Type: email}}
	const matched = "matching against 12 types, score 0.75"
	tests := []struct {
		name         string
		h            Hints
		typ, chosen  string
		named        string
		problem      string
		withBindings bool
	}{
		{name: "nothing names a type", typ: email, chosen: matched},
		{
			name:   "an own word in the type property",
			h:      Hints{Type: "user.created"},
			typ:    email,
			chosen: matched,
			named:  "user.created",
		},
		{
			name:   "full name in the type property",
			h:      Hints{Type: email},
			typ:    email,
			chosen: sourceProperty,
			named:  email,
		},
		{
			name:   "short name in the type property",
			h:      Hints{Type: "EmailRequested"},
			typ:    email,
			chosen: sourceProperty,
			named:  email,
		},
		{name: "leading dot", h: Hints{Type: "." + email}, typ: email, chosen: sourceProperty, named: email},
		{
			name:   "type URL",
			h:      Hints{Type: "type.googleapis.com/" + email},
			typ:    email,
			chosen: sourceProperty,
			named:  email,
		},
		{
			name:   "messageType parameter",
			h:      Hints{ContentType: `Application/Protobuf; MessageType="` + email + `"`, Type: "acme.odd.Order"},
			typ:    email,
			chosen: sourceContentType,
			named:  email,
		},
		{
			name:   "proto parameter of another media type",
			h:      Hints{ContentType: "application/octet-stream; proto=" + email},
			typ:    email,
			chosen: sourceContentType,
			named:  email,
		},
		{
			name:   "type parameter",
			h:      Hints{ContentType: "application/vnd.google.protobuf;type=EmailRequested"},
			typ:    email,
			chosen: sourceContentType,
			named:  email,
		},
		{
			name:         "binding by queue and key",
			h:            Hints{Queue: "email-queue", Key: "email.welcome"},
			withBindings: true,
			typ:          email,
			chosen:       "the binding of email-*",
			named:        email,
		},
		{
			name:         "binding of another key",
			h:            Hints{Queue: "email-queue", Key: "sms"},
			withBindings: true,
			typ:          email,
			chosen:       matched,
		},
		{
			name:         "the letter wins over a binding",
			h:            Hints{Type: "acme.notify.v1.EmailAddress", Queue: "email-queue", Key: "email.x"},
			withBindings: true,
			named:        "acme.notify.v1.EmailAddress",
			typ:          "acme.notify.v1.EmailAddress",
			chosen:       sourceProperty,
		},
		{
			name:    "not registered",
			h:       Hints{Type: "acme.nope.v1.X"},
			named:   "acme.nope.v1.X",
			problem: "acme.nope.v1.X (the type property) is not registered",
		},
		{
			name: "not registered, named by the content type, never replaced by a binding",
			h: Hints{
				ContentType: "application/protobuf; messageType=acme.X", Queue: "email-queue", Key: "email.x",
			},
			withBindings: true,
			named:        "acme.X",
			problem:      "acme.X (the content type) is not registered",
		},
		{
			name:         "an own word in the type property, then a binding",
			h:            Hints{Type: "user.created", Queue: "email-queue", Key: "email.x"},
			withBindings: true,
			typ:          email,
			chosen:       "the binding of email-*",
			named:        "user.created",
		},
		{
			name:    "ambiguous short name",
			h:       Hints{Type: "Order"},
			named:   "Order",
			problem: "Order (the type property) is ambiguous: acme.odd.Order, acme.shop.v1.Order",
		},
		{
			name:   "does not parse",
			h:      Hints{Type: "acme.shop.v1.Order"},
			typ:    "acme.shop.v1.Order",
			chosen: sourceProperty,
			named:  "acme.shop.v1.Order",
		},
		{name: "protobuf without a name", h: Hints{ContentType: "application/protobuf"}, typ: email, chosen: matched},
		{
			name:   "hostile name",
			h:      Hints{Type: "\x00\u202e" + strings.Repeat("x", 5000)},
			typ:    email,
			chosen: matched,
			named:  `\x00\u202e` + strings.Repeat("x", 190),
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := &Decoder{Types: schemas()}
			if tt.withBindings {
				d.Bindings = bind
			}
			doc := d.Decode(body, tt.h, nil)
			if doc.Type != tt.typ || doc.Chosen != tt.chosen || doc.Named != tt.named || doc.Problem != tt.problem {
				t.Errorf("got type %q by %q, named %q, problem %q", doc.Type, doc.Chosen, doc.Named, doc.Problem)
			}
			if want := map[bool]Kind{true: Protobuf, false: Binary}[tt.typ != ""]; doc.Kind != want {
				t.Errorf("kind %s", doc.Kind)
			}
		})
	}
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
