package view

import (
	"fmt"
	"strings"
	"time"

	"github.com/a-h/templ"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// The pages of the tests: the words of the design's mock, and the same pages full of what a hostile publisher would send.

var now = time.Date(2026, 11, 20, 9, 14, 0, 0, time.UTC)

func sampleShell(title string, section Section, path string) Shell {
	return Shell{
		Title: title, Section: section, Path: path, Actor: "local", Running: 1, Live: true, Now: now,
		Brokers: []Broker{{Name: "main", VHost: "/", Up: true, Since: now.Add(-time.Hour), Detail: "RabbitMQ 4.3.6", Inboxes: []string{"dlo.letters"}}},
	}
}

func sampleID(n int) deadletter.ID {
	return deadletter.ID(fmt.Sprintf("019a9f3e-5b1e-7ac0-9d3f-44e2%08x", 0x79c3aeae+n*0x1021347))
}

func sampleLetters() LettersPage {
	p := LettersPage{
		Shell: sampleShell("Letters", SectionLetters, "/letters?q=state%3Adead+queue%3Awebhook-queue%2Csms-queue"),
		Query: "state:dead queue:webhook-queue,sms-queue", States: []deadletter.State{deadletter.StateDead},
		Tokens: []Token{
			{"state:dead", LettersURL("queue:webhook-queue,sms-queue", "", "")},
			{"queue:webhook-queue,sms-queue", LettersURL("state:dead", "", "")},
		},
		Total: 1341, Exact: true, Older: "019a9f3e", InStore: 2705,
	}
	link := LettersURL("state:dead", "", "")
	for _, f := range []struct {
		title  string
		values []FacetValue
	}{
		{"State", []FacetValue{{"Dead", 1341, true, link}, {"Scheduled", 31, false, link}, {"Requeued", 4120, false, link}, {"Discarded", 214, false, link}}},
		{"Queue", []FacetValue{{"webhook-queue", 1284, true, link}, {"sms-queue", 57, true, link}, {"cdn-purge", 640, false, link}, {"email-queue", 312, false, link}}},
		{"Type", []FacetValue{{"WebhookDelivery", 1284, false, link}, {"SmsRequested", 57, false, link}, {"no type", 0, false, link}}},
		{"Reason", []FacetValue{{"rejected", 1341, false, link}, {"expired", 0, false, link}}},
	} {
		p.Facets = append(p.Facets, Facet{Title: f.title, Values: f.values})
	}
	p.Facets[1].More = 12
	for i := range 16 {
		r := deadletter.Row{
			ID: sampleID(i), State: deadletter.StateDead, Broker: "main", VHost: "/", Queue: "webhook-queue", Reason: "rejected", Type: "acme.hooks.v1.WebhookDelivery",
			Group: 402, Attempts: 3, ReceivedAt: now.Add(-time.Duration(i*i+1) * 21 * time.Second), DiedAt: now.Add(-time.Minute), Size: 340 + 97*i,
			Summary: `url: "https://hooks.orbitcrm.example/v2/events"`, Error: "endpoint answered 410 Gone",
		}
		if i%5 == 3 {
			r.Queue, r.Type, r.Group, r.Attempts = "sms-queue", "acme.sms.v1.SmsRequested", 409, 2
			r.Summary, r.Error = `to: "+44 •••• 286", body: "Your code is…"`, "carrier refused: 30007 filtered"
		}
		p.Rows = append(p.Rows, r)
	}
	return p
}

func sampleAllStates() LettersPage {
	p := sampleLetters()
	p.Query, p.States, p.Tokens, p.Exact, p.Total, p.Newer = "", nil, nil, false, 10_000, "x"
	for i := range p.Rows {
		p.Rows[i].State = deadletter.States[i%len(deadletter.States)]
	}
	p.Rows[1].WaitsIn = "dlo.wait.1000"
	p.Rows[3].Why = "returned by the broker: no such queue"
	p.Rows[6].Unverified = true
	return p
}

func sampleConfirm(v deadletter.Verb) ConfirmPage {
	p := ConfirmPage{
		Shell: sampleShell("Requeue", SectionLetters, "/letters/confirm"), Action: v, Eligible: 133, Key: "c0ffee", Return: LettersURL("state:dead", "", ""), Until: "for 7 days",
		Queues: []ConfirmQueue{
			{Broker: "main", VHost: "/", Queue: "webhook-queue", Letters: 120, Known: true, Exists: true, Consumers: 4, Depth: 6},
			{Broker: "main", VHost: "/", Queue: "sms-queue", Letters: 10, Consumers: -1, Depth: -1},
			{Broker: "main", VHost: "/", Queue: "old-queue", Letters: 3, Known: true, Warning: "The queue does not exist: these letters will be held as “no target”."},
		},
		Skipped: []ConfirmSkip{{Reason: "already requeued, being watched", Letters: 2, Examples: []deadletter.ID{sampleID(1), sampleID(2)}}},
	}
	for i := range 135 {
		p.IDs = append(p.IDs, sampleID(i))
	}
	return p
}

var sampleBody = []byte("\x0a\x0ereq_9f2c41d07b\x10\xd5\xf8\x02\x1a\x22\x0a\x10dana@example.com\x12\x0eDana Whitfield\x22\x13\x0a\x0awelcome_v3\x12\x05en-GB*\x12\x0a\x0afirst_name\x12\x04Dana*\x0c\x0a\x04plan\x12\x04team0\x02:\x0b\x08\x9e\xdc\xff\xd7\x06\x10\x80\xa8\x97cJ\x10[\x1ez\xc0\x9d?D\xe2\xa6\xb1\x8c \xf7\xe9\xd4\x13\xaa\x01\x0a\x0a\x05batsh\x10\xd2\x0f")

func sampleHex(title string, from, to int) *Hex {
	h := &Hex{Title: title, Total: len(sampleBody), From: from, To: to}
	for at := 0; at < len(sampleBody); at += 16 {
		row := HexRow{Offset: fmt.Sprintf("%04x", at), From: at}
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

func hostileHex(bad string) *Hex {
	return &Hex{Title: bad, Total: 1 << 40, Note: bad, From: 3, To: 4000, Rows: slicesRepeat(HexRow{Offset: "ffffffff", Hex: strings.Repeat("22 ", 16), ASCII: strings.Repeat(`"`, 16)}, 10_000)}
}

func sampleLetter(tab Tab) LetterPage {
	death := func(queue, reason string, count int64, at time.Time) deadletter.Table {
		return deadletter.Table{"queue": queue, "reason": reason, "count": count, "exchange": "notify", "time": at, "routing-keys": []any{"email.welcome"}}
	}
	published := time.Date(2026, 11, 20, 6, 52, 14, 0, time.UTC)
	props := deadletter.Properties{
		ContentType: "application/x-protobuf", ContentEncoding: "base64", DeliveryMode: 2, MessageID: "req_9f2c41d07b", Type: "EmailRequested", AppID: "notifications", Timestamp: published,
		Headers: deadletter.Table{
			"x-death": []any{death("email-queue", "rejected", 1, published)}, "x-first-death-queue": "email-queue", "x-first-death-reason": "rejected",
			"x-error-class": "TemplateMissing", "x-error-message": `template "welcome_v3" not found`, "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
			"retries": int32(3), "trial": true, "tags": []any{"a", int64(7), nil}, "blob": []byte{0, 1, 254}, "price": deadletter.Decimal{Scale: 2, Value: 1995},
		},
	}
	arrived := props
	arrived.Headers = deadletter.Table{"dlo-id": string(sampleID(0)), "dlo-token": "00112233445566778899aabbccddeeff", "dlo-attempt": int64(2), "x-death": []any{death("email-queue", "rejected", 1, published.Add(2*time.Minute))}}
	for k, v := range props.Headers {
		if _, ok := arrived.Headers[k]; !ok {
			arrived.Headers[k] = v
		}
	}
	p := LetterPage{
		Shell: sampleShell("Letter 79c3aeae", SectionLetters, LetterURL(sampleID(0), "state:dead", tab)), Query: "state:dead", Older: sampleID(4), Tab: tab,
		GroupTitle: `TemplateMissing: template "welcome_v3" not found`,
		ErrorFrom:  []Span{{Text: "header "}, {Text: "x-error-message", Code: true}},
		Letter: deadletter.Letter{
			ID: sampleID(0), State: deadletter.StateDead, Origin: deadletter.Origin{Broker: "main", VHost: "/", Queue: "email-queue", Exchange: "notify", RoutingKey: "email.welcome"},
			Inbox: "dlo.letters", Reason: "rejected", Properties: props, Arrived: arrived, ArrivedBy: deadletter.Route{Exchange: "dlo.dlx", RoutingKey: "email.welcome"}, Body: sampleBody,
			Type: "acme.notify.v1.EmailRequested", Group: 418, Severity: deadletter.SeverityPage, Rule: "email", Error: `TemplateMissing: template "welcome_v3" not found`,
			Why: "retries used up: 3 of 3", Attempts: 3, Size: 157, ReceivedAt: published.Add(400 * time.Millisecond), DiedAt: published, ChangedAt: now.Add(-2 * time.Hour),
		},
		Decoded: Decoded{
			Type: "acme.notify.v1.EmailRequested", Score: "0.97, round-trips",
			Nodes: []TreeNode{
				{Number: 1, Name: "request_id", Value: `"req_9f2c41d07b"`, Kind: KindText, Type: "string"},
				{Number: 2, Name: "tenant_id", Value: "48213", Kind: KindNumber, Type: "int64"},
				{Number: 3, Name: "to", Type: "EmailAddress", Children: []TreeNode{
					{Number: 1, Name: "address", Value: `"dana@example.com"`, Kind: KindText, Type: "string"},
					{Number: 2, Name: "display_name", Value: `"Dana Whitfield"`, Kind: KindText, Type: "string"},
				}},
				{Number: 4, Name: "template", Type: "TemplateRef", Children: []TreeNode{
					{Number: 1, Name: "name", Value: `"welcome_v3"`, Kind: KindText, Type: "string", InError: true},
					{Number: 2, Name: "locale", Value: `"en-GB"`, Kind: KindText, Type: "string"},
					{Number: 3, Name: "version", Value: "0", Kind: KindNumber, Type: "uint32", Note: "default, not on the wire"},
				}},
				{Number: 5, Name: "variables", Note: "2 entries", Type: "map<string, string>", Children: []TreeNode{
					{Name: `"first_name"`, Value: `"Dana"`, Kind: KindText}, {Name: `"plan"`, Value: `"team"`, Kind: KindText},
				}},
				{Number: 6, Name: "priority", Value: "PRIORITY_HIGH", Kind: KindWord, Note: "2", Type: "Priority"},
				{Number: 7, Name: "created_at", Value: "2026-11-20 06:52:14.208 UTC", Kind: KindNumber, Note: "2 h ago", Type: "Timestamp"},
				{Number: 9, Name: "idempotency_key", Value: "5b1e7ac0 9d3f44e2 a6b18c20 f7e9d413", Kind: KindNumber, Note: "16 B", Type: "bytes"},
				{Number: 21, Unknown: true, Value: `1: "batsh", 2: 2002`, Note: "reads as message", Type: "length-delimited"},
			},
			From:  "the type property, set notify 1f2e3d4c",
			Bytes: sampleHex("template", 56, 77),
		},
		JSON: JSON{
			Text:  "{\n  \"requestId\": \"req_9f2c41d07b\",\n  \"tenantId\": \"48213\",\n  \"priority\": \"PRIORITY_HIGH\",\n  \"attempt\": -1.5e3,\n  \"ok\": true,\n  \"note\": \"say \\\"hi\\\"\"\n}",
			Notes: []string{"JSON leaves out 1 unknown field (no. 21, 10 bytes). Requeue sends the stored bytes, so nothing is lost."},
		},
		Raw: Raw{
			Layers: []RawLayer{{"Protobuf", 157, LetterURL(sampleID(0), "", TabRaw), true}, {"As received, base64", 212, LetterURL(sampleID(0), "", TabRaw) + "&layer=0", false}},
			Hex:    *sampleHex("", 0, 0),
			Steps:  []ReadStep{{true, "base64, standard alphabet, padded"}, {false, "gzip: no magic bytes"}, {false, "JSON: first byte is 0x0a"}, {true, "protobuf by the binding of email-queue, whole body used"}},
		},
		Attempts: []deadletter.Attempt{
			{
				Letter: sampleID(0), Number: 1, Queue: "email-queue", Sends: 1, Outcome: deadletter.OutcomeCameBack, At: published.Add(10500 * time.Millisecond), ClosedAt: published.Add(11 * time.Second),
				Back: &deadletter.Return{At: published.Add(11 * time.Second), Queue: "email-queue", Reason: "rejected", Copies: 1},
			},
			{Letter: sampleID(0), Number: 2, Queue: "email-queue", Sends: 2, Operation: 76, Outcome: deadletter.OutcomeReturned, Detail: "312 NO_ROUTE", At: published.Add(115 * time.Second), ClosedAt: published.Add(115003 * time.Millisecond)},
		},
		History: []deadletter.Event{
			{Letter: sampleID(0), At: published, Kind: "received", Actor: "dlo", Detail: "157 B from dlo.letters"},
			{Letter: sampleID(0), Operation: 76, At: published.Add(115 * time.Second), Kind: "requeue asked for", Actor: "local", Detail: "fixed in 2026.11.20-2"},
		},
		Candidates: []Candidate{
			{"acme.notify.v1.EmailRequested", 0.97, "Bound to email-queue. 8 of 9 fields known, round-trips.", true},
			{"acme.notify.v1.PushRequested", 0.61, "Field 6 is out of enum range, 4 unknown fields.", false},
			{"acme.legacy.Envelope", 0.34, "All bytes fit, but only as 1 string and 8 unknown fields.", false},
		},
		Layers: []Span{{Text: " protobuf, 212 B base64"}},
	}
	return p
}

func sampleUndecoded() LetterPage {
	p := sampleLetter(TabDecoded)
	p.Letter.Type, p.Letter.State, p.Letter.Why, p.Letter.Error, p.Candidates = "", deadletter.StateHeld, "returned by the broker: no such queue (312 NO_ROUTE)", "", nil
	p.Decoded = Decoded{
		Title: "No registered type fits.", Note: "Shown without names. Field numbers and wire types are certain, the rest is a guess.",
		Nodes: []TreeNode{
			{Number: 1, Value: `"exp_7731"`, Kind: KindText, Type: "LEN, looks like text"},
			{Number: 2, Value: "1795161600", Kind: KindNumber, Type: "VARINT, may be a time: 20 Nov 08:00"},
			{Number: 3, Note: "2 fields", Type: "LEN, looks like a message", Children: []TreeNode{{Number: 1, Value: "7", Kind: KindNumber, Type: "VARINT"}}},
		},
		Left: 12,
	}
	return p
}

func sampleOperation(state deadletter.OperationState, action deadletter.Verb) OperationPage {
	counts := func(good, failed, skipped, back, pending int) map[deadletter.Result]int {
		done := deadletter.ResultConfirmed
		if action != deadletter.VerbRequeue {
			done = deadletter.ResultChanged
		}
		return map[deadletter.Result]int{done: good, deadletter.ResultFailed: failed, deadletter.ResultSkipped: skipped, deadletter.ResultCameBack: back, deadletter.ResultPending: pending}
	}
	o := deadletter.Operation{
		ID: 77, Action: action, State: state, By: "local", Through: "page", Reason: "endpoints restored by vendor", CreatedAt: now.Add(-62 * time.Second), Total: 1341,
		Counts: counts(803, 3, 3, 3, 529),
		Queues: []deadletter.OperationQueue{
			{Broker: "main", VHost: "/", Queue: "webhook-queue", Counts: counts(749, 3, 3, 3, 526)},
			{Broker: "main", VHost: "/", Queue: "sms-queue", Counts: counts(54, 0, 0, 0, 3)},
		},
	}
	if state != deadletter.OperationRunning {
		o.FinishedAt = now.Add(-5 * time.Second)
	}
	recent := o
	recent.ID, recent.State, recent.Action, recent.FinishedAt = 76, deadletter.OperationDone, deadletter.VerbDiscard, now.Add(-time.Hour)
	recent.CreatedAt, recent.Counts, recent.Total = now.Add(-20*time.Hour), map[deadletter.Result]int{deadletter.ResultChanged: 23}, 23
	return OperationPage{
		Shell: sampleShell("Operation O-77", SectionOperations, "/operations/O-77"), Operation: o, Next: "x", Recent: []deadletter.Operation{recent},
		Letters: []deadletter.OperationLetter{
			{Letter: sampleID(1), Queue: "webhook-queue", Result: deadletter.ResultFailed, Reason: "returned by the broker: no such queue (312 NO_ROUTE)"},
			{Letter: sampleID(2), Queue: "webhook-queue", Result: deadletter.ResultSkipped, Reason: "discarded after the operation began"},
			{Letter: sampleID(3), Queue: "webhook-queue", Result: deadletter.ResultCameBack, Reason: "rejected"},
		},
	}
}

func sampleOperations() OperationsPage {
	p := sampleOperation(deadletter.OperationRunning, deadletter.VerbRequeue)
	cancelled := p.Operation
	cancelled.ID, cancelled.State = 75, deadletter.OperationCancelled
	return OperationsPage{Shell: sampleShell("Operations", SectionOperations, "/operations"), Operations: append([]deadletter.Operation{p.Operation, cancelled}, p.Recent...), Older: 75, First: true}
}

// pages is every page in every state that looks different.
func pages() map[string]templ.Component {
	empty := LettersPage{Shell: sampleShell("Letters", SectionLetters, "/letters?q=state%3Adead"), Query: "state:dead", Tokens: []Token{{"state:dead", "/letters?q="}}, States: []deadletter.State{deadletter.StateDead}, Exact: true, InStore: 2705}
	noMatch := empty
	noMatch.Query, noMatch.Tokens = "state:dead type:InvoicePaid", append(empty.Tokens, Token{"type:InvoicePaid", "/letters?q=state%3Adead"})
	mistake := LettersPage{Shell: empty.Shell, Query: "state:daed queue:sms", QueryError: &QueryError{Pos: 6, Want: `there is no state "daed"; the states are received, scheduled, dead`}}
	first := LettersPage{Shell: empty.Shell, InStore: 0, Exact: true, FirstRun: &FirstRun{Exchange: "dlo.dlx", Inbox: "dlo.letters", VHost: "/"}}
	down := sampleLetters()
	down.Theme = ThemeDark
	down.Brokers = []Broker{
		{Name: "main", VHost: "/", Since: now.Add(-42 * time.Second), NextTry: now.Add(8 * time.Second), Inboxes: []string{"dlo.letters", "orders_error"}, Detail: "connection refused"},
		{Name: "second", VHost: "shop", Up: true},
	}
	down.Problems = []Problem{{"The disk is nearly full: 200 MiB free.", "Nothing is taken from the inboxes until there is room. Letters wait in RabbitMQ."}}
	confirmOne := sampleConfirm(deadletter.VerbRequeue)
	confirmOne.Eligible, confirmOne.Queues, confirmOne.Skipped, confirmOne.IDs = 1, confirmOne.Queues[:1], nil, confirmOne.IDs[:1]
	confirmOne.Queues[0].Letters = 1
	refused := sampleConfirm(deadletter.VerbDiscard)
	refused.Problem, refused.Typed, refused.Reason = "Type 133 to discard 133 letters.", "13", "test data"
	none := sampleConfirm(deadletter.VerbRestore)
	none.Eligible, none.Queues = 0, nil
	noOperations := OperationsPage{Shell: sampleShell("Operations", SectionOperations, "/operations"), First: true}
	noOperations.Running = 0

	all := map[string]templ.Component{
		"letters": Letters(sampleLetters()), "letters-all-states": Letters(sampleAllStates()), "letters-empty": Letters(empty), "letters-no-match": Letters(noMatch),
		"letters-mistake": Letters(mistake), "letters-first-run": Letters(first), "letters-broker-down": Letters(down),
		"confirm-requeue": Confirm(sampleConfirm(deadletter.VerbRequeue)), "confirm-discard": Confirm(sampleConfirm(deadletter.VerbDiscard)), "confirm-restore": Confirm(sampleConfirm(deadletter.VerbRestore)),
		"confirm-one": Confirm(confirmOne), "confirm-refused": Confirm(refused), "confirm-none": Confirm(none),
		"letter-undecoded":   Letter(sampleUndecoded()),
		"operation":          Operation(sampleOperation(deadletter.OperationRunning, deadletter.VerbRequeue)),
		"operation-done":     Operation(sampleOperation(deadletter.OperationDone, deadletter.VerbDiscard)),
		"operation-stopped":  Operation(sampleOperation(deadletter.OperationCancelled, deadletter.VerbRestore)),
		"operations":         Operations(sampleOperations()),
		"operations-empty":   Operations(noOperations),
		"error-404":          Error(ErrorPage{Shell: sampleShell("Nothing here", "", "/nowhere"), Status: 404}),
		"error-with-details": Error(ErrorPage{Shell: sampleShell("Something broke", "", "/letters"), Status: 500, Detail: "the store did not answer", Name: "7f3a"}),
	}
	for _, status := range []int{400, 403, 405, 409, 413, 421, 503} {
		all[fmt.Sprintf("error-%d", status)] = Error(ErrorPage{Shell: sampleShell(ErrorTitle(status), "", "/"), Status: status})
	}
	for _, tab := range Tabs {
		all["letter-"+string(tab)] = Letter(sampleLetter(tab))
	}
	return all
}

// evil is text that tries everything at once.
const evil = `<script>alert(1)</script>"><img src=x onerror=alert(1)> javascript:alert(1) ' onmouseover='alert(1) style="x" ` +
	"\x1b[31m\u202eright to left\u200b\x00\xff {{.}} </textarea></title>"

// hostilePages has evil, or n bytes of it, in every field that comes from a letter or from a person.
func hostilePages(n int) map[string]templ.Component {
	bad := strings.Repeat(evil, n/len(evil)+1)[:n]
	id := sampleID(0)
	shell := sampleShell(bad, SectionLetters, LettersURL(bad[:min(n, 200)], "", ""))
	shell.Actor, shell.Theme = bad, ParseTheme(bad)
	shell.Brokers = []Broker{{Name: bad, VHost: bad, Detail: bad, Inboxes: []string{bad}}, {Name: bad, Up: true, Detail: bad}}
	shell.Problems = []Problem{{bad, bad}}
	row := deadletter.Row{ID: id, State: deadletter.State(bad), WaitsIn: bad, Broker: bad, VHost: bad, Queue: bad, Reason: bad, Type: bad, Group: 1, Exchange: bad, RoutingKey: bad, Summary: bad, Error: bad, Why: bad, Severity: deadletter.Severity(bad)}
	letters := LettersPage{Shell: shell, Query: bad[:min(n, 4096)], Tokens: []Token{{bad, LettersURL(bad[:min(n, 200)], "", "")}}, Total: 1, InStore: 1, Older: bad[:min(n, 100)], Newer: bad[:min(n, 100)]}
	for range 50 {
		letters.Rows = append(letters.Rows, row)
	}
	for _, f := range []string{"State", "Queue", "Type", "Reason"} {
		letters.Facets = append(letters.Facets, Facet{Title: f, Values: slicesRepeat(FacetValue{Label: bad, Count: 1, On: true, Link: LettersURL("queue:x", "", "")}, 12)})
	}
	mistake := letters
	mistake.QueryError, mistake.Rows = &QueryError{Pos: 3, Want: bad}, nil
	noMatch := letters
	noMatch.Rows, noMatch.Newer = nil, ""
	first := letters
	first.FirstRun = &FirstRun{Exchange: bad, Inbox: bad, VHost: bad[:min(n, 200)]}

	table := deadletter.Table{bad[:min(n, 255)]: bad, "x-death": []any{deadletter.Table{"queue": bad, "exchange": bad, "reason": bad, "count": int64(1) << 62, "routing-keys": []any{bad, bad, bad, bad, bad}}}, "nested": deadletter.Table{bad: []any{bad, []byte(bad)}}}
	props := deadletter.Properties{ContentType: bad, ContentEncoding: bad, Headers: table, CorrelationID: bad, ReplyTo: bad, Expiration: bad, MessageID: bad, Type: bad, UserID: bad, AppID: bad, Timestamp: now}
	letter := LetterPage{
		Shell: shell, Query: bad[:min(n, 4096)], Newer: id, Older: id, GroupTitle: bad, ErrorFrom: []Span{{Text: line(bad, 100)}, {Text: line(bad, 100), Code: true}},
		Letter: deadletter.Letter{
			ID: id, State: deadletter.State(bad), Origin: deadletter.Origin{Broker: bad, VHost: bad, Queue: bad, Exchange: bad, RoutingKey: bad}, Inbox: bad, Reason: bad,
			Properties: props, Arrived: deadletter.Properties{AppID: bad, Headers: deadletter.Table{"x-death": table["x-death"], "other": bad}}, ArrivedBy: deadletter.Route{Exchange: bad, RoutingKey: bad},
			Type: bad, Group: 1, Severity: deadletter.SeverityPage, Rule: bad, Error: bad, Why: bad, Twin: id, WaitsIn: bad,
		},
		Decoded: Decoded{Type: bad, Score: bad, Note: bad, Title: bad, Nodes: hostileTree(bad, 3, 12), Bytes: hostileHex(bad), Text: bad, Notes: []string{bad, bad}, From: bad, Kind: bad},
		JSON:    JSON{Text: `{"` + bad + `": "` + bad + bad + `"}`, Notes: []string{bad}},
		Raw:     Raw{Layers: []RawLayer{{Name: line(bad, 30), Link: "/x"}}, Hex: *hostileHex(bad), Steps: []ReadStep{{true, bad}, {false, bad}}},
	}
	for range 300 {
		letter.Attempts = append(letter.Attempts, deadletter.Attempt{Letter: id, Queue: bad, Outcome: deadletter.OutcomeKind(bad), Detail: bad, Sends: 2, At: now, Back: &deadletter.Return{At: now, Queue: bad, Reason: bad, Copies: 1}})
		letter.History = append(letter.History, deadletter.Event{Letter: id, Kind: bad, Actor: bad, Detail: bad, At: now})
		letter.Candidates = append(letter.Candidates, Candidate{Type: bad, Why: bad})
	}
	confirm := ConfirmPage{Shell: shell, Action: deadletter.VerbRequeue, Eligible: 1, Reason: bad[:min(n, 500)], Typed: bad[:min(n, 50)], Problem: bad, Key: "k", Return: "/letters", Until: line(bad, 100), IDs: []deadletter.ID{id}}
	operation := OperationPage{Shell: shell, Operation: deadletter.Operation{ID: 1, Action: deadletter.VerbRequeue, State: deadletter.OperationState(bad), By: bad, Through: bad, Reason: bad, Key: bad}}
	for range 100 {
		confirm.Queues = append(confirm.Queues, ConfirmQueue{Broker: bad, VHost: bad, Queue: bad, Warning: line(bad, 100)})
		operation.Operation.Queues = append(operation.Operation.Queues, deadletter.OperationQueue{Broker: bad, VHost: bad, Queue: bad})
	}
	confirm.Skipped = []ConfirmSkip{{Reason: bad, Letters: 1, Examples: []deadletter.ID{id}}}
	operation.Operation.Queues[0].VHost = "other"
	for range 50 {
		operation.Letters = append(operation.Letters, deadletter.OperationLetter{Letter: id, Queue: bad, Result: deadletter.Result(bad), Reason: bad})
	}
	all := map[string]templ.Component{
		"letters": Letters(letters), "letters-mistake": Letters(mistake), "letters-no-match": Letters(noMatch), "letters-first-run": Letters(first),
		"confirm": Confirm(confirm), "operation": Operation(operation), "operations": Operations(OperationsPage{Shell: shell, Operations: []deadletter.Operation{operation.Operation}}),
		"error": Error(ErrorPage{Shell: shell, Status: 500, Detail: bad, Name: bad}),
	}
	for _, tab := range Tabs {
		letter.Tab = tab
		all["letter-"+string(tab)] = Letter(letter)
	}
	return all
}

func hostileTree(bad string, depth, width int) []TreeNode {
	var nodes []TreeNode
	for i := range width {
		n := TreeNode{Number: i + 1, Name: bad, Value: bad, Kind: KindText, Note: bad, Type: bad, InError: i == 0, Unknown: i == 1}
		if depth > 0 {
			n.Children = hostileTree(bad, depth-1, width)
		}
		nodes = append(nodes, n)
	}
	return nodes
}

func slicesRepeat[T any](v T, n int) []T {
	out := make([]T, n)
	for i := range out {
		out[i] = v
	}
	return out
}
