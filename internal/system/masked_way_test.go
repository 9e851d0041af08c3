package system

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/storetest"
	"github.com/deadletteroffice/dlo/internal/testenv"
	"github.com/deadletteroffice/dlo/web/view"
	amqp "github.com/rabbitmq/amqp091-go"
	"google.golang.org/protobuf/encoding/protowire"
)

const paidSchema = `syntax = "proto3";
package shop.v1;
message Paid { string order_id = 1; Customer customer = 2; string pin = 3 [debug_redact = true]; string note = 4; int64 cents = 5; }
message Customer { string name = 1; string email = 2; }
`

// canaries are the values that nobody may see, by the kind of mask or letter. Each kind of mask has
// its own value.
var canaries = map[string]string{
	"header": "canaryheader71", "pattern in a body": "canarypattern72", "pattern in an error": "canarypattern73",
	"pattern in JSON": "canarypattern74", "type and field": "canaryfield75", "json": "canaryjson76",
	"debug_redact": "canaryredact77",
}

func canaryPaid() string {
	text := func(b []byte, num protowire.Number, s string) []byte {
		return protowire.AppendString(protowire.AppendTag(b, num, protowire.BytesType), s)
	}
	customer := text(text(nil, 1, "Dana Whitfield"), 2, canaries["type and field"])
	b := text(nil, 1, "order-48213")
	b = protowire.AppendBytes(protowire.AppendTag(b, 2, protowire.BytesType), customer)
	b = text(b, 3, canaries["debug_redact"])
	b = text(b, 4, "paid late, see "+canaries["pattern in a body"])
	return string(protowire.AppendVarint(protowire.AppendTag(b, 5, protowire.VarintType), 1999))
}

// watchman searches everything that dlo emits for the canaries, the masked values that nobody may
// see. It reports a canary in plain text, in hex and in base64.
type watchman struct {
	t *testing.T
	n int
}

func (s *watchman) checkText(where, text string) {
	s.t.Helper()
	s.n++
	if where == "" || text == "" {
		s.t.Errorf("%s: nothing was looked at", where)
	}
	if name, at := betrayed(text); name != "" {
		s.t.Errorf("%s holds the canary of %s: %.200q", where, name, text[max(0, at-100):])
	}
}

// betrayed looks in a text for a canary, which is a masked value that nobody may see. It returns
// the first canary and its position. It finds a canary in plain text, in hex, and in base64 at each
// of the three offsets.
func betrayed(text string) (name string, at int) {
	low := strings.ToLower(text)
	for name, canary := range canaries {
		forms := []string{canary, hex.EncodeToString([]byte(canary)), fmt.Sprintf("% x", canary)}
		for _, form := range forms {
			if at := strings.Index(low, form); at >= 0 {
				return name, at
			}
		}
		for skip := range 3 {
			inner := base64.RawStdEncoding.EncodeToString(append(make([]byte, skip), canary...))
			// cuts off the characters that depend on the bytes before and after the canary
			inner = inner[4*((skip+2)/3) : len(inner)/4*4-4]
			if at := strings.Index(text, inner); at >= 0 {
				return name, at
			}
		}
	}
	return "", 0
}

// TestNothingMaskedIsSeen sends letters that contain a canary in each kind of masked value. The
// letters die, are decoded and indexed. Other fields are edited, the letters are requeued and come
// back, and are then requeued again and exported. No canary may appear in anything that dlo emits.
// In the store, canaries may be only in received, edited and sent data. The worker must receive all
// of them.
func TestNothingMaskedIsSeen(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	testenv.Broker(t)
	_, amqpURL := testenv.VHost(t)
	schemas := t.TempDir()
	if err := os.WriteFile(filepath.Join(schemas, "paid.proto"), []byte(paidSchema), 0o600); err != nil {
		t.Fatal(err)
	}
	a := newAudit(t, amqpURL, "payments", nil)
	a.header = amqp.Table{
		"authorization":   "Bearer " + canaries["header"],
		"x-error-message": "declined: " + canaries["pattern in an error"], "x-tenant": "tenant-7",
	}
	var mu sync.Mutex
	came := map[string][]string{} // message id -> bodies and headers that dlo sent, in order
	a.refuse = func(d *amqp.Delivery) bool {
		attempt, ours := d.Headers[deadletter.HeaderAttempt]
		if !ours {
			return true
		}
		mu.Lock()
		defer mu.Unlock()
		came[d.MessageId] = append(came[d.MessageId], string(d.Body)+fmt.Sprint(d.Headers))
		return fmt.Sprint(attempt) == "1"
	}
	p := newChild(
		t, amqpURL,
		"default: {retry: {delays: []}}\nrequeue: {watch: 2s}\nsearch: {text: true, fields: [customer.name, note, amount]}\nschemas: {directory: "+schemas+"}\n"+`masking:
  - {header: authorization}
  - {pattern: "canarypattern[0-9]+"}
  - {type: "shop.*", field: customer.email}
  - {json: card.number}
`,
	)
	p.Start("")
	p.Draining()
	s := &watchman{t: t}
	events := p.stream("/events")
	a.work()
	jsonBody := fmt.Sprintf(
		`{"card": {"number": %q, "kind": "debit"}, "note": "late, %s", "amount": 5}`, canaries["json"],
		canaries["pattern in JSON"],
	)
	a.publish(2, func(i int) (string, string) { return []string{canaryPaid(), jsonBody}[i], fmt.Sprint(i) })
	settle := func(state string) {
		t.Helper()
		eventually(t, "both letters are "+state+" and indexed", func() bool {
			return p.count("letters", `state = $1`, state) == 2 && p.ask(`SELECT (SELECT count(*) FROM unindexed) +
				(SELECT count(*) FROM unread)`) == 0
		})
	}
	settle("dead")
	if n := p.count(`letters l JOIN types y ON y.id = l.type`, `y.name = 'shop.v1.Paid'`); n != 1 {
		t.Fatal("the protobuf letter is not read")
	}
	ids := p.ids(`SELECT id, random FROM letters ORDER BY id`)
	byBody := map[string]deadletter.ID{}
	for _, id := range ids {
		_, text := p.get("/api/v1/letters/" + string(id))
		kind := "json"
		if strings.Contains(text, "shop.v1.Paid") {
			kind = "protobuf"
		}
		byBody[kind] = id
	}
	if len(byBody) != 2 {
		t.Fatalf("%v", byBody)
	}

	ctx := t.Context()
	everywhere := func(when string) {
		t.Helper()
		paths := []string{
			"/letters?q=declined", "/metrics", "/letters/export?format=csv", "/letters/export", "/audit/export",
			"/api/v1/letters", "/api/v1/letters/facets", "/api/v1/letters/export",
			"/api/v1/letters/export?format=csv", "/api/v1/letters/histogram", "/api/v1/audit", "/api/v1/operations",
			"/api/v1/queues", "/api/v1/types", "/api/v1/rules", "/letters/complete?q=body.note:&at=10",
			"/letters/complete?q=header.authorization:&at=21",
		}
		for _, place := range view.Places {
			paths = append(paths, place.Path)
		}
		for _, id := range ids {
			for _, tab := range []string{"", "?tab=raw", "?tab=json", "?tab=headers", "?tab=history", "?tab=timeline"} {
				paths = append(paths, "/letters/"+string(id)+tab)
			}
			paths = append(
				paths, "/letters/"+string(id)+"/body", "/api/v1/letters/"+string(id),
				"/api/v1/letters/"+string(id)+"/body",
			)
		}
		for _, path := range paths {
			code, text := p.get(path)
			if code >= 500 || code == 404 {
				t.Errorf("%s: %d", path, code)
			}
			s.checkText(when+", "+path, text)
		}
		for _, id := range ids {
			out, _ := p.dlo(ctx, 0, "", "letters", "show", string(id))
			s.checkText(when+", letters show", out)
		}
		for _, args := range [][]string{
			{"letters", "list"},
			{"letters", "export"},
			{"letters", "export", "--format", "csv"},
			{"audit", "list"},
		} {
			out, _ := p.dlo(ctx, 0, "", args...)
			s.checkText(when+", "+strings.Join(args, " "), out)
		}
		// A query must not find letters by a masked value. It must find them by the values next to it.
		for _, q := range []string{
			canaries["pattern in a body"], canaries["pattern in an error"], canaries["pattern in JSON"],
			canaries["type and field"], canaries["json"], canaries["debug_redact"], canaries["header"], "canary*",
			"error:*canary*",
			"body.note:*canary*", "header.authorization:*canary*",
		} {
			code, text := p.get("/api/v1/letters/count?exact=1&q=" + url.QueryEscape(q))
			if code == 200 && !strings.Contains(text, `"count":0,`) {
				t.Errorf("%s, a search for %s: %s", when, q, text)
			}
		}
		for _, q := range []string{"declined", "late", "header.x-tenant:tenant-7"} {
			if _, text := p.get(
				"/api/v1/letters/count?exact=1&q=" + url.QueryEscape(q),
			); !strings.Contains(text, `"count":2,`) {
				t.Errorf("%s, a search for %s: %s", when, q, text)
			}
		}
	}
	everywhere("dead")

	// Fields next to masked values are edited, with a patch and with the revealed JSON. The edited
	// copies come back. After that, the letters are requeued as they are, and do not come back.
	revise := func(kind string, request map[string]any) {
		t.Helper()
		request["reason"], request["requeue"] = "the order is another one", true
		code, text := p.post("/api/v1/letters/"+string(byBody[kind])+"/revisions", request)
		if code != http.StatusCreated {
			t.Fatalf("%s: %d %s", kind, code, text)
		}
	}
	revise("protobuf", map[string]any{
		"patch": []map[string]any{{"op": "replace", "path": "/orderId", "value": "order-48214"}},
	})
	var shown struct {
		Decoded struct{ JSON json.RawMessage }
	}
	_, text := p.get("/api/v1/letters/" + string(byBody["json"]) + "?reveal=1")
	if err := json.Unmarshal([]byte(text), &shown); err != nil ||
		!bytes.Contains(shown.Decoded.JSON, []byte("amount")) {
		t.Fatalf("%v: %s", err, text)
	}
	revise("json", map[string]any{"text": strings.Replace(string(shown.Decoded.JSON), `5`, `6`, 1)})
	eventually(t, "the copies came back", func() bool { return p.count("attempts", `outcome = 'came back'`) == 2 })
	settle("dead")
	everywhere("edited and come back")
	p.startOperation(requeueAtOnce(ids))
	settle("settled")
	everywhere("settled")

	// The worker must have received every letter twice, unchanged except for the edit.
	mu.Lock()
	for id, list := range came {
		for _, text := range list {
			wanted := []string{"header", "pattern in an error", "json", "pattern in JSON"}
			if id == "0" {
				wanted = []string{
					"header", "pattern in an error", "type and field", "debug_redact", "pattern in a body",
				}
			}
			for _, name := range wanted {
				if !strings.Contains(text, canaries[name]) {
					t.Errorf("the worker does not get the canary of %s: %q", name, text)
				}
			}
			if !strings.Contains(text, map[string]string{"0": "order-48214", "1": `"amount":6`}[id]) {
				t.Errorf("the worker does not get the edit: %q", text)
			}
		}
		if len(list) != 2 {
			t.Errorf("message %s came %d times", id, len(list))
		}
	}
	mu.Unlock()

	// A person with the right to reveal asks for one masked value. The audit log must record which
	// field it was, and must not contain the value.
	code, text := p.post(
		"/api/v1/letters/"+string(byBody["protobuf"])+"/reveal", map[string]any{"field": "customer.email"},
	)
	if code != 200 || !strings.Contains(text, canaries["type and field"]) {
		t.Errorf("%d %s", code, text)
	}
	everywhere("revealed")
	s.checkText("the event stream", events())
	if code := p.Stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	s.checkText("the log", p.Log())
	p.noCanary(s)
	t.Logf("%d texts were looked at", s.n)
}

// stream reads a stream of events in the background. The returned function stops it and returns the
// events.
func (p *child) stream(path string) func() string {
	p.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	p.t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+path, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil || answer.StatusCode != 200 {
		p.t.Fatal(answer, err)
	}
	var text []byte
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer answer.Body.Close()
		text, _ = io.ReadAll(answer.Body)
	}()
	return func() string {
		cancel()
		<-done
		return string(text)
	}
}

// noCanary checks every column of every table in the store. Secret test values, which are called
// canaries, must be in the columns with received data, edits and sent data, and in no other column.
func (p *child) noCanary(s *watchman) {
	p.t.Helper()
	db, err := sql.Open("sqlite", "file:"+p.store+"?mode=ro")
	if err != nil {
		p.t.Fatal(err)
	}
	defer db.Close()
	allowed := map[string]bool{
		"bodies.properties": false, "bodies.body": false, "revisions.properties": false, "revisions.body": false,
		"attempts.returned": false,
	}
	tables := 0
	for _, table := range p.texts(`SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name`) {
		if table == "words" {
			continue // skips this table, because the test reads its shadow tables and its vocabulary
		}
		from := `"` + table + `"`
		if table == "segments" {
			table, from = "bodies", storetest.Bodies
		}
		rows, err := db.Query(`SELECT * FROM ` + from)
		if err != nil {
			p.t.Fatal(table, err)
		}
		columns, err := rows.Columns()
		if err != nil {
			p.t.Fatal(err)
		}
		tables++
		for rows.Next() {
			values := make([]any, len(columns))
			for i := range values {
				values[i] = new(any)
			}
			if err := rows.Scan(values...); err != nil {
				p.t.Fatal(table, err)
			}
			for i, v := range values {
				text := fmt.Sprint(*v.(*any))
				if b, ok := (*v.(*any)).([]byte); ok {
					text = string(b)
				}
				if text == "" {
					continue
				}
				where := table + "." + columns[i]
				if _, ok := allowed[where]; ok {
					if name, _ := betrayed(text); name != "" {
						allowed[where] = true
					}
					continue
				}
				s.checkText("the store, "+where, text)
				if table == "words_vocab" && strings.HasPrefix(text, "canary") {
					p.t.Errorf("the index knows the word %q", text)
				}
			}
		}
		if err := rows.Err(); err != nil {
			p.t.Fatal(table, err)
		}
		rows.Close()
	}
	for _, where := range slices.Sorted(maps.Keys(allowed)) {
		if !allowed[where] {
			p.t.Errorf("%s holds no canary: the test looks at nothing", where)
		}
	}
	if tables < 30 || len(p.texts(`SELECT term FROM words_vocab`)) < 10 ||
		len(p.texts(`SELECT value FROM body_fields`)) == 0 {
		p.t.Errorf("%d tables were looked at, or there is no index", tables)
	}
}
