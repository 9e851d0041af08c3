package web_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/payload"
	"github.com/deadletteroffice/dlo/web"
	"github.com/google/go-cmp/cmp"
)

// take stores letters as RabbitMQ would deliver them. The letters stay in the state "received".
func (h *house) take(arrivals ...deadletter.Arrival) []deadletter.ID {
	h.t.Helper()
	h.window++
	w := deadletter.Window{
		Session: 1, Number: h.window, Broker: "main", VHost: "/", Inbox: "dlo.letters",
		Uncertain: deadletter.UncertainHold, Horizon: time.Minute, HorizonRows: 1000,
	}
	for i, a := range arrivals {
		var err error
		if a.Fingerprint, err = a.Print(); err != nil {
			h.t.Fatal(err)
		}
		a.Tag = uint64(i + 1)
		w.Arrivals = append(w.Arrivals, a)
	}
	r, err := h.store.Receive(h.t.Context(), w)
	if err != nil {
		h.t.Fatal(err)
	}
	if err := h.store.SettleWindow(h.t.Context(), r.Window); err != nil {
		h.t.Fatal(err)
	}
	return r.New
}

// importLines imports lines of an export.
func (h *house) importLines(lines string) answer {
	h.t.Helper()
	r := request("POST", "/api/v1/letters/import", lines)
	r.Header.Set("Content-Type", "application/x-ndjson")
	return h.do(r)
}

// TestALineOfAnEarlierVersionIsImported checks a line with the former name of the state "quiet".
func TestALineOfAnEarlierVersionIsImported(t *testing.T) {
	t.Parallel()
	from, to := open(t), open(t)
	from.receive("sms", 1, "x")
	line := from.get("/api/v1/letters/export").want(t, 200, `"state":"dead"`).text
	for _, state := range []string{"settled", "quiet"} {
		to.importLines(strings.Replace(line, `"state":"dead"`, `"state":"`+state+`"`, 1)).want(t, 200, `"skipped":[]`)
	}
}

// oddArrivals returns deliveries that are difficult to represent in JSON.
func oddArrivals() []deadletter.Arrival {
	all := deadletter.Table{
		"nil":       nil,
		"bool":      true,
		"int8":      int8(-8),
		"uint8":     uint8(200),
		"int16":     int16(-16),
		"uint16":    uint16(60000),
		"int32":     int32(-32),
		"uint32":    uint32(4e9),
		"int64":     int64(math.MaxInt64),
		"float32":   float32(0.1),
		"float64":   math.Inf(-1),
		"nan":       math.NaN(),
		"decimal":   deadletter.Decimal{Scale: 2, Value: 314},
		"text":      "a<b>&\u2028\u202e",
		"bytes":     []byte{0, 255},
		"empty":     "",
		"time":      time.Unix(1763625600, 0).UTC(),
		"far":       time.Unix(1<<40, 0).UTC(),
		"not UTF-8": "\xff\xfe",
		"table":     deadletter.Table{"in": []any{int32(1), "x", deadletter.Table{}}},
		"list":      []any{},
	}
	return []deadletter.Arrival{
		{Exchange: "dlo.dlx", RoutingKey: "sms", Body: []byte("plain"), Properties: deadletter.Properties{
			ContentType: "text/plain", ContentEncoding: "identity", Headers: all, DeliveryMode: 2, Priority: 9,
			CorrelationID: "c", ReplyTo: "r", Expiration: "60000", MessageID: "m",
			Timestamp: time.Unix(1763625600, 0).UTC(), Type: "t", UserID: "guest", AppID: "shop",
		}},
		{
			RoutingKey: "\xffkey\x00",
			Body:       []byte{0, 1, 2, 0xff},
			Properties: deadletter.Properties{MessageID: "\xfe", Headers: deadletter.Table{"name \xff": "v"}},
		},
		{RoutingKey: "sms", Body: nil, Properties: deadletter.Properties{Timestamp: time.Unix(1<<50, 0).UTC()}},
		{RoutingKey: "sms", Body: bytes.Repeat([]byte("large "), 500_000)},
		{
			RoutingKey: strings.Repeat("k", 255),
			Body:       []byte("{\"a\": 1}\n"),
			Properties: deadletter.Properties{Headers: deadletter.Table{}},
		},
	}
}

func TestWhatIsExportedIsImportedToTheByte(t *testing.T) {
	t.Parallel()
	from, to := open(t), open(t)
	ids := append(from.take(oddArrivals()...), from.receive("sms", 700, "more than a page")...)
	export := from.get("/api/v1/letters/export").want(t, 200)
	if kind := export.Header.Get("Content-Type"); kind != "application/x-ndjson" ||
		strings.Count(export.text, "\n") != len(ids) {
		t.Fatalf("%s, %d lines of %d letters", kind, strings.Count(export.text, "\n"), len(ids))
	}
	to.importLines(export.text).want(t, 200, `"imported":705`, `"already_there":0`, `"skipped_count":0`, `"skipped":[]`)
	for _, id := range ids {
		was, err := from.store.Letter(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		is, err := to.store.Letter(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		before, _ := was.Properties.Encode()
		after, _ := is.Properties.Encode()
		if !bytes.Equal(was.Body, is.Body) || !bytes.Equal(before, after) || was.ArrivedBy != is.ArrivedBy ||
			was.Origin() != is.Origin() || was.Inbox != is.Inbox || !was.ReceivedAt.Equal(is.ReceivedAt) ||
			!was.DiedAt.Equal(is.DiedAt) || was.Reason != is.Reason || was.Size != is.Size {
			t.Errorf("letter %s is not what it was: %s", id, cmp.Diff(was, is))
		}
	}
	to.importLines(export.text+"\n\n").want(t, 200, `"imported":0`, `"already_there":705`)
	to.get("/api/v1/audit?kind=import").want(
		t, 200, `"detail":"705 letters, 0 were already there, 0 lines were left out"`,
	)
	// The letters are exported again. The lines must be identical, except for the state.
	var first, again struct{ Headers, Properties, Body, Encoded json.RawMessage }
	lines := strings.Split(to.get("/api/v1/letters/export").text, "\n")
	for i, line := range strings.Split(export.text, "\n")[:len(ids)] {
		if json.Unmarshal([]byte(line), &first) != nil || json.Unmarshal([]byte(lines[i]), &again) != nil ||
			!cmp.Equal(first, again) {
			t.Errorf("line %d: %.300s\nwas %.300s", i+1, lines[i], line)
		}
	}
	from.get("/api/v1/letters/export?q=queue:nope").want(t, 200)
	from.get("/api/v1/letters/export?q=stat:e").want(t, 400, `"position":0`)
	from.get("/api/v1/letters/export?format=xml").want(t, 400, "ndjson or csv")
}

func TestDamagedLinesAreNamed(t *testing.T) {
	t.Parallel()
	from := open(t)
	from.receive("sms", 3, "x")
	good := strings.Split(strings.TrimSpace(from.get("/api/v1/letters/export").text), "\n")
	var line map[string]any
	if err := json.Unmarshal([]byte(good[0]), &line); err != nil {
		t.Fatal(err)
	}
	change := func(name string, value any) string {
		changed := map[string]any{}
		for k, v := range line {
			changed[k] = v
		}
		if changed[name] = value; value == nil {
			delete(changed, name)
		}
		text, err := json.Marshal(changed)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for _, c := range []struct{ name, line, reason string }{
		{"no JSON", `{"id":`, "the JSON cannot be read"},
		{"another shape", `[1]`, "the JSON cannot be read"},
		{"two letters", good[0] + good[0], "after top-level value"},
		{"no id", change("id", "7"), "no id of a letter"},
		{"another UUID", change("id", "6ba7b810-9dad-41d1-80b4-00c04fd430c8"), "no id of a letter"},
		{"a later version", change("v", 2), "version 2"},
		{"a key of a later version", change("stamp", "x"), `there is no member "stamp"`},
		{"an odd state", change("state", "lost"), "state is unknown"},
		{"purged", change("state", "purged"), "purged"},
		{"masked", change("masked", true), "masked"},
		{"without body", change("body", nil), "no body"},
		{"with a broken body", change("body", "%%%"), "the JSON cannot be read"},
		{"never received", change("received_at", nil), "when it was received"},
		{"received tomorrow", change("received_at", "2026-11-21T09:00:00Z"), "impossible"},
		{
			"id of tomorrow", change("id", string(deadletter.NewID(deadletter.SerialAt(start.Add(24*time.Hour)), 7))),
			"yet to come",
		},
		{
			"an unknown header type", change("headers", map[string]any{"a": map[string]any{"t": "int128", "v": 1}}),
			"unknown AMQP type",
		},
		{
			"a header that does not fit",
			change("headers", map[string]any{"a": map[string]any{"t": "int8", "v": 1000}}), "int8",
		},
		{
			"a property that is too long", change("properties", map[string]any{"message_id": strings.Repeat("x", 256)}),
			"message_id is longer",
		},
		{"a name that is too long", change("inbox", strings.Repeat("x", 256)), "longer than 255"},
		{"broken encoded properties", change("encoded", "AAAAAA=="), "properties cannot be read"},
		{"too long", `{"id":"` + strings.Repeat("x", 24<<20), "longer than"},
	} {
		h := open(t)
		var out struct {
			Imported int
			Count    int `json:"skipped_count"`
			Skipped  []struct {
				Line   int
				Reason string
			}
		}
		h.importLines(good[1]+"\n"+c.line+"\n"+good[2]).want(t, 200).json(t, &out)
		if out.Imported != 2 || out.Count != 1 || len(out.Skipped) != 1 || out.Skipped[0].Line != 2 ||
			!strings.Contains(out.Skipped[0].Reason, c.reason) {
			t.Errorf("%s: %+v", c.name, out)
		}
	}
	h := open(t)
	a := h.importLines(strings.Repeat("nonsense\n", 1500)+good[0]).want(
		t, 200, `"imported":1`, `"skipped_count":1500`, `"line":1000,`,
	)
	if strings.Contains(a.text, `"line":1001,`) {
		t.Error("more than 1,000 lines are named")
	}
	h.postJSON("/api/v1/letters/import", good[0]).want(t, 415)
	h.Drain()
	h.importLines(good[1]).want(t, 503)
}

// TestAnImportThatBreaksOff checks that an import that is interrupted keeps the lines before the
// interruption. It must report where it was interrupted.
func TestAnImportThatBreaksOff(t *testing.T) {
	t.Parallel()
	from, h := open(t), open(t)
	from.receive("sms", 300, "x")
	lines := strings.SplitAfter(from.get("/api/v1/letters/export").text, "\n")
	r := httptest.NewRequest("POST", "/api/v1/letters/import", &cutOff{
		strings.NewReader(strings.Join(lines[:250], "") + lines[250][:20]),
	})
	r.Header.Set("Content-Type", "application/x-ndjson")
	h.do(r).want(t, 400, "were cut off at line 251; 250 were imported")
	h.get("/api/v1/letters/count?exact=1").want(t, 200, `"count":250`)
	h.importLines(strings.Join(lines, "")).want(t, 200, `"imported":50`, `"already_there":250`)
}

type cutOff struct{ r *strings.Reader }

func (c *cutOff) Read(b []byte) (int, error) {
	if n, err := c.r.Read(b); err == nil {
		return n, nil
	}
	return 0, fmt.Errorf("the connection is gone")
}

func TestAnExportShowsNothingThatIsMasked(t *testing.T) {
	t.Parallel()
	masks := payload.Masks{
		Headers:  []string{"authorization"},
		Patterns: []*regexp.Regexp{regexp.MustCompile(`[0-9]{16}`)},
	}
	h := open(t, func(o *web.Options) {
		decoder := &payload.Decoder{Mask: masks.Body()}
		o.Header, o.Decoder = masks.Header, func() *payload.Decoder { return decoder }
	})
	h.take(
		deadletter.Arrival{RoutingKey: "sms", Body: []byte(`{"card": "1234567890123456"}`)},
		deadletter.Arrival{
			RoutingKey: "sms",
			Body:       []byte(`{"card": "none"}`),
			Properties: deadletter.Properties{Headers: deadletter.Table{"authorization": "Bearer s3cret"}},
		},
		deadletter.Arrival{RoutingKey: "sms", Body: []byte(`{"harmless": 1}`)},
	)
	export := h.get("/api/v1/letters/export").want(t, 200)
	for _, secret := range []string{"s3cret", "1234567890123456", "MTIzNDU2", "eyJjYXJk"} {
		if strings.Contains(export.text, secret) {
			t.Errorf("%q is exported: %s", secret, export.text)
		}
	}
	if strings.Count(export.text, `"masked":true`) != 2 || strings.Count(export.text, `"body":null`) != 2 ||
		strings.Count(export.text, `"body":"eyJoYXJtbGVzc`) != 1 {
		t.Error(export.text)
	}
	open(t).importLines(export.text).want(t, 200, `"imported":1`, `"skipped_count":2`, "it is masked")
	damaged := strings.Replace(export.text, `"v":1`, `"v":1,"damaged":"its body"`, 3)
	open(t).importLines(damaged).want(
		t, 200, `"imported":0`, `"skipped_count":3`, "it is damaged where it was exported",
	)
}

func TestCSVHasNoFormulas(t *testing.T) {
	t.Parallel()
	h := open(t)
	ids := h.receive("=cmd|' /C calc'!A0", 1, "x")
	ids = append(ids, h.receive("-2+3", 1, "x")...)
	ids = append(ids, h.receive("@SUM(1)", 1, "x")...)
	ids = append(ids, h.receive("\t=1", 1, "x")...)
	ids = append(ids, h.receive("+1", 1, "x")...)
	ids = append(ids, h.receive("a \"quoted\", name\n\x1b[31m", 1, "x")...)
	a := h.get("/api/v1/letters/export?format=csv").want(
		t, 200, `,"'=cmd|' /C calc'!A0",`, `,"'-2+3",`, `,"'@SUM(1)",`, `,"'\t=1",`, `,"'+1",`,
		`,"a ""quoted"", name\n\x1b[31m",`,
	)
	if strings.Count(a.text, "\r\n") != len(ids)+1 || !strings.HasPrefix(
		a.text, "id,state,received_at,died_at,due_at,broker,vhost,queue,reason,type,group,severity,attempts,exchange,"+
			"routing_key,size,summary,error,why\r\n",
	) ||
		!strings.HasPrefix(a.Header.Get("Content-Type"), "text/csv") {
		t.Error(a.text)
	}
	for _, line := range strings.Split(a.text, "\r\n") {
		for _, cell := range strings.Split(line, ",") {
			if cell = strings.TrimPrefix(cell, `"`); cell != "" && strings.ContainsAny(cell[:1], "=+-@\t\r") {
				t.Errorf("cell %q is a formula", cell)
			}
		}
	}
	h.postJSON("/api/v1/operations", `{"action":"discard","q":"","reason":"=1+1"}`).want(t, 202)
	h.get("/api/v1/audit?format=csv").want(
		t, 200, "time,what,who,through,address,operation,letters,query,detail,targets,asked,done\r\n",
		`discard,local,api,192.0.2.1,O-1,6,,"'=1+1"`,
	)
	h.get("/api/v1/audit?format=xml").want(t, 400, "json or csv")
}

// TestAnExportThatFailsBreaksItsConnection checks that an incomplete export cannot be mistaken for
// a complete one.
func TestAnExportThatFailsBreaksItsConnection(t *testing.T) {
	t.Parallel()
	h := open(t, func(o *web.Options) { o.Hosts = nil })
	h.receive("sms", 200, strings.Repeat("x", 100<<10))
	server := httptest.NewServer(h)
	defer server.Close()
	res, err := http.Get(server.URL + "/api/v1/letters/export")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := io.ReadFull(res.Body, make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	h.store.Close()
	if n, err := io.Copy(io.Discard, res.Body); err == nil {
		t.Errorf("%d more bytes, and no error", n)
	}
}

// TestStreamsOutliveTheDeadlines checks that streams continue beyond the server's deadlines while
// their clients keep reading. If a client disconnects, its stream must end.
func TestStreamsOutliveTheDeadlines(t *testing.T) {
	t.Parallel()
	var masked atomic.Int64
	h := open(t, func(o *web.Options) {
		o.Hosts, o.Header = nil, func(_, text string) (string, bool) {
			masked.Add(1)
			return text, false
		}
	})
	for range 4 {
		h.receive("sms", 100, strings.Repeat("x", 100<<10))
	}
	server := httptest.NewUnstartedServer(nil)
	server.Config = h.Server()
	server.Config.ReadTimeout, server.Config.WriteTimeout = 300*time.Millisecond, 300*time.Millisecond
	server.Start()
	defer server.Close()

	export := func() *http.Response {
		t.Helper()
		res, err := http.Get(server.URL + "/api/v1/letters/export")
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	slow := export()
	lines := bufio.NewReaderSize(slow.Body, 1<<20)
	var taken []string
	for i := 0; ; i++ {
		line, err := lines.ReadString('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("after %d letters: %v", i, err)
		}
		if i%100 == 0 {
			time.Sleep(400 * time.Millisecond)
		}
		taken = append(taken, line)
	}
	slow.Body.Close()
	if len(taken) != 400 {
		t.Errorf("%d letters", len(taken))
	}

	all := masked.Swap(0)
	left := export()
	if _, err := io.ReadFull(left.Body, make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	left.Body.Close()
	time.Sleep(200 * time.Millisecond) // the server needs some time to notice this
	if n := masked.Load(); n == 0 || n >= all {
		t.Errorf("%d of %d texts were masked for nobody", n, all)
	}

	to := open(t, func(o *web.Options) { o.Hosts = nil })
	other := httptest.NewUnstartedServer(nil)
	other.Config = to.Server()
	other.Config.ReadTimeout, other.Config.WriteTimeout = 300*time.Millisecond, 300*time.Millisecond
	other.Start()
	defer other.Close()
	body, in := io.Pipe()
	go func() {
		for i, line := range taken[:50] {
			if i%10 == 0 {
				time.Sleep(150 * time.Millisecond)
			}
			io.WriteString(in, line)
		}
		in.Close()
	}()
	res, err := http.Post(other.URL+"/api/v1/letters/import", "application/x-ndjson", body)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if text, err := io.ReadAll(res.Body); err != nil || !strings.Contains(string(text), `"imported":50`) {
		t.Errorf("%s %v", text, err)
	}
}

// TestWhoMayNot uses callers who lack a permission. Each of their requests must be denied, or must
// have no effect on letters that the caller may not see. The export of such a caller must be empty.
func TestWhoMayNot(t *testing.T) {
	t.Parallel()
	local := open(t)
	local.receive("sms", 1, "s3cret")
	line := local.get("/api/v1/letters/export").want(t, 200, `"body":"czNjcmV0"`).text
	who := deadletter.Principal{
		Name:   "ann",
		Grants: []deadletter.Grant{{Role: deadletter.RoleAdmin, Places: deadletter.Places{Queues: []string{"other"}}}},
	}
	h := open(t, knownAs(&who))
	h.receive("sms", 1, "s3cret")
	if a := h.get("/api/v1/letters/export").want(t, 200); a.text != "" {
		t.Errorf("a letter of another queue is exported: %s", a.text)
	}
	another := strings.ReplaceAll(line, `-7000-`, `-7001-`)
	h.importLines(another).want(t, 403, "this concerns all queues")
	h.postJSON("/api/v1/overrides", `{"queue":"sms","to":"x"}`).want(t, 403, "may not redirect")
	h.postJSON("/api/v1/operations", `{"action":"requeue","q":""}`).want(t, 400, "no letter is selected")
	h.postJSON("/api/v1/operations", `{"action":"requeue","q":"","dry_run":true}`).want(t, 200, `"total":0`)
	who = deadletter.Principal{Name: "root", Grants: deadletter.Local.Grants, Frozen: []string{"main"}}
	h.importLines(another).want(t, 200, `"imported":0`, "nobody may import letters at broker main")
}
