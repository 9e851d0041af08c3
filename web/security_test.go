package web_test

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/web"
)

func request(method, path, body string) *http.Request {
	return httptest.NewRequest(method, path, strings.NewReader(body))
}

func deadQuery(t *testing.T) query.Query {
	t.Helper()
	q, err := query.Parse("state:dead", query.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return q
}

const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

func TestEveryAnswerCarriesTheHeaders(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.receive("sms", 1, "x")[0]
	for _, path := range []string{
		"/letters?q=", "/letters?q=wrong", "/letters/" + string(id), "/operations", "/nowhere", "/api/v1/letters",
		"/api/v1/nowhere", "/healthz", "/readyz", "/static/nothing",
	} {
		a := h.get(path)
		for header, want := range map[string]string{
			"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
			"Cross-Origin-Opener-Policy":   "same-origin",
			"Cross-Origin-Resource-Policy": "same-origin", "Cache-Control": "no-store",
		} {
			if got := a.Header.Get(header); got != want {
				t.Errorf("%s: %s is %q", path, header, got)
			}
		}
		if a.Header.Get("Permissions-Policy") == "" || a.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: %v", path, a.Header)
		}
	}
}

func TestAForeignHostIsMisdirected(t *testing.T) {
	t.Parallel()
	h := open(t)
	for host, want := range map[string]int{
		"dlo.example": 200, "DLO.example:8672": 200, "evil.example": 421, "dlo.example.evil.example": 421, "": 421,
		"127.0.0.1:8672": 421,
	} {
		for _, path := range []string{"/operations", "/api/v1/letters", "/readyz"} {
			r := request("GET", path, "")
			r.Host = host
			if a := h.do(r); a.StatusCode != want {
				t.Errorf("%q %s: %d", host, path, a.StatusCode)
			}
		}
	}
	r := request("GET", "/healthz", "")
	r.Host = "10.0.0.7:8672"
	h.do(r).want(t, 200, "alive")
}

func TestHosts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		listen, public string
		configured     []string
		want           []string
	}{
		{"127.0.0.1:8672", "http://127.0.0.1:8672", nil, []string{"127.0.0.1:8672", "localhost:8672", "[::1]:8672"}},
		{"localhost:1", "", nil, []string{"localhost:1", "127.0.0.1:1", "[::1]:1"}},
		{"10.0.0.1:8672", "https://dlo.example", nil, []string{"10.0.0.1:8672", "dlo.example"}},
		{":8672", "https://dlo.example:444", nil, []string{"dlo.example:444"}},
		{"127.0.0.1:8672", "http://x", []string{"only.example"}, []string{"only.example"}},
	} {
		if got := web.Hosts(c.listen, c.public, c.configured); !slices.Equal(got, c.want) {
			t.Errorf("Hosts(%q, %q, %v) = %v, want %v", c.listen, c.public, c.configured, got, c.want)
		}
	}
}

// TestAnotherSiteCannotAct sends requests to every route that changes something, as if a page of
// another site had sent them from the browser of an admin. Each response must contain only the
// status 403 and this reason. Any other reason would come from a check that runs too late.
func TestAnotherSiteCannotAct(t *testing.T) {
	t.Parallel()
	g := openGuests(t)
	g.receive("sms", 1, "x")
	g.signIn("root", passphrase).want(t, 303)
	session := g.cookies
	paths := strings.NewReplacer("{id}", "1", "{set}", "shop", "{name}", "main")
	acts := 0
	if err := chi.Walk(
		g.Routes(), func(method, route string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
			if slices.Contains([]string{
				http.MethodGet, http.MethodHead, http.MethodOptions,
			}, method) || strings.HasPrefix(route, "/static/") {
				return nil
			}
			acts++
			for _, header := range [][2]string{
				{"Sec-Fetch-Site", "cross-site"},
				{"Sec-Fetch-Site", "same-site"},
				{"Origin", "https://evil.example"},
				{"Origin", "null"},
			} {
				r := request(method, paths.Replace(route), "")
				r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
				r.Header.Set(header[0], header[1])
				for _, c := range session {
					r.AddCookie(c)
				}
				bare := "the request came from another site, so dlo rejected it\n"
				if strings.HasPrefix(route, "/api/") {
					bare = `{"type":"about:blank","title":"Forbidden","status":403,` +
						`"detail":"the request came from another site, so dlo rejected it"}` + "\n"
				}
				if a := g.do(r); a.StatusCode != 403 || len(a.Cookies()) > 0 || a.text != bare {
					t.Errorf(
						"%s %s with %s: %s gives %d, %.200s", method, route, header[0], header[1], a.StatusCode, a.text,
					)
				}
			}
			return nil
		},
	); err != nil {
		t.Fatal(err)
	}
	if acts < 60 {
		t.Errorf("there are %d routes that change something, which cannot be all", acts)
	}
	g.ask("GET", "/account", nil).want(t, 200, "root") // the session has not ended
	if n, _ := g.store.Operations(t.Context(), 0, 10); len(n) != 0 {
		t.Error("another site started an operation")
	}
}

// TestAnotherSiteMayLinkHere checks that a person who follows a link on another site sees the page.
// If a page of another site sends a request in any other way, it must be rejected. Such a page
// could not read the response, but it could measure how long a search takes.
func TestAnotherSiteMayLinkHere(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.receive("sms", 1, "x")
	for _, c := range []struct {
		path, site, mode, dest string
		want                   int
	}{
		{"/letters?q=x", "cross-site", "navigate", "document", 200},
		{"/letters?q=x", "same-site", "navigate", "document", 200},
		{"/letters?q=x", "none", "navigate", "document", 200},
		{"/letters?q=x", "same-origin", "cors", "empty", 200},
		{"/letters?q=x", "cross-site", "navigate", "iframe", 403},
		{"/letters?q=x", "cross-site", "no-cors", "image", 403},
		{"/letters?q=x", "same-site", "cors", "empty", 403},
		{"/letters?q=x", "cross-site", "", "", 403},
		{"/api/v1/letters?q=x", "cross-site", "no-cors", "script", 403},
		{"/letters?reveal=1", "cross-site", "navigate", "document", 403},
		{"/events", "same-site", "cors", "empty", 403},
		{"/api/v1/events", "cross-site", "navigate", "document", 403},
	} {
		r := request("GET", c.path, "")
		for name, value := range map[string]string{
			"Sec-Fetch-Site": c.site, "Sec-Fetch-Mode": c.mode, "Sec-Fetch-Dest": c.dest,
		} {
			if value != "" {
				r.Header.Set(name, value)
			}
		}
		if a := h.do(r); a.StatusCode != c.want {
			t.Errorf("%+v: %d", c, a.StatusCode)
		}
	}
}

// TestGetChangesNothing requests every GET route, and checks that the store has not changed. Only
// /readyz writes to the store, in order to test it.
func TestGetChangesNothing(t *testing.T) {
	t.Parallel()
	h := open(t, withRetries, withLibrary, withUsers, func(o *web.Options) {
		o.Drains, o.Trials = &fakeDrains{}, &staged{newest: &deadletter.Trial{State: deadletter.TrialDone}}
	})
	id := string(h.receive("sms", 1, "x")[0])
	paths := []string{
		"/api/v1/types/proto?type=acme.notify.v1.SmsRequested", "/letters/" + id + "/body", "/letters/" + id + "/edit",
		"/letters/" + id + "/copy", "/queues/one?broker=main&vhost=%2F&queue=sms", "/letters/" + id + "/copy?as=curl",
		"/groups/G-1", "/api/v1/letters/" + id, "/api/v1/letters/" + id + "/body", "/api/v1/groups/G-1",
	}
	chi.Walk(h.Routes(), func(method, route string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		if method == "GET" && !strings.ContainsAny(route, "{*") && !strings.HasSuffix(route, "/events") &&
			route != "/readyz" && route != "/api/v1/types/proto" && route != "/queues/one" && route != "/welcome" {
			paths = append(paths, route)
		}
		return nil
	})
	before := h.store.Changes()
	for _, path := range paths {
		h.get(path)
		r := request("HEAD", path, "")
		if a := h.do(r); a.StatusCode >= 400 {
			t.Errorf("HEAD %s: %d", path, a.StatusCode)
		}
		if now := h.store.Changes(); now != before {
			t.Fatalf("GET %s changed the store: %d, then %d", path, before, now)
		}
	}
	for _, path := range []string{"/letters/confirm", "/operations/O-1/cancel", "/theme"} {
		if a := h.get(path); a.StatusCode != 405 && a.StatusCode != 404 {
			t.Errorf("GET %s: %d", path, a.StatusCode)
		}
	}
}

// TestEveryActionPassesTheGate checks that every action on a letter rejects a principal whose grant
// covers only another queue.
func TestEveryActionPassesTheGate(t *testing.T) {
	t.Parallel()
	h := open(t, func(o *web.Options) {
		o.Actor = func(*http.Request) (deadletter.Principal, error) {
			return deadletter.Principal{
				Name: "mallory",
				Grants: []deadletter.Grant{
					{Role: deadletter.RoleAdmin, Places: deadletter.Places{Queues: []string{"other"}}},
				},
			}, nil
		}
	})
	id := string(h.receive("sms", 1, "x")[0])
	h.post("/letters/confirm", url.Values{"action": {"requeue"}, "id": {id}}).want(t, 404)
	h.post("/operations", url.Values{"action": {"requeue"}, "id": {id}}).want(t, 404)
	h.postJSON("/api/v1/operations", `{"action":"discard","ids":["`+id+`"]}`).want(t, 404)
	h.postJSON("/api/v1/operations", `{"action":"discard","dry_run":true,"ids":["`+id+`"]}`).want(t, 404)
	for _, path := range []string{
		"/letters/" + id, "/letters/" + id + "/body", "/letters/" + id + "/copy", "/letters/" + id + "/copy?as=curl",
		"/api/v1/letters/" + id, "/api/v1/letters/" + id + "/body",
	} {
		h.get(path).want(t, 404)
	}
}

func TestAPanicIsOurMistake(t *testing.T) {
	t.Parallel()
	h := open(t, func(o *web.Options) {
		o.Desk = nil
	})
	id := string(h.receive("sms", 1, "secret body")[0])
	a := h.post("/letters/confirm", url.Values{"action": {"requeue"}, "id": {id}}).want(t, 500, "Something broke")
	if strings.Contains(a.text, "nil pointer") || strings.Contains(a.text, "goroutine") {
		t.Error("the page shows the inside of the program")
	}
	if !strings.Contains(h.log.String(), "panic") || strings.Contains(h.log.String(), "secret body") {
		t.Errorf("log: %s", h.log.String())
	}
}

func TestStopping(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := string(h.receive("sms", 1, "x")[0])
	h.get("/readyz").want(t, 200, `"ready":true`)
	h.brokers[0].Connected, h.brokers[0].Reason = false, "connection refused"
	h.get("/readyz").want(t, 503, "no broker is connected", "connection refused")
	h.brokers[0].Connected = true
	h.Drain()
	h.Drain()
	h.get("/readyz").want(t, 503, "stopping")
	h.get("/healthz").want(t, 200)
	h.get("/letters?q=").want(t, 200)
	h.post("/operations", url.Values{"action": {"requeue"}, "id": {id}}).want(t, 503, "dlo is stopping")
	a := h.postJSON("/api/v1/operations", `{"action":"discard","ids":["`+id+`"]}`).want(t, 503)
	if a.Header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
}

func TestAStoreThatFails(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.store.Close()
	h.get("/readyz").want(t, 503, "the store does not answer")
	for _, path := range []string{"/letters?q=", "/api/v1/letters/count"} {
		if a := h.get(path).want(t, 500); strings.Contains(a.text, "database is closed") {
			t.Errorf("%s shows what the store says: %s", path, a.text)
		}
	}
	if !strings.Contains(h.log.String(), "database is closed") {
		t.Error("the log does not say what failed")
	}
}

func TestEventsSayWhatChanged(t *testing.T) {
	t.Parallel()
	h := open(t, func(o *web.Options) { o.Hosts = nil })
	server := httptest.NewUnstartedServer(nil)
	server.Config = h.Server()
	// the stream continues beyond these timeouts
	server.Config.ReadTimeout, server.Config.WriteTimeout = time.Second, time.Second
	server.Start()
	defer server.Close()
	res, err := http.Get(server.URL + "/events?since=0")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if kind := res.Header.Get("Content-Type"); kind != "text/event-stream" {
		t.Fatal(kind)
	}
	lines := make(chan string)
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(res.Body); s.Scan(); {
			lines <- s.Text()
		}
	}()
	await := func(want string) {
		t.Helper()
		timeout := time.After(20 * time.Second)
		for {
			select {
			case l, ok := <-lines:
				if !ok {
					t.Fatalf("the stream ended before %q", want)
				}
				if l == want {
					return
				}
			case <-timeout:
				t.Fatalf("no %q", want)
			}
		}
	}
	await("retry: 3000")
	time.Sleep(1500 * time.Millisecond)
	h.receive("sms", 1, "x")
	await("event: letters")
	await("event: operation")
	h.Drain()
	for range lines { // ends when the stream ends
	}
	io.Copy(io.Discard, res.Body)
}
