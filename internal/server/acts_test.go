package server

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/adopt"
	"github.com/deadletteroffice/dlo/internal/config"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/drain"
	"github.com/deadletteroffice/dlo/internal/identity"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/internal/rules"
	"github.com/deadletteroffice/dlo/internal/store"
	"github.com/deadletteroffice/dlo/internal/topology"
	"github.com/deadletteroffice/dlo/internal/trial"
)

const actsConfig = `
store: %[1]s/dlo.db
listen: 127.0.0.1:0
brokers: [{name: main, url: "amqp://guest:guest@127.0.0.1:1/"}]
channels: {team: {slack: {url_file: %[1]s/slack}}}
digest: {notify: [team]}
masking: [{header: x-token}]
schemas: {directory: %[1]s/schemas}
`

// ledger is a whole dlo that is not connected to a broker. Tests make it act, and then check its
// audit log.
type ledger struct {
	*Server
	t      *testing.T
	window int64
	newest int64 // id of the newest act that acts has returned
}

func openLedger(t *testing.T) *ledger {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := errorsOf(
			os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600),
		); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("slack", "https://hooks.slack.example/a")
	write("schemas/shop.proto", `syntax = "proto3"; package shop; message Order { string id = 1; }`)
	old, err := store.Open(t.Context(), dir+"/dlo.db", store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	before := &ledger{Server: &Server{process: &process{store: old}}, t: t}
	before.die("old", "sms", 1, 1)
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	path := write("dlo.yaml", fmt.Sprintf(actsConfig, dir))
	cfg, err := config.Load(path, func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	if err := RenameBroker(t.Context(), cfg, "old", "main"); err != nil {
		t.Fatal(err)
	}
	s, err := New(t.Context(), cfg, Options{
		Getenv: func(string) string { return "" }, Log: io.Discard, Crash: func(string) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return &ledger{Server: s, t: t}
}

func errorsOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// die stores n dead letters of a queue, in the group with the given key, and returns their ids.
func (l *ledger) die(broker, queue string, key byte, n int) (ids []deadletter.ID) {
	l.t.Helper()
	l.window++
	w := deadletter.Window{
		Session: time.Now().UnixNano(), Number: l.window, Broker: broker, VHost: "/", Inbox: "dlo.letters",
		Uncertain: deadletter.UncertainHold, Horizon: time.Minute, HorizonRows: 10,
	}
	for i := range n {
		a := deadletter.Arrival{
			Exchange: "dlo.dlx",
			Tag:      uint64(i + 1),
			Body:     []byte("\n\x03abc"),
			Properties: deadletter.Properties{
				MessageID: fmt.Sprint(broker, queue, l.window, i),
				Headers:   deadletter.Table{"x-token": "secret"},
			},
		}
		print, err := a.Print()
		if err != nil {
			l.t.Fatal(err)
		}
		a.Fingerprint = print
		w.Arrivals = append(w.Arrivals, a)
	}
	r, err := l.store.Receive(context.Background(), w)
	if err != nil {
		l.t.Fatal(err)
	}
	letters, err := l.store.NextReceived(context.Background(), 500)
	if err := errorsOf(err, l.store.SettleWindow(context.Background(), r.Window)); err != nil {
		l.t.Fatal(err)
	}
	var verdicts []deadletter.Classified
	for _, letter := range letters {
		verdicts = append(verdicts, deadletter.Classified{
			Letter:       letter.ID,
			To:           deadletter.ClassifiedDead,
			Origin:       deadletter.Origin{Broker: broker, VHost: "/", Queue: queue},
			DiedAt:       time.Now().Add(2 * time.Second).Truncate(time.Second),
			Reason:       "rejected",
			Error:        "no such tenant",
			GroupKey:     [32]byte{key},
			GroupTitle:   "no such tenant",
			GroupVersion: 1,
			GroupCause:   []byte{key},
			Severity:     deadletter.SeverityDigest,
		})
		ids = append(ids, letter.ID)
	}
	if err := l.store.Classify(context.Background(), verdicts); err != nil {
		l.t.Fatal(err)
	}
	return ids
}

// call sends one request in the given way, for example as a page or as the command line, and
// returns the response.
func (l *ledger) call(way deadletter.Way, method, path, body string) map[string]any {
	l.t.Helper()
	kind := "application/json"
	if way == deadletter.WayPage {
		kind = "application/x-www-form-urlencoded"
	} else {
		path = "/api/v1" + path
	}
	r := httptest.NewRequest(method, "http://"+l.Addr()+path, strings.NewReader(body))
	r.Header.Set("Content-Type", kind)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	if strings.HasSuffix(path, "/import") {
		r.Header.Set("Content-Type", "application/x-ndjson")
	}
	if strings.HasPrefix(path, "/api/v1/types?") {
		r.Header.Set("Content-Type", "application/octet-stream")
	}
	if way == deadletter.WayCLI {
		r.Header.Set("User-Agent", "dlo/test")
	}
	answer := httptest.NewRecorder()
	l.web.ServeHTTP(answer, r)
	if answer.Code >= http.StatusBadRequest {
		l.t.Fatalf("%s %s %s: %d %.500s", method, path, body, answer.Code, answer.Body)
	}
	var v map[string]any
	json.Unmarshal(answer.Body.Bytes(), &v)
	return v
}

// step makes the operations do everything that they can do now.
func (l *ledger) step() {
	l.t.Helper()
	for range 5 {
		if _, _, err := l.desk.Step(l.t.Context()); err != nil {
			l.t.Fatal(err)
		}
	}
}

// raw runs SQL on the database of the store, for example to make its records look older.
func (l *ledger) raw(text string, args ...any) {
	l.t.Helper()
	db, err := sql.Open("sqlite", "file:"+l.cfg.Store+"?_pragma=busy_timeout(5000)")
	if err != nil {
		l.t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(text, args...); err != nil {
		l.t.Fatal(err)
	}
}

// acts returns the acts that were recorded since the last call, oldest first.
func (l *ledger) acts() []deadletter.Act {
	l.t.Helper()
	list, _, err := l.store.Audit(l.t.Context(), query.Query{}, "", 100)
	if err != nil {
		l.t.Fatal(err)
	}
	i := slices.IndexFunc(list, func(a deadletter.Act) bool { return a.ID <= l.newest })
	if i >= 0 {
		list = list[:i]
	}
	slices.Reverse(list)
	if len(list) > 0 {
		l.newest = list[len(list)-1].ID
	}
	return list
}

// TestEveryActIsRecordedWhole does everything that people or dlo can do, and checks the entries of
// the audit log. Each entry must name the person, the targets, and whether the request came from a
// page, the API or the command line. It must also contain the number of letters in the request, and
// the number of letters that were changed.
func TestEveryActIsRecordedWhole(t *testing.T) {
	t.Parallel()
	l := openLedger(t)
	const page, api, cli, dlo = deadletter.WayPage, deadletter.WayAPI, deadletter.WayCLI, deadletter.WayService
	seen := map[string]bool{}
	// The function "did" compares the acts since its last call with the expected acts. An expected
	// act is written like "resolved page 1/1 group G-1".
	did := func(want ...string) {
		t.Helper()
		var got []string
		for _, a := range l.acts() {
			seen[a.Kind] = true
			who := deadletter.Local.Name
			if a.Through == dlo {
				who = deadletter.Service.Name
			}
			switch a.Kind {
			case deadletter.ActDenied:
				who = "rita"
			case deadletter.ActTokenMoved:
				who = "token:ci"
			case deadletter.ActPasswordSet, deadletter.ActSignedIn, deadletter.ActSignInFailed, deadletter.ActSignedOut:
				who = "lena"
			}
			if a.Actor != who {
				t.Errorf("%s was done by %s through %s", a.Kind, a.Actor, a.Through)
			}
			var targets []string
			for _, target := range a.Targets {
				targets = append(targets, strings.TrimSpace(string(target.Kind)+" "+target.Name))
			}
			got = append(
				got, fmt.Sprintf("%s %s %d/%d %s", a.Kind, a.Through, a.Asked, a.Done, strings.Join(targets, ", ")),
			)
		}
		if !slices.Equal(got, want) {
			t.Errorf("the audit has\n%s\nand not\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	// First, dlo starts, and reloads its configuration file on request. The audit must contain
	// this.
	did("broker renamed cli 1/1 broker main", "schema loaded dlo 1/1 schema protos")
	l.cfg.Rules.File = filepath.Join(filepath.Dir(l.cfg.Store), "dlo.yaml")
	l.Reload(t.Context(), deadletter.Service.Name, false)
	did("rules loaded dlo 1/1 rules")

	// People act on letters.
	ids := l.die("main", "sms", 1, 9)
	more := l.die("main", "email", 2, 2)
	did()
	quoted := func(ids ...deadletter.ID) string {
		text, _ := json.Marshal(ids)
		return string(text)
	}
	operation := 0
	start := func(way deadletter.Way, action, more string, ids ...deadletter.ID) string {
		t.Helper()
		operation++
		if way == page {
			l.call(way, "POST", "/operations", url.Values{
				"action": {action},
				"id":     {string(ids[0])},
				"key":    {fmt.Sprint(operation)},
			}.Encode())
		} else {
			l.call(way, "POST", "/operations", fmt.Sprintf(`{"action":%q,"ids":%s%s}`, action, quoted(ids...), more))
		}
		return fmt.Sprintf("operation O-%d", operation)
	}
	for _, c := range []struct {
		way    deadletter.Way
		action string
		more   string
		done   int
	}{
		{page, "discard", "", 1},
		{api, "restore", "", 1},
		{cli, "hold", "", 1},
		{page, "release", "", 1},
		{api, "retry_now", "", 0},
		{cli, "reschedule", `,"due_at":"2100-01-01T00:00:00Z"`, 0},
		{api, "purge", `,"hold":"0s"`, 1},
	} {
		if c.action == "reschedule" {
			c.more = fmt.Sprintf(`,"due_at":%q`, time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
		}
		target := start(c.way, c.action, c.more, ids[0])
		l.step()
		did(
			fmt.Sprintf("%s %s 1/%d %s", c.action, c.way, c.done, target),
			fmt.Sprintf("done dlo 1/%d %s", c.done, target),
		)
	}
	target := start(cli, "requeue", `,"hold":"1h"`, ids[1], ids[2])
	did("requeue cli 2/0 " + target)
	path := "/operations/" + strings.TrimPrefix(target, "operation ")
	l.call(page, "POST", path+"/pause", "")
	l.call(api, "POST", path+"/resume", "")
	l.call(cli, "PATCH", path, `{"rate":20}`)
	if err := l.store.StopOperation(t.Context(), deadletter.OperationID(operation), "too many came back"); err != nil {
		t.Fatal(err)
	}
	did("paused page 2/0 "+target, "resumed api 2/0 "+target, "rate cli 2/0 "+target, "stopped dlo 2/0 "+target)
	taken := start(
		api, "edit",
		fmt.Sprintf(
			`,"hold":"1h","reason":"r","patch":[{"op":"add","path":"/a","value":1}],"take_over":[%q]`,
			strings.TrimPrefix(target, "operation "),
		),
		ids[1],
	)
	did("cancelled api 2/0 "+target, "edit api 1/0 "+taken)
	l.call(page, "POST", "/operations/"+strings.TrimPrefix(taken, "operation ")+"/cancel", "")
	did("cancelled page 1/0 " + taken)

	// People decide about groups. G-1 belongs to the broker that was renamed. The audit must record
	// each decision.
	l.call(page, "POST", "/triage", "do=snooze&for=4h&groups=G-1")
	l.call(api, "POST", "/groups/decisions", `{"groups":["G-1","G-2"],"resolve":{}}`)
	l.call(cli, "PATCH", "/groups/G-1", `{"reopen":true}`)
	l.call(page, "POST", "/triage", "do=assign&owner=ana&groups=G-1&groups=G-2")
	l.call(page, "POST", "/triage", "do=assign&owner=&groups=G-1&groups=G-2")
	l.call(api, "PATCH", "/groups/G-1", `{"severity":"digest"}`)
	l.call(cli, "PATCH", "/groups/G-1", `{"ticket":"T-1"}`)
	l.call(api, "PATCH", "/groups/G-1", `{"note":"looked at it"}`)
	l.call(cli, "POST", "/groups/G-1/merge", `{"groups":["G-1","G-2"]}`)
	l.call(api, "POST", "/groups/G-2/split", ``)
	l.call(page, "POST", "/triage/undo", "id=8")
	did(
		"snoozed page 1/1 group G-1", "resolved api 2/2 group G-1, group G-2", "reopened cli 1/1 group G-1",
		"assigned page 2/2 group G-1, group G-2", "unassigned page 2/2 group G-1, group G-2",
		"severity api 1/1 group G-1", "ticket cli 1/1 group G-1", "note api 1/1 group G-1", "merged cli 2/1 group G-2",
		"split api 1/1 group G-2", "undone page 1/1 group G-1",
	)

	// One group regresses, because a letter has died in it again. Another group grows and then
	// calms down. The audit must contain these events.
	l.die("main", "email", 2, 1)
	did("regressed dlo 1/1 group G-2")
	l.raw(`UPDATE groups SET first_at = first_at - 3 * 86400000 WHERE id = 2`)
	l.die("main", "email", 2, 40)
	tend := func() {
		t.Helper()
		if _, err := l.store.Tend(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	tend()
	l.raw(`UPDATE rollups SET bucket = bucket - 100`)
	tend()
	did("escalating dlo 1/1 group G-2", "open dlo 1/1 group G-2")
	if err := l.store.Read(t.Context(), []deadletter.Read{
		{
			AsOf: l.letter(more[0]).ChangedAt,
			Classified: deadletter.Classified{
				Letter:       more[0],
				GroupKey:     [32]byte{7},
				GroupTitle:   "again",
				GroupVersion: 2,
			},
		},
	}); err != nil {
		t.Fatal(err)
	}
	did("regrouped dlo 1/1 group G-3")

	// People act on single letters.
	letter := "/letters/" + string(ids[3])
	l.call(cli, "POST", letter+"/revisions", `{"headers":{"a":"b"},"reason":"r"}`)
	l.call(api, "POST", letter+"/reveal", `{"header":"x-token"}`)
	l.call(page, "GET", "/letters/export?q=queue:email&reveal=1", "")
	did(
		"revealed cli 1/1 letter "+string(ids[3]), "edited cli 1/1 letter "+string(ids[3]),
		"revealed api 1/1 letter "+string(ids[3]), "revealed page 43/43 letters queue:email",
	)
	lines := `{"v":1,"id":"01a1f82e-3420-7001-8000-000000000001","state":"dead","origin":{"broker":"main","vhost":"/","queue":"sms","exchange":"e","routing_key":"k"},"inbox":"i","exchange":"x","routing_key":"r",` +
		`"received_at":"2025-11-20T08:59:00Z","reason":"rejected","attempts":0,"type":"","error":"","why":"","properties":{"message_id":"m"},"headers":{},"body":"eA=="}` + "\n"
	l.call(cli, "POST", "/letters/import", lines+"{}\n")
	did("import cli 2/1 letters imported")
	l.call(
		api, "POST", "/types?name=more&filename=a.proto",
		`syntax = "proto3"; package more; message More { string id = 1; }`,
	)
	l.call(page, "POST", letter+"/type", "type=more.More&for=letter")
	l.call(cli, "POST", "/bindings", `{"queue":"sms","type":"more.More"}`)
	did(
		"schema uploaded api 1/1 schema more", "type picked page 1/1 letter "+string(ids[3]),
		"type picked cli 1/1 binding sms",
	)
	for _, pick := range l.call(api, "GET", "/bindings", "")["bindings"].([]any) {
		l.call(api, "DELETE", fmt.Sprintf("/bindings/%v", pick.(map[string]any)["id"]), "")
	}
	l.call(cli, "DELETE", "/types/more", "")
	did(
		"pick removed api 1/1 binding sms", "pick removed api 1/1 letter "+string(ids[3]),
		"schema removed cli 1/1 schema more",
	)

	// People do everything else.
	l.call(api, "POST", "/overrides", `{"broker":"main","vhost":"/","queue":"sms","to":"sms2"}`)
	l.call(page, "POST", "/rules/overrides/1/remove", "")
	l.call(api, "POST", "/queues/pause", `{"broker":"main","vhost":"/","queue":"sms"}`)
	l.call(cli, "POST", "/queues/resume", `{"broker":"main","vhost":"/","queue":"sms"}`)
	l.call(page, "POST", "/groups/G-1/pause", "")
	l.call(page, "POST", "/groups/G-1/resume", "")
	l.call(cli, "POST", "/rules/apply", `{"q":"","reason":"r"}`)
	l.call(page, "POST", "/views", "q=state:dead&name=dead")
	l.call(cli, "DELETE", "/views/1", "")
	l.call(api, "POST", "/deploys", `{"service":"mailer","version":"1.4.1"}`)
	did(
		"redirect api 1/1 redirect sms", "redirect removed page 1/1 redirect sms", "retries paused api 1/1 queue sms",
		"retries resumed cli 1/1 queue sms", "retries paused page 1/1 group G-1", "retries resumed page 1/1 group G-1",
		"rules applied cli 0/0 rules", "view saved page 1/1 view dead", "view removed cli 1/1 view dead",
		"deploy api 1/1 deploy mailer 1.4.1",
	)
	l.call(page, "POST", "/triage/digest", "")
	sent := l.acts()
	if len(sent) != 1 || sent[0].Kind != "digest" || sent[0].Actor != "local" || sent[0].Through != page ||
		sent[0].Targets[0].Kind != deadletter.TargetDigest || !strings.HasSuffix(
		sent[0].Detail, "to team",
	) {
		t.Errorf("%+v", sent)
	}
	if _, err := l.store.SendDigest(
		t.Context(), "2026-11-20", deadletter.Service.Name, deadletter.Digest{}, []string{"team"},
	); err != nil {
		t.Fatal(err)
	}
	did("digest dlo 1/1 digest 2026-11-20")
	breaker := deadletter.Breaker{
		Origin: deadletter.Origin{Broker: "main", VHost: "/", Queue: "sms"},
		Since:  time.Now(),
	}
	for _, state := range []deadletter.GuardState{
		deadletter.GuardTripped, deadletter.GuardProbing, deadletter.GuardRamping,
	} {
		breaker.State = state
		if err := l.store.SetBreaker(t.Context(), breaker, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.store.CloseBreaker(t.Context(), breaker); err != nil {
		t.Fatal(err)
	}
	did(
		"breaker tripped dlo 1/1 queue sms", "breaker probing dlo 1/1 queue sms", "breaker ramping dlo 1/1 queue sms",
		"breaker closed dlo 1/1 queue sms",
	)
	start(api, "discard", "", ids[4], ids[5])
	l.step()
	l.acts()
	if n, err := l.store.Expire(
		t.Context(), deadletter.StateDiscarded, time.Now().Add(time.Hour), 10,
	); err != nil || n != 2 {
		t.Fatal(n, err)
	}
	did("retention dlo 2/2 letters discarded")
	l.drains(func(id string) {
		did(
			"drain started cli 1/1 drain "+id+", queue team.dlq", "drain stopped api 1/1 drain "+id+", queue team.dlq",
			"drain ended dlo 5/3 drain "+id+", queue team.dlq",
		)
	})
	did("drain resolved dlo 1/1 queue open.dlq")
	l.trial()
	did("trial started page 1/1 broker main")
	l.adopt()
	did("policy applied cli 1/1 broker main", "retries paused cli 1/1 queue sms", "policy undone cli 1/1 broker main")
	secret, _ := l.call(api, "POST", "/tokens", `{"name":"ci","role":"reader"}`)["secret"].(string)
	l.use(secret)
	l.call(cli, "DELETE", "/tokens/ci", "")
	did("token added api 1/1 token ci", "token at new address api 1/1 token ci", "token revoked cli 1/1 token ci")
	l.deny()
	did("denied api 1/0 route DELETE /api/v1/tokens/{name}")
	// the start has already recorded the first call
	if err := l.store.Configured(t.Context(), deadletter.Service.Name, map[string]string{"requests": "100"}, nil); err != nil {
		t.Fatal(err)
	}
	did("configuration changed dlo 1/1 configuration")
	l.people()
	did(
		"user added page 1/1 user lena", "password set page 1/1 user lena", "signed in page 1/1 user lena",
		"sign-in failed page 1/0 user lena", "signed out page 1/1 user lena", "user reset page 1/1 user lena",
		"user removed page 1/1 user lena",
	)
	for _, c := range []struct {
		way  deadletter.Way
		path string
	}{{page, "/store/accept"}, {cli, "/store/hold"}} {
		if err := l.store.Unproved(t.Context(), "main", "/", true); err != nil {
			t.Fatal(err)
		}
		l.call(c.way, "POST", c.path, "")
	}
	did("store accepted page 1/1 store", "restored cli 1/1 store")
	l.call(cli, "POST", "/backup", "")
	did("backup cli 1/1 store")

	seen["digest"] = true
	seen[deadletter.ActChannelTested] = true // package notify, whose channels do not run here, has the test
	for _, kind := range deadletter.Acts {
		if !seen[kind] {
			t.Errorf("nothing here writes %q", kind)
		}
		delete(seen, kind)
	}
	for kind := range seen {
		t.Errorf("%q is not in deadletter.Acts", kind)
	}
}

func (l *ledger) letter(id deadletter.ID) deadletter.Letter {
	l.t.Helper()
	letter, err := l.store.Letter(l.t.Context(), id)
	if err != nil {
		l.t.Fatal(err)
	}
	return letter
}

// taking is a test double of a drain. It has taken three letters from a queue, and it runs until
// somebody stops it.
type taking struct{ resolved chan struct{} }

func (taking) Run(ctx context.Context) error   { <-ctx.Done(); return nil }
func (q taking) Resolve(context.Context) error { close(q.resolved); return nil }
func (taking) Taken() int                      { return 3 }
func (taking) Busy() bool                      { return false }

// drains starts a drain and stops it. Before that, it stores a window (a batch of letters), as if
// an earlier process had ended while it took this window. In the end, it waits until dlo has
// decided about the window.
func (l *ledger) drains(between func(id string)) {
	l.t.Helper()
	w := deadletter.Window{
		Session: 1, Number: 1, Broker: "main", VHost: "/", Inbox: "open.dlq", Uncertain: deadletter.UncertainHold,
		Horizon: time.Minute, HorizonRows: 10,
	}
	a := deadletter.Arrival{Tag: 1, Body: []byte("x")}
	print, err := a.Print()
	if err != nil {
		l.t.Fatal(err)
	}
	a.Fingerprint = print
	w.Arrivals = []deadletter.Arrival{a}
	if _, err := l.store.Receive(l.t.Context(), w); err != nil {
		l.t.Fatal(err)
	}
	queue := taking{make(chan struct{})}
	d := drain.New(l.store, []drain.Broker{{
		Name: "main", VHost: "/", Place: "main", Inspect: func(context.Context, string) error { return nil },
		Open: func(string, string, int, func(string)) drain.Queue { return queue },
	}}, &rules.Targets{}, slog.New(slog.DiscardHandler))
	one, err := d.Start(deadletter.Through(l.t.Context(), deadletter.WayCLI), deadletter.Local, deadletter.DrainRequest{
		Queue: "team.dlq", Count: 5,
	})
	if err := errorsOf(
		err, d.Stop(deadletter.Through(l.t.Context(), deadletter.WayAPI), deadletter.Local, one.ID),
	); err != nil {
		l.t.Fatal(err)
	}
	for d.List()[0].State == deadletter.DrainRunning {
		time.Sleep(time.Millisecond)
	}
	between(one.ID)
	ctx, stop := context.WithCancel(l.t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		d.Run(ctx)
	}()
	<-queue.resolved
	for seen := false; !seen; time.Sleep(time.Millisecond) {
		list, _, err := l.store.Audit(l.t.Context(), query.Query{}, "", 1)
		seen = err != nil || list[0].Kind == deadletter.ActDrainResolved
	}
	stop()
	<-ended
}

// trial starts a trial, which never completes in this test.
func (l *ledger) trial() {
	l.t.Helper()
	trials := trial.New(l.store, []trial.Broker{
		{Name: "main", VHost: "/", Unready: func() string { return "" }},
	}, nil, slog.New(slog.DiscardHandler))
	if _, err := trials.Start(
		deadletter.Through(l.t.Context(), deadletter.WayPage), deadletter.Local, "main",
	); err != nil {
		l.t.Fatal(err)
	}
}

// adopt applies a policy and then undoes it.
func (l *ledger) adopt() {
	l.t.Helper()
	s := topology.Snapshot{
		Broker:    "main",
		VHost:     "/",
		Queues:    []topology.Queue{{Name: "sms"}, {Name: "dlo.letters"}},
		Exchanges: []topology.Exchange{{Name: "dlo.dlx", Type: "fanout"}},
		Bindings:  []topology.Binding{{Source: "dlo.dlx", Destination: "dlo.letters", To: "queue"}},
	}
	a := adopt.New(l.store, []adopt.Place{{
		Broker: "main", VHost: "/", Exchange: "dlo.dlx",
		Managed: func() bool { return true }, Unready: func() string { return "there is no broker" },
		Look:   func(context.Context) (topology.Snapshot, error) { return s, nil },
		Policy: func(context.Context, string) (*topology.Policy, error) { return &s.Policies[0], nil },
		Set: func(
			_ context.Context, p topology.Policy,
		) error {
			s.Policies = append(s.Policies, p)
			return nil
		},
		Delete:      func(context.Context, string) error { s.Policies = nil; return nil },
		DeleteProbe: func(context.Context, string) error { return nil },
	}}, func(string, string) {}, nil, slog.New(slog.DiscardHandler))
	ctx := deadletter.Through(l.t.Context(), deadletter.WayCLI)
	if _, err := a.Apply(ctx, deadletter.Local, topology.MakePlan(&s, topology.Want{
		Queues:   []string{"sms"},
		Exchange: "dlo.dlx",
	})); err != nil {
		l.t.Fatal(err)
	}
	list, err := a.Adopted(ctx)
	if err != nil || len(list) != 1 {
		l.t.Fatal(err, list)
	}
	if _, err := a.Undo(ctx, deadletter.Local, list[0].ID); err != nil {
		l.t.Fatal(err)
	}
}

// deny tries a forbidden act three times as a person with the role reader. The audit must record it
// once.
func (l *ledger) deny() {
	l.t.Helper()
	local := l.web.Actor
	defer func() { l.web.Actor = local }()
	l.web.Actor = func(*http.Request) (deadletter.Principal, error) {
		return deadletter.Principal{Name: "rita", Grants: []deadletter.Grant{{Role: deadletter.RoleReader}}}, nil
	}
	for range 3 {
		answer := httptest.NewRecorder()
		l.web.ServeHTTP(answer, httptest.NewRequest("DELETE", "http://"+l.Addr()+"/api/v1/tokens/ci", nil))
		if answer.Code != http.StatusForbidden {
			l.t.Fatalf("%d %s", answer.Code, answer.Body)
		}
	}
}

// use sends three requests with a token, all from the same address.
func (l *ledger) use(secret string) {
	l.t.Helper()
	local := l.web.Actor
	defer func() { l.web.Actor = local }()
	l.web.Actor = identity.New(identity.Options{Tokens: l.store}).Of
	for range 3 {
		answer, r := httptest.NewRecorder(), httptest.NewRequest("GET", "http://"+l.Addr()+"/api/v1/me", nil)
		r.Header.Set("Authorization", "Bearer "+secret)
		if l.web.ServeHTTP(answer, r); answer.Code != http.StatusOK {
			l.t.Fatalf("%d %s", answer.Code, answer.Body)
		}
	}
}

// people adds one of dlo's own users, signs the user in and out, and then removes the user. The
// audit must record each of these acts.
func (l *ledger) people() {
	l.t.Helper()
	ctx := deadletter.Through(l.t.Context(), deadletter.WayPage)
	accounts := identity.NewAccounts(l.store, nil)
	u, err := deadletter.NewUser("lena", deadletter.Grant{Role: deadletter.RoleReader}, "local")
	code, failed := accounts.Add(ctx, u)
	secret, accepted := accounts.Accept(ctx, code, "four words make one", identity.Browser{})
	if _, _, err := accounts.SignIn(ctx, "lena", "wrong", identity.Browser{}); !errors.Is(err, deadletter.ErrSignIn) {
		l.t.Error(err)
	}
	out := accounts.SignOut(ctx, secret)
	_, _, reset := accounts.Reset(ctx, "lena", "local", identity.AnyUser)
	if err := errors.Join(err, failed, accepted, out, reset, accounts.Remove(ctx, "lena", "local")); err != nil {
		l.t.Fatal(err)
	}
}
