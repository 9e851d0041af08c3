package web_test

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/schemas"
	"github.com/deadletteroffice/dlo/internal/storetest"

	"github.com/deadletteroffice/dlo/internal/classify"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/operation"
	"github.com/deadletteroffice/dlo/internal/payload"
	"github.com/deadletteroffice/dlo/internal/rules"
	"github.com/deadletteroffice/dlo/internal/store"
	"github.com/deadletteroffice/dlo/web"
	"github.com/deadletteroffice/dlo/web/view"
)

// house is a Web with a real store and a real desk, but without a broker. Tests set the status and
// the facts of the broker.
type house struct {
	*web.Web
	t       *testing.T
	store   *store.Store
	file    string // of the store
	desk    *operation.Desk
	brokers []deadletter.BrokerStatus
	asked   sync.Mutex // held while a request reads brokers, or connects one
	facts   deadletter.QueueFacts
	log     strings.Builder
	window  int64
	ahead   atomic.Int64 // how far the clock of the desk is ahead
	late    atomic.Int64 // how far the clocks of the store and the pages are ahead

	book       *rules.Book // the rules of the classifier
	classifier *classify.Classifier
	failure    string           // the error in the headers of letters; "" = the usual error
	headers    deadletter.Table // further headers of received letters
}

var start = time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)

func open(t *testing.T, change ...func(*web.Options)) *house {
	t.Helper()
	return openFile(t, storetest.File(t), change...)
}

// openFile starts a dlo for a test, with the given file as its store.
func openFile(t *testing.T, path string, change ...func(*web.Options)) *house {
	t.Helper()
	h := &house{t: t, file: path}
	now := func() time.Time { return start.Add(time.Duration(h.late.Load())) }
	s, err := store.Open(context.Background(), path, store.Options{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	h.store, h.facts, h.brokers = s, deadletter.UnknownQueue, []deadletter.BrokerStatus{
		{
			Name:      "main",
			VHost:     "/",
			Version:   "4.3.6",
			Connected: true,
			Reached:   true,
			Since:     start,
			Inboxes:   []deadletter.InboxStatus{{Queue: "dlo.letters", Draining: true}},
		},
	}
	targets := &rules.Targets{}
	targets.Add("main", "/", []string{"*"}, []string{"dlo.letters"})
	targets.Add("second", "shop", []string{"*"}, nil)
	h.book = rules.NewBook(&rules.Set{
		Default: rules.Rule{
			Name: rules.DefaultName, Retry: &rules.Retry{Delays: []time.Duration{time.Hour}},
			Severity: deadletter.SeverityDigest,
		},
	})
	h.classifier = classify.New(s, classify.Options{
		Decoder: func() *payload.Decoder { return &payload.Decoder{} }, Rules: h.book, Targets: targets,
		Now: func() time.Time { return start }, Log: slog.New(slog.DiscardHandler),
	})
	h.desk = operation.New(s, operation.Options{
		Edit: func(l *deadletter.Letter, patch []byte, reveal bool) (deadletter.Revision, error) {
			return h.Decoder().Revise(l, patch, reveal)
		},
		Away:    func(o deadletter.Origin) string { return deadletter.Away(h.brokers, o) },
		Decider: h.classifier, Now: func() time.Time { return start.Add(time.Duration(h.ahead.Load())) },
		Targets: targets, Facts: func(context.Context, deadletter.Origin) deadletter.QueueFacts { return h.facts },
		Log: slog.New(slog.DiscardHandler),
	})
	o := web.Options{
		Store:     s,
		Desk:      h.desk,
		Picker:    picker{s},
		Schemas:   schemas.New(s, schemas.Options{}),
		Digests:   digests{s},
		Reports:   s,
		Drains:    &fakeDrains{},
		Trials:    &staged{},
		Topology:  looked{},
		Adoption:  &adopted{},
		Channels:  &noChannels{},
		Settings:  &fileInMemory{},
		Backups:   backups{h: h},
		Rules:     h.book,
		RuleFacts: h.classifier.Facts,
		Masked:    func(string) bool { return false },
		Observed:  func(deadletter.Origin) bool { return false },
		Connector: connector{h},
		Told:      func() []string { return []string{"oncall"} },
		Disk:      func() string { return "18 GiB free" },
		Doctor: func(context.Context) []deadletter.Checkup {
			return []deadletter.Checkup{{Part: "disk", Text: "18 GiB free"}}
		},
		Facts:   func(context.Context, deadletter.Origin) deadletter.QueueFacts { return deadletter.UnknownQueue },
		Brokers: h.statuses,
		Setup:   view.Setup{Broker: "main", Exchange: "dlo.dlx", Inbox: "dlo.letters", VHost: "/"},
		Hosts:   []string{"dlo.example"},
		Restore: 7 * 24 * time.Hour,
		Now:     func() time.Time { return now().Add(time.Minute) },
		Log:     slog.New(slog.NewTextHandler(&h.log, nil)),
	}
	for _, c := range change {
		c(&o)
	}
	h.Web = web.New(o)
	return h
}

// exec changes the file of the store, to make states that are hard to reach.
func (h *house) exec(statement string, args ...any) {
	h.t.Helper()
	file, err := sql.Open("sqlite", h.file)
	if err != nil {
		h.t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.Exec(statement, args...); err != nil {
		h.t.Fatal(err)
	}
}

// receive stores n letters that died in the given queue, and classifies them as dead.
func (h *house) receive(queue string, n int, body string) []deadletter.ID {
	h.t.Helper()
	h.window++
	w := deadletter.Window{
		Session: 1, Number: h.window, Broker: "main", VHost: "/", Inbox: "dlo.letters",
		Uncertain: deadletter.UncertainHold, Horizon: time.Minute, HorizonRows: 1000,
	}
	for i := range n {
		a := deadletter.Arrival{
			Exchange:   "dlo.dlx",
			RoutingKey: queue,
			Tag:        uint64(i + 1),
			Body:       []byte(body),
			Properties: deadletter.Properties{
				DeliveryMode: 2,
				MessageID:    fmt.Sprintf("m-%d-%d", h.window, i),
				AppID:        "shop",
				Headers: deadletter.Table{
					"x-error-message": "endpoint answered 410 Gone", "tries": int32(3),
					"x-death": []any{
						deadletter.Table{
							"queue":        queue,
							"exchange":     "events",
							"reason":       "rejected",
							"count":        int64(1),
							"routing-keys": []any{"k"},
							"time":         start.Add(-time.Minute),
						},
					},
				},
			},
		}
		maps.Copy(a.Properties.Headers, h.headers)
		print, err := a.Print()
		if err != nil {
			h.t.Fatal(err)
		}
		a.Fingerprint = print
		w.Arrivals = append(w.Arrivals, a)
	}
	r, err := h.store.Receive(context.Background(), w)
	if err != nil {
		h.t.Fatal(err)
	}
	if err := h.store.SettleWindow(context.Background(), r.Window); err != nil {
		h.t.Fatal(err)
	}
	letters, err := h.store.NextReceived(context.Background(), 500)
	if err != nil {
		h.t.Fatal(err)
	}
	failure := cmp.Or(h.failure, "endpoint answered 410 Gone")
	var verdicts []deadletter.Classified
	for _, l := range letters {
		_, origin := deadletter.ReadDeaths(l.Arrived.Headers, deadletter.OwnQueue)
		origin.Broker, origin.VHost = "main", "/"
		verdicts = append(verdicts, deadletter.Classified{
			Letter: l.ID, To: deadletter.ClassifiedDead, Origin: origin,
			DiedAt: start.Add(time.Duration(h.late.Load())), Reason: "rejected", Type: "acme.hooks.v1.WebhookDelivery",
			Summary: "url: \"https://example\"",
			Error:   failure, Why: "retries used up: 3 of 3", GroupKey: sha256.Sum256([]byte(origin.Queue + h.failure)),
			GroupTitle: failure, GroupVersion: 1, Severity: deadletter.SeverityDigest,
		})
	}
	if err := h.store.Classify(context.Background(), verdicts); err != nil {
		h.t.Fatal(err)
	}
	return r.New
}

// advance runs the steps of all operations, for example the sending of letters. It moves the clock
// forward between the steps, so that no step has to wait.
func (h *house) advance() {
	h.t.Helper()
	for range 20 { // the delay of a hold, and that of any rate, pass at once
		if _, _, err := h.desk.Step(context.Background()); err != nil {
			h.t.Fatal(err)
		}
		h.ahead.Add(int64(time.Second))
	}
}

type answer struct {
	*http.Response
	text string
}

// do sends a request as a page of dlo would.
func (h *house) do(r *http.Request) answer {
	h.t.Helper()
	if r.Host == "example.com" {
		r.Host = "dlo.example"
	}
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	res := rec.Result()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	return answer{res, string(b)}
}

func (h *house) get(path string) answer {
	h.t.Helper()
	return h.do(httptest.NewRequest("GET", path, nil))
}

func (h *house) post(path string, form url.Values, cookies ...*http.Cookie) answer {
	h.t.Helper()
	r := httptest.NewRequest("POST", path, strings.NewReader(form.Encode()))
	for _, c := range cookies {
		r.AddCookie(c)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	return h.do(r)
}

func (h *house) postJSON(path, body string, headers ...string) answer {
	h.t.Helper()
	r := httptest.NewRequest("POST", path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return h.do(r)
}

func (h *house) patchJSON(path, body string) answer {
	h.t.Helper()
	r := httptest.NewRequest("PATCH", path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	return h.do(r)
}

// want fails the test unless the response has the given status and contains the given texts.
func (a answer) want(t *testing.T, status int, texts ...string) answer {
	t.Helper()
	if a.StatusCode != status {
		t.Fatalf("status %d, want %d: %.600s", a.StatusCode, status, a.text)
	}
	for _, text := range texts {
		if !strings.Contains(a.text, text) {
			t.Errorf("%q is missing in: %.3000s", text, a.text)
		}
	}
	return a
}

// redirectsTo fails the test unless the response redirects to the given path.
func (a answer) redirectsTo(t *testing.T, path string) {
	t.Helper()
	if a.StatusCode != http.StatusSeeOther || a.Header.Get("Location") != path {
		t.Errorf("%d to %q, want 303 to %q: %.300s", a.StatusCode, a.Header.Get("Location"), path, a.text)
	}
}

func (a answer) json(t *testing.T, into any) {
	t.Helper()
	if kind := a.Header.Get("Content-Type"); kind != "application/json" {
		t.Fatalf("%s is no JSON: %.300s", kind, a.text)
	}
	err := json.Unmarshal([]byte(a.text), into)
	if err != nil { // into is of the types of the API
		err = api.Unmarshal([]byte(a.text), into)
	}
	if err != nil {
		t.Fatalf("%v: %.300s", err, a.text)
	}
}

// statuses returns the state of the brokers. Several requests may read it at the same time.
func (h *house) statuses() []deadletter.BrokerStatus {
	h.asked.Lock()
	defer h.asked.Unlock()
	return slices.Clone(h.brokers)
}
