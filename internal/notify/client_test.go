package notify

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

const canary = "c4n4ry-5ecret"

// receiver is a server that records the requests and sends the given answers.
type receiver struct {
	*httptest.Server
	mu       sync.Mutex
	requests []received
	answers  []func(http.ResponseWriter) // answers in this order; after the last one, 200
}

type received struct {
	path   string
	header http.Header
	body   []byte
}

func newReceiver(t testing.TB, answers ...func(http.ResponseWriter)) *receiver {
	t.Helper()
	r := &receiver{answers: answers}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, _ := io.ReadAll(q.Body)
	r.mu.Lock()
	r.requests = append(r.requests, received{q.Method + " " + q.URL.Path, q.Header, body})
	var answer func(http.ResponseWriter)
	if len(r.answers) > 0 {
		answer, r.answers = r.answers[0], r.answers[1:]
	}
	r.mu.Unlock()
	if answer != nil {
		answer(w)
	}
}

// receivedRequests returns the requests that were received so far.
func (r *receiver) receivedRequests() []received {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]received(nil), r.requests...)
}

func respondWith(status int, body string, header ...string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// newSecure returns a TLS server that does not log failed handshakes.
func newSecure(t testing.TB, h http.Handler) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// noSecret fails the test if a text contains something that only the sender and the receiver may
// know.
func noSecret(t *testing.T, s string) {
	t.Helper()
	if strings.Contains(s, canary) {
		t.Errorf("the secret is in %q", s)
	}
}

func TestAddressesOfChannels(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		url          string
		allowPrivate bool
		err          string
	}{
		{"https://example.com/" + canary, false, ""},
		{"http://127.0.0.1:9093/" + canary, true, ""},
		{"http://example.com/" + canary, false, "plain http needs allow_private"},
		{"ftp://example.com/" + canary, true, "https://"},
		{"file:///" + canary, true, "the url is missing or not valid"},
		{"example.com/" + canary, true, "the url is missing or not valid"},
		{"https:" + canary, true, "the url is missing or not valid"},
		{"https://" + canary + "\x00/", true, "the url is missing or not valid"},
		{"", true, "the url is missing or not valid"},
	} {
		_, err := newClient(c.url, c.allowPrivate)
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: got %v, want %q", c.url, err, c.err)
		}
		if err != nil {
			noSecret(t, err.Error())
		}
	}
}

func TestStatusesAndWhatTheyMean(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		answer    func(http.ResponseWriter)
		permanent bool
		later     time.Duration
		err       string
	}{
		{"taken", respondWith(202, ""), false, 0, ""},
		{"refused", respondWith(404, canary), true, 0, "the receiver answered 404 Not Found"},
		{
			"too many", respondWith(429, canary, "Retry-After", "77"), false, 77 * time.Second,
			"the receiver answered 429 Too Many Requests",
		},
		{
			"for a day", respondWith(503, canary, "Retry-After", "86400"), false, time.Hour,
			"the receiver answered 503 Service Unavailable",
		},
		{
			"nonsense", respondWith(503, canary, "Retry-After", "soon"), false, 0,
			"the receiver answered 503 Service Unavailable",
		},
		{"broken", respondWith(500, canary), false, 0, "the receiver answered 500 Internal Server Error"},
		{
			"elsewhere", respondWith(302, canary, "Location", "http://127.0.0.1:1/"), false, 0,
			"the receiver answered 302 Found: redirects are not followed",
		},
		{"an endless answer", func(w http.ResponseWriter) {
			for range 1000 {
				if _, err := io.WriteString(w, strings.Repeat("x", 10_000)); err != nil {
					return
				}
			}
		}, false, 0, ""},
		{
			"endless headers", func(w http.ResponseWriter) { w.Header().Set("X-Long", strings.Repeat("x", 100_000)) },
			false, 0, "the request failed",
		},
		{"cut", func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, false, 0, "the connection was cut"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newReceiver(t, c.answer)
			client, err := newClient(r.URL+"/"+canary, true)
			if err != nil {
				t.Fatal(err)
			}
			a, err := client.post(t.Context(), nil, []byte("{}"))
			if err == nil {
				err = a.err(404)
			}
			if len(a.body) > mostAnswer {
				t.Errorf("%d bytes were read", len(a.body))
			}
			if n := len(r.receivedRequests()); n != 1 {
				t.Errorf("%d requests", n)
			}
			if c.err == "" && err == nil {
				return
			}
			if err == nil || err.Error() != c.err || errors.Is(err, ErrPermanent) != c.permanent {
				t.Fatalf("got %v, want %q", err, c.err)
			}
			noSecret(t, err.Error())
			var later *LaterError
			if errors.As(err, &later) != (c.later > 0) || c.later > 0 && later.After != c.later {
				t.Errorf("got %v, want to come back after %s", later, c.later)
			}
		})
	}
}

func TestRetryAfterMayBeADate(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)
	for s, want := range map[string]time.Duration{
		"": 0, "0": 0, "-5": 0, "120": 2 * time.Minute, "Fri, 20 Nov 2026 08:10:00 GMT": 10 * time.Minute,
		"Fri, 20 Nov 2026 07:00:00 GMT": 0, "99999999999999999999": 0, "4294967296": time.Hour,
	} {
		if got := retryAfter(s, now); got != want {
			t.Errorf("%q: got %s, want %s", s, got, want)
		}
	}
}

func TestConnectionsThatFailAreExplainedWithoutTheAddress(t *testing.T) {
	t.Parallel()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	silent := newReceiver(t, func(http.ResponseWriter) { time.Sleep(300 * time.Millisecond) })
	secure := newSecure(t, http.NotFoundHandler())
	plain := newReceiver(t)
	for _, c := range []struct{ name, url, err string }{
		{"refused", "http://" + closed.Addr().String(), "the connection was refused"},
		{"silent", silent.URL, "no answer in time"},
		{"an unknown authority", secure.URL, "signed by an unknown authority"},
		{"no TLS", strings.Replace(plain.URL, "http:", "https:", 1), "TLS with the receiver failed"},
		{"no such host", "https://nothing.invalid", "there is no host nothing.invalid"},
	} {
		t.Run(c.name, func(t *testing.T) {
			client, err := newClient(c.url+"/"+canary, true)
			if err != nil {
				t.Fatal(err)
			}
			if c.name == "silent" {
				client.http.Timeout = 50 * time.Millisecond
			}
			if c.name == "no such host" {
				redirectTo(client.guard, "", nil)
				client.guard.plain = false
			}
			_, err = client.post(t.Context(), nil, nil)
			if err == nil || !strings.Contains(err.Error(), c.err) || errors.Is(err, ErrPermanent) {
				t.Fatalf("got %v, want %q", err, c.err)
			}
			noSecret(t, err.Error())
		})
	}
}

// TestProxiesOfTheEnvironmentAreNotAsked checks that requests do not use a proxy that the
// environment of the process names.
func TestProxiesOfTheEnvironmentAreNotAsked(t *testing.T) {
	proxy, r := newReceiver(t), newReceiver(t)
	t.Setenv("HTTP_PROXY", proxy.URL)
	t.Setenv("HTTPS_PROXY", proxy.URL)
	client, err := newClient("http://receiver.example/", true)
	if err != nil {
		t.Fatal(err)
	}
	redirectTo(client.guard, strings.TrimPrefix(r.URL, "http://"), map[string][]string{
		"receiver.example": {"10.0.0.1"},
	})
	if _, err := client.post(t.Context(), nil, nil); err != nil {
		t.Fatal(err)
	}
	if len(proxy.receivedRequests()) != 0 || len(r.receivedRequests()) != 1 {
		t.Error("the proxy was asked")
	}
}

func TestPublicReceiversNeedTLSWithAGoodCertificate(t *testing.T) {
	t.Parallel()
	var got int
	s := newSecure(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { got++ }))
	client, err := newClient("https://example.com/hook", false)
	if err != nil {
		t.Fatal(err)
	}
	redirectTo(client.guard, s.Listener.Addr().String(), map[string][]string{"example.com": {"8.8.8.8"}})
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	client.http.Transport.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: roots}
	if a, err := client.post(context.Background(), nil, nil); err != nil || a.status != 200 || got != 1 {
		t.Errorf("got %+v, %v", a, err)
	}
	client.url = "https://example.net/hook"
	redirectTo(client.guard, s.Listener.Addr().String(), map[string][]string{"example.net": {"8.8.8.8"}})
	if _, err := client.post(
		context.Background(), nil, nil,
	); err == nil || err.Error() != "the certificate of the receiver is not valid for it" {
		t.Errorf("got %v", err)
	}
}
