package web_test

import (
	"context"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/payload"
	"github.com/deadletteroffice/dlo/web"
)

// queueNamed returns the name of a queue as a form sends it.
func queueNamed(broker, vhost, queue string) string {
	return url.Values{"broker": {broker}, "vhost": {vhost}, "queue": {queue}}.Encode()
}

func TestQueuesPage(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.get("/queues").want(t, 200, "Queues appear here when", `aria-current="page"`).wantNot(t, "<table")
	h.receive("sms", 3, "x")
	h.receive("email", 1, "x")
	page := h.get("/queues").want(
		t, 200, `href="/letters?q=queue%3Asms+state%3Adead" aria-label="3 dead letters of sms">3</a>`, "Running",
		"unknown", "Pause the retries of sms",
	).text
	if strings.Contains(page, "Resume") {
		t.Error("what runs can be resumed")
	}
	sms := queueNamed("main", "/", "sms")
	if !strings.Contains(page, html.EscapeString(sms)) {
		t.Errorf("%s is on no form", sms)
	}
	h.post("/queues/pause", url.Values{"place": {sms}, "reason": {" the gateway is down "}}).redirectsTo(t, "/queues")
	h.get("/queues").want(t, 200, "Paused", "by you (no sign-in): the gateway is down", "Resume the retries of sms")
	h.post("/queues/pause", url.Values{"place": {sms}}).want(
		t, 409,
		"Nothing was changed: the retries of queue sms of broker main are already paused; to pause them for another reason, resume them first.",
		"by you (no sign-in): the gateway is down",
	)
	h.post("/queues/pause", url.Values{
		"place":  {queueNamed("main", "/", "email")},
		"reason": {strings.Repeat("x", 501)},
	}).want(t, 400, "a reason has at most 500 bytes")
	h.post("/queues/pause", url.Values{"place": {queueNamed("main", "/", "nope")}}).want(t, 404)
	h.post("/queues/pause", url.Values{"place": {"%zz"}}).want(t, 400)
	h.post("/queues/pause", nil).want(t, 400, "name the queue whose retries are to be paused or resumed")
	h.post("/queues/resume", url.Values{
		"place":  {sms},
		"return": {"/queues?from=30#all-queues"},
	}).redirectsTo(t, "/queues?from=30#all-queues")
	h.post("/queues/resume", url.Values{"place": {sms}}).want(t, 409, "are not paused: there is nothing to resume")
	h.post("/queues/resume", url.Values{"place": {sms}, "return": {"//evil.example"}}).want(t, 409)
	h.get("/audit").want(t, 200, "retries paused", "retries resumed", "the gateway is down")

	h.brokers = append(h.brokers, deadletter.BrokerStatus{
		Name:    "second",
		VHost:   "shop",
		Reason:  "connection refused",
		Inboxes: []deadletter.InboxStatus{{Queue: "orders_error"}},
	})
	h.get("/queues").want(t, 200, `q=queue%3Asms+broker%3Amain+vhost%3A%2F+state%3Adead`, "main /")
	h.Drain()
	h.post("/queues/pause", url.Values{"place": {sms}}).want(t, 503)
	h.post("/groups/G-1/pause", nil).want(t, 503)
}

// TestTheConnectionPage checks what the page says about the brokers, the inboxes and the
// permissions of dlo. The page of queues and the banner of a broker that is away must lead to it,
// and so must the places where these facts were before. People who see only some queues must not
// see it.
func TestTheConnectionPage(t *testing.T) {
	t.Parallel()
	who := deadletter.Principal{Name: "ana", Grants: []deadletter.Grant{{Role: deadletter.RoleViewer}}}
	h := open(t, knownAs(&who), func(o *web.Options) { o.Facts = someFacts })
	main := &h.brokers[0]
	main.Version, main.User = "3.10.8", "dlo-user"
	main.Rights = []deadletter.Right{
		{Operation: "write", Resource: "amq.default", For: "sending retries", State: deadletter.RightRefused},
	}
	const link = `href="/connection">`
	h.get("/connection").want(
		t, 200, "RabbitMQ 3.10.8", "dlo-user", "Connected", "dlo.letters", "No management API is configured or was found.",
		"amq.default", "sending retries", "Refused", `aria-current="page"`,
	).wantNot(t, ">Broker</th>", `id="broker-1"`)
	h.get("/queues").want(t, 200, link, `id="inboxes"`, `id="rights"`).wantNot(t, "Permissions on the broker", "Show the connection")
	main.Managed, main.ManagementFound = true, "http://rabbit:15672"
	h.get("/connection").want(t, 200, "The API was found at http://rabbit:15672, and is not configured.")
	main.ManagementFound = ""
	h.get("/connection").want(t, 200, "configured").wantNot(t, "not configured")

	h.brokers = append(h.brokers, deadletter.BrokerStatus{
		Name:    "second",
		VHost:   "shop",
		Reason:  "connection refused",
		Inboxes: []deadletter.InboxStatus{{Queue: "orders_error"}},
	})
	h.get("/").want(t, 200, `href="/connection">Show the connection</a>`)
	h.get("/connection").want(t, 200, "Not connected", "connection refused", "orders_error", `id="broker-1"`)

	who.Grants[0].Queues = []string{"sms"}
	h.get("/connection").want(t, 403, "this concerns all queues")
	h.get("/queues").want(t, 200).wantNot(t, link)
}

// TestQueuesWithOddNames checks that a form identifies a queue by the exact bytes of its name,
// whatever these are.
func TestQueuesWithOddNames(t *testing.T) {
	t.Parallel()
	h := open(t)
	for _, name := range []string{
		"<script>alert(1)</script>", "two\r\nlines\nof it", "\x00\x1b[31m\u202e", `a "b" *c, -d`, "bad\xff\xfe",
		strings.Repeat("é", 127),
	} {
		h.receive(name, 1, "x")
		page := h.get("/queues").want(t, 200).text
		if strings.Contains(page, "<script>alert") || strings.ContainsAny(page, "\x00\x1b\u202e") {
			t.Errorf("%q is on the page as it is", name)
		}
		place := queueNamed("main", "/", name)
		if !strings.Contains(page, `value="`+html.EscapeString(place)+`"`) {
			t.Errorf("%q is on no form", name)
			continue
		}
		h.post("/queues/pause", url.Values{"place": {place}}).redirectsTo(t, "/queues")
		link := strings.Split(strings.Split(page, `aria-label="1 dead letter of `)[1], `"`)[0]
		if link == "" {
			t.Errorf("%q has no name on the page", name)
		}
	}
	// Each queue on the page has exactly one letter. Therefore each link with the name of a queue
	// must lead to one letter.
	page := h.get("/queues").want(t, 200).text
	links := strings.Split(page, `href="/letters?q=`)[1:]
	found := 0
	for _, l := range links {
		path := "/letters?q=" + html.UnescapeString(l[:strings.IndexByte(l, '"')])
		if strings.Contains(path, "queue%3A") {
			h.get(path).want(t, 200, "1 letter matches")
			found++
		}
	}
	if found != 6 {
		t.Errorf("%d links", found)
	}
}

func TestManyQueuesAreShownInPages(t *testing.T) {
	t.Parallel()
	h := open(t)
	for i := range 70 {
		h.receive(fmt.Sprintf("queue-%02d", i), 1, "x")
	}
	h.postJSON("/api/v1/queues/pause", `{"queue":"queue-65"}`).want(t, 200)
	// queues whose retries are held back come first
	h.get("/queues").want(
		t, 200, "1 to 30 of 70 queues", `href="/queues?from=30#all-queues" rel="next"`, "queue-65", "queue-28",
	).wantNot(t, "queue-29", `rel="prev"`)
	h.get("/queues?from=30").want(
		t, 200, "31 to 60 of 70 queues", `href="/queues#all-queues" rel="prev"`, `href="/queues?from=60#all-queues"`,
		"queue-29",
	)
	h.get("/queues?from=60").want(t, 200, "61 to 70 of 70 queues", "queue-69")
	for _, odd := range []string{"-1", "x", "700", "99999999999999999999"} {
		h.get("/queues?from="+odd).want(t, 200, "1 to 30 of 70")
	}
}

// TestASlowManagementAPIStallsNoQueuePage checks that a call asks the management API about only a
// few queues at a time, and only for a short time. It must not ask about all queues. Facts that are
// missing must be unknown. The page of queues must not ask at all.
func TestASlowManagementAPIStallsNoQueuePage(t *testing.T) {
	t.Parallel()
	var asked, now, most atomic.Int64
	h := open(t, func(o *web.Options) {
		o.Facts = func(ctx context.Context, q deadletter.Origin) deadletter.QueueFacts {
			asked.Add(1)
			n := now.Add(1)
			defer now.Add(-1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			if q.Queue < "queue-010" || q.Queue == "dlo.letters" {
				return deadletter.QueueFacts{Known: true, Exists: true, Ready: 4711}
			}
			<-ctx.Done() // behaves like a management API that never responds
			return deadletter.UnknownQueue
		}
	})
	for i := range 130 {
		h.receive(fmt.Sprintf("queue-%03d", i), 1, "x")
	}
	began := time.Now()
	var out struct {
		Queues []struct {
			Queue string
			Depth *int
		}
	}
	h.get("/api/v1/queues").want(t, 200).json(t, &out)
	if took := time.Since(began); took > 10*time.Second { // 2 s, and time for a busy machine
		t.Errorf("it took %s", took)
	}
	if len(out.Queues) != 130 {
		t.Fatal(len(out.Queues))
	}
	for i, q := range out.Queues {
		if known := q.Depth != nil; known != (i < 10) {
			t.Errorf("%s: depth is known: %v", q.Queue, known)
		}
	}
	if most.Load() > 4 || asked.Load() > 20 {
		t.Errorf("%d at once, %d in all", most.Load(), asked.Load())
	}
	before := asked.Load()
	h.get("/connection").want(t, 200, "4,711") // results are used again for a while
	h.late.Add(int64(time.Minute))
	h.get("/queues").want(t, 200, "unknown")
	if n := asked.Load() - before; n > 0 {
		t.Errorf("asked again about %d queues", n)
	}
}

// TestFactsOfForeignQueuesAreUnknown covers a broker that is no longer in the configuration, or
// that now has another vhost. dlo must not ask it, because its response would be about a different
// queue.
func TestFactsOfForeignQueuesAreUnknown(t *testing.T) {
	t.Parallel()
	h := open(t, func(o *web.Options) { o.Facts = someFacts })
	h.receive("sms", 1, "x")
	h.brokers[0].VHost = "other"
	h.get("/api/v1/queues").want(t, 200, `"queue":"sms","scheduled":0,"dead":1,"held":0,"depth":null,"consumers":null`)
}

func TestPauseOfAGroupOverItsLetters(t *testing.T) {
	t.Parallel()
	masks := payload.Masks{Headers: []string{"authorization"}}
	h := open(t, func(o *web.Options) { o.Header = masks.Header })
	h.receive("sms", 2, "x")
	list := "/letters?q=" + url.QueryEscape("group:G-1 state:dead")
	h.get(list).want(t, 200, "Retries of G-1", "Running", `action="/groups/G-1/pause"`)
	for _, other := range []string{"state:dead", "group:G-1,G-2", "-group:G-1", "group:G-7"} {
		if page := h.get(
			"/letters?q="+url.QueryEscape(other),
		).want(t, 200).text; strings.Contains(page, "Retries of G-") {
			t.Errorf("%s has buttons for a group", other)
		}
	}
	h.post("/groups/G-1/pause", url.Values{"reason": {"new template"}, "return": {list}}).redirectsTo(t, list)
	h.get(list).want(t, 200, "Paused", "by you (no sign-in): new template", `action="/groups/G-1/resume"`)
	h.get("/queues").want(t, 200, "1 group held back", "by you (no sign-in): new template", `action="/groups/G-1/resume"`)
	h.post("/groups/G-1/pause", nil).want(t, 409, "already paused; to pause them for another reason")
	h.post("/groups/G-1/resume", nil).redirectsTo(t, "/groups/G-1")
	h.post("/groups/G-1/resume", nil).want(t, 409, "there is nothing to resume")
	h.post("/groups/G-9/pause", nil).want(t, 404)
	h.post("/groups/x/pause", nil).want(t, 404)
	h.postJSON("/api/v1/queues/pause", `{"queue":"sms","reason":"down"}`).want(t, 200)
	h.get(list).want(t, 200, "with its queue", "by you (no sign-in): down", `action="/groups/G-1/pause"`)
}

func TestAPIQueues(t *testing.T) {
	t.Parallel()
	h := open(t, func(o *web.Options) { o.Facts = someFacts })
	h.get("/api/v1/queues").want(
		t, 200,
		`{"queues":[],"inboxes":[{"broker":"main","vhost":"/","queue":"dlo.letters","connected":true,"draining":true,"depth":null,"note":""}]}`,
	)
	h.receive("sms", 2, "x")
	h.receive("email", 1, "x")
	h.get("/api/v1/queues").want(
		t, 200,
		`{"broker":"main","vhost":"/","queue":"sms","scheduled":0,"dead":2,"held":0,"depth":7,"consumers":0,"retries":{"state":"running","why":"","by":""},"away":"","groups_paused":[]}`,
		`"queue":"email","scheduled":0,"dead":1,"held":0,"depth":null,"consumers":null`,
	)
	h.postJSON("/api/v1/queues/pause", `{"queue":"sms","reason":"down"}`).want(
		t, 200,
		`{"broker":"main","vhost":"/","queue":"sms","state":"paused","why":"down","by":"local","since":"2026-11-20T09:00:00Z"}`,
	)
	h.postJSON(
		"/api/v1/queues/pause", `{"queue":"sms","reason":"down"}`, "Idempotency-Key", "k",
	).want(t, 409, "already paused; to pause them for another reason, resume them first")
	h.postJSON("/api/v1/groups/G-1/pause", `{"reason":"why"}`).want(
		t, 200, `"group":"G-1","title":"endpoint answered 410 Gone","state":"paused","why":"why"`,
	)
	h.get("/api/v1/queues").want(
		t, 200, `"retries":{"broker":"main","vhost":"/","queue":"sms","state":"paused","why":"down","by":"local","since":"2026-11-20T09:00:00Z"}`,
		`"groups_paused":[{"broker":"main","vhost":"/","queue":"sms","group":"G-1","title":"endpoint answered 410 Gone","state":"paused","why":"why","by":"local","since":"2026-11-20T09:00:00Z"}]`,
	)
	h.postJSON(
		"/api/v1/queues/resume", `{"queue":"sms","broker":"main","vhost":"/"}`,
	).want(t, 200, `{"broker":"main","vhost":"/","queue":"sms","state":"running","why":"","by":""}`)
	h.postJSON("/api/v1/queues/resume", `{"queue":"sms"}`).want(t, 409, "there is nothing to resume")
	h.postJSON("/api/v1/groups/g-1/resume", `{}`).want(t, 200, `{"group":"G-1","state":"running"`)
	for _, c := range []struct {
		path, body string
		status     int
		detail     string
	}{
		{"/queues/pause", `{"queue":"nope"}`, 404, ""},
		{"/queues/pause", `{"queue":"sms","broker":"other"}`, 404, ""},
		{"/queues/pause", `{}`, 400, "name the queue"},
		{"/queues/pause", `{"queue":"sms","until":"noon"}`, 400, "until"},
		{"/queues/pause", `{"queue":"sms","reason":"` + strings.Repeat("x", 501) + `"}`, 400, "at most 500 bytes"},
		{"/queues/pause", `{"queue":"` + strings.Repeat("x", 256) + `"}`, 400, "at most 255 bytes"},
		{"/groups/G-9/pause", `{}`, 404, ""},
		{"/groups/7x/pause", `{}`, 404, ""},
		{"/groups/G-1/pause", `nonsense`, 400, "the JSON cannot be read"},
	} {
		if a := h.postJSON(
			"/api/v1"+c.path, c.body,
		); a.StatusCode != c.status || !strings.Contains(a.text, c.detail) ||
			a.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s %.60s: %d %s", c.path, c.body, a.StatusCode, a.text)
		}
	}
	h.get("/api/v1/queues?q=x").want(t, 400, "there is no parameter")
	h.brokers = append(h.brokers, deadletter.BrokerStatus{
		Name:    "second",
		VHost:   "/",
		Reason:  "connection refused",
		Inboxes: []deadletter.InboxStatus{{Queue: "dlo.letters"}},
	})
	h.postJSON("/api/v1/queues/pause", `{"queue":"sms"}`).want(t, 400, "say which")
	h.get("/api/v1/queues").want(t, 200, `"connected":false,"draining":false,"depth":null,"note":"connection refused"`)
	h.Drain()
	h.postJSON("/api/v1/queues/pause", `{"queue":"sms","broker":"main"}`).want(t, 503)

	other := open(t, func(o *web.Options) {
		o.Actor = func(*http.Request) (deadletter.Principal, error) {
			return deadletter.Principal{Name: "ann", Grants: []deadletter.Grant{{Role: deadletter.RoleReader}}}, nil
		}
	})
	other.receive("sms", 1, "x")
	other.postJSON("/api/v1/queues/pause", `{"queue":"sms"}`).want(t, 403, "may not pause or resume retries")
	other.postJSON("/api/v1/groups/G-1/pause", `{}`).want(t, 403)
}

// TestABreakerOnTheQueuesPage checks that people can pause or resume retries after a breaker has
// stopped them. While retries are ramping up, people can only pause them.
func TestABreakerOnTheQueuesPage(t *testing.T) {
	t.Parallel()
	breaker := deadletter.Breaker{
		Origin: deadletter.Origin{Broker: "main", VHost: "/", Queue: "sms"},
		State:  deadletter.GuardTripped,
		Why:    "49 of 50 came back",
		Since:  start,
		Until:  start.Add(5 * time.Minute),
	}
	h := open(t)
	set := func(state deadletter.GuardState) {
		breaker.State = state
		if err := h.store.SetBreaker(t.Context(), breaker, nil); err != nil {
			t.Fatal(err)
		}
	}
	set(deadletter.GuardTripped)
	// although the queue has no letters any more
	h.get("/queues").want(
		t, 200, "Tripped", "49 of 50 came back, next probe in 4 min", "Pause the retries of sms",
		"Resume the retries of sms",
	)
	h.get("/api/v1/queues").want(
		t, 200,
		`"retries":{"broker":"main","vhost":"/","queue":"sms","state":"tripped","why":"49 of 50 came back","by":"dlo","since":"2026-11-20T09:00:00Z","until":"2026-11-20T09:05:00Z"}`,
	)
	set(deadletter.GuardProbing)
	h.get("/queues").want(t, 200, "Probing", "are being watched")
	set(deadletter.GuardRamping)
	if page := h.get("/queues").want(
		t, 200, "Ramping", "Pause the retries of sms",
	).text; strings.Contains(page, "Resume the") {
		t.Error("what ramps can be resumed")
	}
	if _, err := h.store.Pause(t.Context(), deadletter.Guard{
		Origin: breaker.Origin, Why: "enough", By: "ann",
	}); err != nil {
		t.Fatal(err)
	}
	h.get("/queues").want(t, 200, "Paused", "by ann: enough")
}
