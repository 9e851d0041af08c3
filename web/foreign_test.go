package web_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/web"
)

// guardedWeb returns a Web whose first checks must reject every request of the test. If a request
// reaches the store, the desk or another dependency, the test fails.
func guardedWeb(t *testing.T) *web.Web {
	t.Helper()
	touched := func(what string) { t.Errorf("%s was asked", what) }
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "touched", Help: "-",
	}, func() float64 { touched("a metric"); return 0 }))
	return web.New(web.Options{
		Drains:   struct{ web.Drainer }{},
		Reports:  struct{ web.Annotator }{},
		Digests:  struct{ web.Digester }{},
		Picker:   struct{ web.Picker }{},
		Brokers:  func() []deadletter.BrokerStatus { touched("the state of the brokers"); return nil },
		Problems: func() []deadletter.Problem { touched("the list of problems"); return nil },
		Actor: func(*http.Request) (deadletter.Principal, error) {
			touched("the actor")
			return deadletter.Principal{}, errors.New("unknown")
		},
		Metrics: promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}),
		Hosts:   []string{"dlo.example"},
	})
}

// refusedBare sends a request that dlo must reject before it reads the store. It checks that the
// response contains nothing but the status.
func refusedBare(t *testing.T, w *web.Web, r *http.Request, want int) {
	t.Helper()
	answer := httptest.NewRecorder()
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("%s %s reached the store: %v", r.Method, r.URL, p)
		}
	}()
	w.ServeHTTP(answer, r)
	text := answer.Body.String()
	if answer.Code != want {
		t.Errorf("%s %s: %d, want %d", r.Method, r.URL, answer.Code, want)
	}
	if len(text) > 300 || strings.Contains(text, "<") {
		t.Errorf("%s %s: more than a bare page: %.300s", r.Method, r.URL, text)
	}
	if got := answer.Header().Get("Content-Security-Policy"); got != policy {
		t.Errorf("%s %s: policy %q", r.Method, r.URL, got)
	}
}

// allRoutes returns all routes, each with every method, and some paths that have no route.
func allRoutes(t *testing.T, w *web.Web) [][2]string {
	t.Helper()
	list := [][2]string{{"GET", "/nowhere"}, {"POST", "/api/v1/nowhere"}, {"DELETE", "/letters"}}
	err := chi.Walk(w.Routes(), func(method, route string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		path := strings.NewReplacer("{id}", "1", "{set}", "shop", "*", "app.css").Replace(route)
		list = append(list, [2]string{method, path})
		return nil
	})
	if err != nil || len(list) < 80 {
		t.Fatal(len(list), err)
	}
	return list
}

func TestAForeignHostSeesABarePage(t *testing.T) {
	t.Parallel()
	w := guardedWeb(t)
	for _, door := range allRoutes(t, w) {
		if door[1] == "/healthz" {
			continue
		}
		r := request(door[0], door[1], "")
		r.Host = "attacker.example"
		refusedBare(t, w, r, http.StatusMisdirectedRequest)
	}
}

func TestAnotherSiteSeesABarePage(t *testing.T) {
	t.Parallel()
	w := guardedWeb(t)
	for _, door := range allRoutes(t, w) {
		method, path := door[0], door[1]
		for name, value := range map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"} {
			if name == "Origin" && (method == "GET" || method == "HEAD" || method == "OPTIONS") {
				continue // a browser would also send Sec-Fetch-Site
			}
			r := request(method, path, "")
			r.Host = "dlo.example"
			r.Header.Set(name, value)
			r.Header.Set("Content-Encoding", "gzip") // also rejected, but by a later check
			refusedBare(t, w, r, http.StatusForbidden)
		}
	}
}
