package system

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/deadletteroffice/dlo/internal/testenv"
	amqp "github.com/rabbitmq/amqp091-go"
)

// receiver is an HTTP server that receives the notices of a channel and keeps them.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	told   []heard
	status int // status of its responses; 0 = 204
}

type heard struct {
	id   string // the header webhook-id, which is the same each time that a notice is sent
	Type string `json:"type"`
	Data struct {
		Key      string `json:"key"`
		Event    string `json:"event"`
		Severity string `json:"severity"`
		Title    string `json:"title"`
		Text     string `json:"text"`
		URL      string `json:"url"`
		Count    int    `json:"count"`
		Facts    map[string]string
		Lines    []struct {
			Title string `json:"title"`
			Text  string `json:"text"`
			URL   string `json:"url"`
			Group string `json:"group"`
		} `json:"lines"`
		Operation struct {
			State string
			Asked int
			Done  int
		}
	} `json:"data"`
}

// groups returns the names of the groups in a notice.
func (h *heard) groups() (names []string) {
	for _, l := range h.Data.Lines {
		names = append(names, l.Group)
	}
	if len(names) == 0 && h.Data.Facts["group"] != "" {
		names = append(names, h.Data.Facts["group"])
	}
	return names
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, q *http.Request) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.status != 0 {
			rw.WriteHeader(r.status)
			return
		}
		one := heard{id: q.Header.Get("webhook-id")}
		body, err := io.ReadAll(q.Body)
		if err == nil {
			err = json.Unmarshal(body, &one)
		}
		if err != nil {
			t.Error(err)
		}
		r.told = append(r.told, one)
		rw.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(r.Close)
	return r
}

// setStatus sets the status of the responses. With 0, the receiver accepts everything.
func (r *receiver) setStatus(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status = status
}

// waitForNotice waits until a notice about a problem has arrived. The title of the notice must
// contain the text "says".
func (r *receiver) waitForNotice(t *testing.T, says string) {
	t.Helper()
	eventually(t, "the pager rings", func() bool {
		for _, title := range r.notices("notice.problem") {
			if strings.Contains(title, says) {
				return true
			}
		}
		return false
	})
}

// notices returns the titles of all notices of a type, by webhook-id.
func (r *receiver) notices(typ string) map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	found := map[string]string{}
	for _, n := range r.told {
		if n.Type == typ {
			found[n.id] = n.Data.Title
		}
	}
	return found
}

// count returns how many notices for people arrived. It also counts a notice that was sent again.
func (r *receiver) count() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.told {
		if strings.HasPrefix(one.Type, "notice.") {
			n++
		}
	}
	return n
}

// keys returns, for each group, the incidents in which it was reported.
func (r *receiver) keys() map[string]map[string]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	found := map[string]map[string]bool{}
	for _, n := range r.told {
		if !strings.HasPrefix(n.Type, "notice.") {
			continue
		}
		for _, group := range n.groups() {
			if found[group] == nil {
				found[group] = map[string]bool{}
			}
			found[group][n.Data.Key] = true
		}
	}
	return found
}

// configFor returns a configuration of dlo. Letters die immediately, and the receiver gets a notice
// with the given severity.
func (r *receiver) configFor(t *testing.T, severity string) string {
	t.Helper()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz"), 0o600); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(
		"default: {retry: {delays: []}, dead: {severity: %s, notify: [hook]}}\nrequeue: {watch: 2s}\nchannels: {hook: {webhook: {url: %q, secret_file: %s}, allow_private: true}}\n",
		severity, r.URL, secret,
	)
}

// TestEachCauseIsToldOnceAcrossKills kills dlo after the commit that causes notices and before it
// sends them. It also kills dlo after it has sent a notice and before it has recorded this. Each
// cause must be reported in one incident, and each incident must be opened once. Each kill may
// cause at most one notice to be sent twice.
func TestEachCauseIsToldOnceAcrossKills(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	testenv.Broker(t)
	const causes, each = 5, 20
	_, amqpURL := testenv.VHost(t)
	r := newReceiver(t)
	p := newChild(t, amqpURL, r.configFor(t, "page"))
	p.Start("")
	p.Draining()
	p.Kill9()
	for cause := range causes {
		a := newAudit(t, amqpURL, "orders", nil)
		a.header = amqp.Table{
			"x-error-message": fmt.Sprintf("cause %s failed for order 17", strings.Repeat("x", cause+1)),
		}
		a.work()
		a.publish(each, func(i int) (string, string) {
			return fmt.Sprintf(`{"number": %d, "cause": %d}`, i, cause), fmt.Sprintf("%d-%d", cause, i)
		})
	}
	kills := []string{"classify: recorded=1", "notify: sent=1", "notify: sent=1", "classify: decided=1"}
	for _, point := range kills {
		p.Start(point)
		if strings.HasPrefix(point, "classify: decided") && p.letters("received") == 0 {
			a := newAudit(t, amqpURL, "late", nil)
			a.header = amqp.Table{"x-error-message": "a late cause"}
			a.work()
			a.publish(1, func(int) (string, string) { return "late", "late" })
		}
		p.Crashed("the crash at " + point)
	}
	p.Start("")
	const groups = causes + 1
	eventually(
		t, "every cause is told",
		func() bool { return len(r.keys()) >= groups && p.count("deliveries", `state = 'due'`) == 0 },
	)
	if n := p.letters("dead"); n != causes*each+1 {
		t.Errorf("%d letters are dead", n)
	}
	incidents := map[string]bool{}
	for group, keys := range r.keys() {
		if len(keys) != 1 {
			t.Errorf("%s was told of in %v", group, keys)
		}
		maps.Copy(incidents, keys)
	}
	opened := r.notices("notice.opened")
	if len(opened) != len(incidents) || len(r.keys()) != groups {
		t.Errorf("%d were opened of %d incidents of %d groups: %v", len(opened), len(incidents), len(r.keys()), opened)
	}
	if sent := r.count(); sent > groups+len(kills) {
		t.Errorf("%d messages for %d groups and %d kills", sent, groups, len(kills))
	}
}
