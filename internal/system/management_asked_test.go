package system

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/survey"
	"github.com/deadletteroffice/dlo/internal/testenv"
)

// askedAPI is a proxy for the management API. It records the time of each request.
type askedAPI struct {
	url string
	mu  sync.Mutex
	at  map[string][]time.Time // method and path with query -> times of the requests
}

func newAskedAPI(t *testing.T, node *testenv.Node) *askedAPI {
	t.Helper()
	to, err := url.Parse(node.ManagementURLOf(""))
	if err != nil {
		t.Fatal(err)
	}
	to.User = nil
	a := &askedAPI{at: map[string][]time.Time{}}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		asked := r.Method + " " + r.URL.RequestURI()
		a.at[asked] = append(a.at[asked], time.Now())
		a.mu.Unlock()
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	a.url = strings.Replace(server.URL, "http://", "http://guest:guest@", 1)
	return a
}

// requestCount returns how many GET requests were sent for paths that begin with the text "prefix".
func (a *askedAPI) requestCount(prefix string) (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for asked, at := range a.at {
		if strings.HasPrefix(asked, "GET "+prefix) {
			n += len(at)
		}
	}
	return n
}

// TestTheManagementAPIIsAskedEvery30Seconds counts the requests that dlo sends to the management
// API on its own, with the default configuration. Letters die and are retried at the same time.
// After its start, dlo may not send the same request twice within 30 s.
func TestTheManagementAPIIsAskedEvery30Seconds(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	node := testenv.Broker(t)
	vhost, address := node.VHost(t)
	a := adoptable(t, node, vhost, address)
	a.api(http.MethodPut, "queues", "safe", map[string]any{
		"durable":   true,
		"arguments": map[string]any{"x-dead-letter-exchange": "dlo.dlx"},
	})
	api := newAskedAPI(t, node)
	p := newChild(t, address, fmt.Sprintf("brokers: [{url: %q, management: %q}]\n", address, api.url))
	began := time.Now()
	p.Start("")
	p.Draining()
	own := "/api/queues/" + url.PathEscape(vhost) + "?page=1&page_size=500&disable_stats=true"
	eventually(
		t, "both looks that dlo takes at its start",
		func() bool { return api.requestCount("/api/overview") > 0 && api.requestCount(own) > 0 },
	)
	started := time.Now()
	eventually(t, "two more looks at the vhost, and one more at dlo's own queues", func() bool {
		a.reject("safe")
		return api.requestCount("/api/overview") > 2 && api.requestCount(own) > 1
	})
	if p.letters() == 0 {
		t.Error("no letter died")
	}
	api.mu.Lock()
	defer api.mu.Unlock()
	const depthEvery = 5 * time.Second
	depth := "GET /api/queues/" + url.PathEscape(vhost) + "/safe"
	if n, most := len(api.at[depth]), int(time.Since(began)/depthEvery)+1; n == 0 || n > most {
		t.Errorf("%d requests for the depth of a queue, want 1 to %d", n, most)
	}
	for asked, at := range api.at {
		if strings.Contains(asked, "policies/") { // the vhost, dlo's own queues, and the start
			if most := int(time.Since(began)/survey.Every) + int(time.Since(began)/time.Minute) + 4; len(at) > most {
				t.Errorf("%d times: %s", len(at), asked)
			}
			continue
		}
		t.Logf("%d times: %s", len(at), asked)
		if !strings.HasPrefix(asked, "GET ") {
			t.Errorf("dlo changes something: %s", asked)
		}
		for i, now := range at[1:] {
			if between := now.Sub(at[i]); asked != depth && now.After(started) && between < survey.Every {
				t.Errorf("%s was sent again after %s", asked, between)
			}
		}
	}
}
