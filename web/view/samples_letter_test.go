package view

import (
	"fmt"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/payload"
	"github.com/deadletteroffice/dlo/internal/rules"
)

var sampleBody = []byte(
	"\x0a\x0ereq_9f2c41d07b\x10\xd5\xf8\x02\x1a\x22\x0a\x10dana@example.com\x12\x0eDana Whitfield\x22\x13\x0a\x0awelcome_v3\x12\x05en-GB*\x12\x0a\x0afirst_name\x12\x04Dana*\x0c\x0a\x04plan\x12\x04team0\x02:\x0b\x08\x9e\xdc\xff\xd7\x06\x10\x80\xa8\x97cJ\x10[\x1ez\xc0\x9d?D\xe2\xa6\xb1\x8c \xf7\xe9\xd4\x13\xaa\x01\x0a\x0a\x05batsh\x10\xd2\x0f",
)

func sampleHex(title string, from, to int) *Hex {
	h := &Hex{Title: title, Total: len(sampleBody), Marked: payload.Range{From: from, To: to}}
	for at := 0; at < len(sampleBody); at += 16 {
		row := payload.HexRow{Offset: fmt.Sprintf("%04x", at), From: at}
		for i, b := range sampleBody[at:min(at+16, len(sampleBody))] {
			switch i {
			case 0:
			case 8:
				row.Hex += "  "
			default:
				row.Hex += " "
			}
			row.Hex += fmt.Sprintf("%02x", b)
			if b < ' ' || b > '~' {
				row.ASCII += "·"
			} else {
				row.ASCII += string(rune(b))
			}
		}
		h.Rows = append(h.Rows, row)
	}
	return h
}

func sampleLetter(tab Tab) LetterPage {
	death := func(queue, reason string, count int64, at time.Time) deadletter.Table {
		return deadletter.Table{
			"queue":        queue,
			"reason":       reason,
			"count":        count,
			"exchange":     "notify",
			"time":         at,
			"routing-keys": []any{"email.welcome"},
		}
	}
	published := time.Date(2026, 11, 20, 6, 52, 14, 0, time.UTC)
	props := deadletter.Properties{
		ContentType:     "application/x-protobuf",
		ContentEncoding: "base64",
		DeliveryMode:    2,
		MessageID:       "req_9f2c41d07b",
		Type:            "EmailRequested",
		AppID:           "notifications",
		Timestamp:       published,
		Headers: deadletter.Table{
			"x-death":              []any{death("email-queue", "rejected", 1, published)},
			"x-first-death-queue":  "email-queue",
			"x-first-death-reason": "rejected",
			"x-error-class":        "TemplateMissing",
			"x-error-message":      `template "welcome_v3" not found`,
			"traceparent":          "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
			"retries":              int32(3),
			"trial":                true,
			"tags":                 []any{"a", int64(7), nil},
			"blob":                 []byte{0, 1, 254},
			"price":                deadletter.Decimal{Scale: 2, Value: 1995},
		},
	}
	arrived := props
	arrived.Headers = deadletter.Table{
		"dlo-id":      string(sampleID(0)),
		"dlo-token":   "00112233445566778899aabbccddeeff",
		"dlo-attempt": int64(2),
		"x-death":     []any{death("email-queue", "rejected", 1, published.Add(2*time.Minute))},
	}
	for k, v := range props.Headers {
		if _, ok := arrived.Headers[k]; !ok {
			arrived.Headers[k] = v
		}
	}
	p := LetterPage{
		Shell:      sampleShell("Letter 79c3aeae", SectionLetters, LetterURL(sampleID(0), "state:dead", tab)),
		Query:      "state:dead",
		Older:      sampleID(4),
		Tab:        tab,
		Position:   3,
		Of:         312,
		OfExact:    true,
		GroupTitle: `TemplateMissing: template "welcome_v3" not found`,
		Links: []Link{
			{"Trace", "https://tempo.example/trace/4bf92f3577b34da6a3ce929d0e0e4736"},
			{"Logs", "https://logs.example/?q=email-queue&from=2026-11-20T06%3A47%3A14Z"},
		},
		ErrorFrom: []Span{{Text: "header "}, {Text: "x-error-message", Code: true}},
		Letter: deadletter.Letter{
			Row: deadletter.Row{
				ID:         sampleID(0),
				State:      deadletter.StateDead,
				Broker:     "main",
				VHost:      "/",
				Queue:      "email-queue",
				Exchange:   "notify",
				RoutingKey: "email.welcome",
				Reason:     "rejected",
				Type:       "acme.notify.v1.EmailRequested",
				Group:      418,
				Severity:   deadletter.SeverityPage,
				Error:      `TemplateMissing: template "welcome_v3" not found`,
				Why:        "retries used up: 3 of 3",
				Attempts:   3,
				Size:       157,
				ReceivedAt: published.Add(400 * time.Millisecond),
				DiedAt:     published,
			},
			Inbox:      "dlo.letters",
			Properties: props,
			Arrived:    arrived,
			ArrivedBy:  deadletter.Route{Exchange: "dlo.dlx", RoutingKey: "email.welcome"},
			Body:       sampleBody,
			Rule:       "email",
			ChangedAt:  now.Add(-2 * time.Hour),
		},
		Decoded: Decoded{
			Type: "acme.notify.v1.EmailRequested",
			Nodes: []payload.Node{
				{
					Number: 1,
					Name:   "request_id",
					Value:  `"req_9f2c41d07b"`,
					Kind:   payload.String,
					Type:   "string",
					Ranges: []payload.Range{{From: 0, To: 16}},
				},
				{
					Number: 2,
					Name:   "tenant_id",
					Value:  "48213",
					Kind:   payload.Number,
					Type:   "int64",
					Ranges: []payload.Range{{From: 16, To: 20}},
				},
				{Number: 3, Name: "to", Type: "EmailAddress", Ranges: []payload.Range{{From: 20, To: 56}}, Children: []payload.Node{
					{
						Number: 1,
						Name:   "address",
						Value:  `"dana@example.com"`,
						Kind:   payload.String,
						Type:   "string",
						Ranges: []payload.Range{{From: 22, To: 40}},
					},
					{
						Number: 2,
						Name:   "display_name",
						Value:  `"Dana Whitfield"`,
						Kind:   payload.String,
						Type:   "string",
						Ranges: []payload.Range{{From: 40, To: 56}},
					},
				}},
				{
					Number: 4,
					Name:   "template",
					Type:   "TemplateRef",
					Ranges: []payload.Range{{From: 56, To: 77}},
					Children: []payload.Node{
						{
							Number: 1,
							Name:   "name",
							Value:  `"welcome_v3"`,
							Kind:   payload.String,
							Type:   "string",
							Ranges: []payload.Range{{From: 58, To: 70}},
						},
						{
							Number: 2,
							Name:   "locale",
							Value:  `"en-GB"`,
							Kind:   payload.String,
							Type:   "string",
							Ranges: []payload.Range{{From: 70, To: 77}},
						},
						{
							Number: 3, Name: "version", Value: "0", Kind: payload.Number, Type: "uint32",
							Note: "default, not on the wire",
						},
					},
				},
				{
					Number: 5,
					Name:   "variables",
					Note:   "2 entries",
					Type:   "map<string, string>",
					Ranges: []payload.Range{{From: 77, To: 97}, {From: 97, To: 111}},
					Children: []payload.Node{
						{Name: `"first_name"`, Value: `"Dana"`, Kind: payload.String, Ranges: []payload.Range{{From: 77, To: 97}}},
						{Name: `"plan"`, Value: `"team"`, Kind: payload.String, Ranges: []payload.Range{{From: 97, To: 111}}},
					},
				},
				{
					Number: 6,
					Name:   "priority",
					Value:  "PRIORITY_HIGH",
					Kind:   payload.Enum,
					Note:   "2",
					Type:   "Priority",
					Ranges: []payload.Range{{From: 111, To: 113}},
				},
				{
					Number: 7,
					Name:   "created_at",
					Value:  "2026-11-20 06:52:14.208 UTC",
					Kind:   payload.Number,
					Note:   "2 h ago",
					Type:   "Timestamp",
					Ranges: []payload.Range{{From: 113, To: 126}},
				},
				{
					Number: 9,
					Name:   "idempotency_key",
					Value:  "5b1e7ac0 9d3f44e2 a6b18c20 f7e9d413",
					Kind:   payload.Number,
					Note:   "16 B",
					Type:   "bytes",
					Ranges: []payload.Range{{From: 126, To: 144}},
				},
				{
					Number:  21,
					Unknown: true,
					Value:   `1: "batsh", 2: 2002`,
					Note:    "reads as message",
					Type:    "length-delimited",
					Ranges:  []payload.Range{{From: 144, To: 157}},
				},
			},
			From:  "the type property, set notify 1f2e3d4c",
			Bytes: sampleHex("template", 56, 77),
		},
		JSON: JSON{
			Text: "{\n  \"requestId\": \"req_9f2c41d07b\",\n  \"tenantId\": \"48213\",\n  \"priority\": \"PRIORITY_HIGH\",\n  \"attempt\": -1.5e3,\n  \"ok\": true,\n  \"note\": \"say \\\"hi\\\"\"\n}",
			Notes: []string{
				"JSON omits 1 unknown field (no. 21, 10 bytes). Requeue sends the stored bytes, so nothing is lost.",
			},
		},
		Raw: Raw{
			Layers: []RawLayer{
				{"Protobuf", 157, LetterURL(sampleID(0), "", TabRaw), true},
				{"As received, base64", 212, LetterURL(sampleID(0), "", TabRaw) + "&layer=0", false},
			},
			Hex: *sampleHex("", 0, 0),
			Steps: []payload.Step{
				{OK: true, Text: "base64, standard alphabet, padded"},
				{OK: false, Text: "gzip, zstd, snappy: no magic bytes"},
				{OK: false, Text: "JSON: first byte is 0x0a"},
				{OK: true, Text: "protobuf by the binding of email-queue, whole body used"},
			},
		},
		Attempts: []deadletter.Attempt{
			{
				Letter: sampleID(0), Number: 1, Queue: "email-queue", Sends: 1, Outcome: deadletter.OutcomeCameBack,
				At: published.Add(10500 * time.Millisecond), ClosedAt: published.Add(11 * time.Second),
				Back: &deadletter.Return{
					At: published.Add(11 * time.Second), Queue: "email-queue", Reason: "rejected", Copies: 1,
				},
			},
			{
				Letter: sampleID(0), Number: 2, Queue: "email-queue", Sends: 2, Operation: 76,
				Outcome: deadletter.OutcomeReturned, Detail: "312 NO_ROUTE", At: published.Add(115 * time.Second),
				ClosedAt: published.Add(115003 * time.Millisecond),
			},
		},
		History: []deadletter.Event{
			{Letter: sampleID(0), At: published, Kind: "received", Actor: "dlo", Detail: "157 B from dlo.letters"},
			{
				Letter: sampleID(0), Operation: 76, At: published.Add(115 * time.Second), Kind: "requeue requested",
				Actor: "local", Detail: "fixed in 2026.11.20-2",
			},
		},
		Explained: true,
		Steps: []rules.Step{
			{Rule: "billing", Clauses: []rules.Clause{sampleClause("queue", "billing-*", false)}},
			{Rule: "webhooks 410", Clauses: []rules.Clause{sampleClause("queue", "email-*", true), sampleClause("error", "*410 Gone*", false)}},
			{Rule: "email", Matched: true, Applies: true, Clauses: []rules.Clause{sampleClause("queue", "email-queue", true)}},
			{Rule: "noise", Matched: true, Clauses: []rules.Clause{sampleClause("header x-source", "*", true)}},
			{Rule: "poison"},
			{Rule: "default", Matched: true},
		},
		Chosen: "acme.notify.v1.EmailRequested",
		Candidates: []payload.Match{
			{Type: "acme.notify.v1.EmailRequested", Score: 0.97, Why: []string{"Bound to email-queue. 8 of 9 fields known, round-trips."}},
			{Type: "acme.notify.v1.PushRequested", Score: 0.61, Why: []string{"Field 6 is out of enum range, 4 unknown fields."}},
			{Type: "acme.legacy.Envelope", Score: 0.34, Why: []string{"All bytes fit, but only as 1 string and 8 unknown fields."}},
		},
		Types: TypeChoice{
			May:      true,
			Readable: true,
			Names:    []string{"acme.notify.v1.EmailRequested", "acme.notify.v1.PushRequested"},
			Unnamed:  61,
			Picks: []deadletter.Pick{
				{
					ID: 7, Group: 418, Binding: deadletter.Binding{Type: "acme.notify.v1.EmailRequested"}, By: "Lena Sato",
					At: now.Add(-2 * time.Hour), Reason: "the vendor says so",
				},
				{
					ID: 3, Binding: deadletter.Binding{Queue: "email-*", Key: "user.#", Type: "acme.notify.v1.PushRequested"}, By: "local",
					At: now.Add(-26 * time.Hour),
				},
			},
		},
		Layers: []Span{{Text: " protobuf, 212 B base64"}},
	}
	return p
}

// sampleReported returns the page of a letter whose consumer reported an error.
func sampleReported() LetterPage {
	p := sampleLetter(TabDecoded)
	p.Letter.Annotation = &deadletter.Failure{
		By: deadletter.ByAnnotation, Type: "TemplateMissing", Message: `template "welcome_v3" not found`,
		Service: "mail-worker", Version: "2026.11.20-1", FailedAt: p.Letter.DiedAt,
		Stack: "TemplateMissing: template \"welcome_v3\" not found\n\tat render (mail.js:41)\n\tat consume (worker.js:12)",
	}
	p.Said = deadletter.Failure{By: "Celery", ID: "6c2a41d0", Queue: "mail", Attempts: 3}
	return p
}

func sampleUndecoded() LetterPage {
	p := sampleLetter(TabDecoded)
	p.Letter.Type, p.Letter.State, p.Letter.Why, p.Letter.Error, p.Candidates = "", deadletter.StateHeld, "returned by the broker: no such queue (312 NO_ROUTE)", "", nil
	p.Types = TypeChoice{May: true, Names: p.Types.Names}
	p.Decoded = Decoded{
		NoSchema: true,
		Title:    "Protobuf without a schema.",
		Note:     "Shown without names. Field numbers and wire types are certain, the rest is a guess.",
		Nodes: []payload.Node{
			{
				Number:  1,
				Name:    "field 1",
				Unknown: true,
				Value:   `"req_9f2c41d07b"`,
				Note:    "a guess: text",
				Type:    "length-delimited",
				Ranges:  []payload.Range{{From: 0, To: 16}},
			},
			{
				Number:  2,
				Name:    "field 2",
				Unknown: true,
				Value:   "48213",
				Note:    "a guess",
				Type:    "varint",
				Ranges:  []payload.Range{{From: 16, To: 20}},
			},
			{
				Number:  3,
				Name:    "field 3",
				Unknown: true,
				Note:    "a guess: message",
				Type:    "length-delimited",
				Ranges:  []payload.Range{{From: 20, To: 56}},
				Children: []payload.Node{
					{
						Number:  1,
						Name:    "field 1",
						Unknown: true,
						Value:   `"dana@example.com"`,
						Note:    "a guess: text",
						Type:    "length-delimited",
						Ranges:  []payload.Range{{From: 22, To: 40}},
					},
				},
			},
		},
		Bytes: sampleHex("", 22, 40),
	}
	return p
}

// sampleAmbiguous returns the page of a letter that 142 types decode equally well.
func sampleAmbiguous() LetterPage {
	p := sampleUndecoded()
	p.Chosen, p.Tied = "", 142
	p.Decoded.Title, p.Decoded.Note = "142 types fit equally well.", "Ambiguous: acme.notify.v1.EmailRequested, acme.notify.v1.PushRequested, acme.audit.v1.Record and 139 more."
	for _, name := range []string{
		"notify.v1.EmailRequested", "notify.v1.PushRequested", "audit.v1.Record", "billing.v1.Invoice",
		"billing.v1.Paid", "cdn.v1.Purge", "cdn.v1.Warm", "search.v1.Index",
	} {
		p.Candidates = append(p.Candidates, payload.Match{
			Type: "acme." + name, Score: 0.9, Why: []string{"whole body used, 3 of 3 fields present"},
		})
	}
	return p
}

// sampleMasked returns the page of a letter with a masked address, a masked header, and a name that
// the viewer has revealed.
func sampleMasked(tab Tab) LetterPage {
	p := sampleLetter(tab)
	to := p.Decoded.Nodes[2].Children
	to[0].Value, to[0].Kind, to[0].Masked = "••••", payload.Message, true
	p.RevealedNode = "2.1"
	rows := p.Decoded.Bytes.Rows
	rows[1].Hex, rows[1].ASCII = "10 d5 f8 02 1a 22 0a 10  •• •• •• •• •• •• •• ••", "·····\"··••••••••"
	rows[2].Hex, rows[2].ASCII = "•• •• •• •• •• •• •• ••  12 0e •• •• •• •• •• ••", "••••••••··••••••"
	rows[3].Hex = "•• •• •• •• •• •• •• ••" + rows[3].Hex[23:]
	rows[3].ASCII = "••••••••" + string([]rune(rows[3].ASCII)[8:])
	p.Raw.Hex, p.Raw.Layers = *p.Decoded.Bytes, p.Raw.Layers[:1]
	p.Letter.Properties.Headers["authorization"] = "••••"
	p.MaskedBody, p.MaskedHeaders, p.MayReveal = true, map[string]bool{"authorization": true, "message-id": true}, true
	if tab == TabHeaders {
		p.Revealed = "message-id"
	}
	return p
}

// sampleByHand returns the page for copying a letter in the given form.
func sampleByHand(f Form) ByHandPage {
	l := sampleLetter(TabDecoded).Letter
	p := ByHandPage{
		Shell: sampleShell("Copy letter 79c3aeae", SectionLetters, CopyURL(l.ID, "state:dead", f)), Letter: l.ID,
		Query: "state:dead", Form: f,
	}
	sent, _ := deadletter.Sanitise(l.Properties)
	switch f {
	case FormCurl:
		p.Copy = Curl(l.Origin(), sent, l.Body)
	case FormAdmin:
		p.Copy = Admin(l.Origin(), sent, l.Body)
	default:
		p.Copy, _ = JSONCopy(map[string]any{"id": l.ID, "queue": l.Queue})
	}
	return p
}

// sampleWaiting returns the page of a letter whose second attempt waited in the broker, and whose
// third attempt waits there now.
func sampleWaiting(tab Tab, queue string) LetterPage {
	p := sampleLetter(tab)
	p.Letter.State, p.Letter.Why, p.Letter.DueAt, p.Letter.WaitsIn = deadletter.StateScheduled, "retry 3 of 3 in 16m40s", now.Add(
		4*time.Minute,
	), queue
	second := &p.Attempts[1]
	second.Outcome, second.Detail, second.WaitsIn, second.WaitUntil = deadletter.OutcomeCameBack, "", "dlo.wait.100000", second.At.Add(
		100*time.Second,
	)
	second.Back = &deadletter.Return{At: second.WaitUntil.Add(time.Second), Queue: "email-queue", Reason: "rejected"}
	p.Attempts = append(p.Attempts, deadletter.Attempt{
		Letter: sampleID(0), Number: 3, Queue: "email-queue", Sends: 1, Outcome: deadletter.OutcomeConfirmed,
		At: now.Add(-12 * time.Minute), ClosedAt: now.Add(-12 * time.Minute), WaitsIn: "dlo.wait.1000000",
		WaitUntil: p.Letter.DueAt,
	})
	if queue != "" {
		p.Attempts[2].WaitsIn = queue
	}
	return p
}

func sampleClause(field, want string, fits bool) rules.Clause {
	return rules.Clause{Condition: rules.Condition{Field: field, Want: want}, Fits: fits}
}
