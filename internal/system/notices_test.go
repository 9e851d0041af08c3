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
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/deadletteroffice/dlo/internal/testenv"
	amqp "github.com/rabbitmq/amqp091-go"
)

// receiver is what a channel leads to: it keeps what it is told.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	told   []heard
	status int // of its answers; 0 = 204
}

type heard struct {
	id   string // webhook-id: one notice, however often it is sent
	Type string `json:"type"`
	Data struct {
		Key      string `json:"key"`
		Severity string `json:"severity"`
		Title    string `json:"title"`
		Text     string `json:"text"`
		URL      string `json:"url"`
		Lines    []struct {
			Title string `json:"title"`
			Text  string `json:"text"`
			URL   string `json:"url"`
		} `json:"lines"`
	} `json:"data"`
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

// answer makes the receiver answer with a status; 0 = it takes what comes.
func (r *receiver) answer(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status = status
}

// rings waits until a problem was told whose title says this.
func (r *receiver) rings(t *testing.T, says string) {
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

// notices are the different notices that were told of a type, by their titles.
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

func (r *receiver) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.told)
}

// telling is a configuration whose letters are dead at once and page the receiver.
func (r *receiver) telling(t *testing.T, severity string) string {
	t.Helper()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz"), 0o600); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("default: {retry: {delays: []}, dead: {severity: %s, notify: [hook]}}\nrequeue: {watch: 2s}\nchannels: {hook: {webhook: {url: %q, secret_file: %s}, allow_private: true}}\n", severity, r.URL, secret)
}

// TestEachCauseIsToldOnceAcrossKills kills dlo between the commit that causes notices and their
// sending, and between the sending and its record: each cause is told under one id, whatever is
// sent twice, and one message is sent twice at most for each kill.
func TestEachCauseIsToldOnceAcrossKills(t *testing.T) {
	t.Parallel()
	testenv.Broker(t)
	const causes, each = 5, 20
	_, amqpURL := testenv.VHost(t)
	r := newReceiver(t)
	p := newChild(t, amqpURL, r.telling(t, "page"))
	p.Start("")
	p.Draining()
	p.Kill9()
	for cause := range causes {
		a := newAudit(t, amqpURL, "orders", nil)
		a.header = amqp.Table{"x-error-message": fmt.Sprintf("cause %s failed for order 17", strings.Repeat("x", cause+1))}
		a.work()
		a.publish(each, func(i int) (string, string) {
			return fmt.Sprintf(`{"number": %d, "cause": %d}`, i, cause), fmt.Sprintf("%d-%d", cause, i)
		})
	}
	kills := []string{"classify: recorded=1", "notify: sent=1", "notify: sent=2", "classify: decided=1"}
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
	eventually(t, "every cause is told", func() bool {
		return len(r.notices("notice.opened")) >= groups && p.count("deliveries", `state = 'due'`) == 0
	})
	if n := p.letters("dead"); n != causes*each+1 {
		t.Errorf("%d letters are dead", n)
	}
	found := r.notices("notice.opened")
	titles := slices.Sorted(maps.Values(found))
	if len(found) != groups || len(slices.Compact(titles)) != groups {
		t.Errorf("%d notices of %d groups: %v", len(found), groups, titles)
	}
	if sent := r.count(); sent > groups+len(kills) {
		t.Errorf("%d messages for %d notices and %d kills", sent, groups, len(kills))
	}
}

// TestAReceiverThatIsDownLosesNothing keeps notices while their receiver refuses them, goes on with
// everything else meanwhile, says so on every page, and tells them when it is back. What a person
// settles is told as well, in order.
func TestAReceiverThatIsDownLosesNothing(t *testing.T) {
	t.Parallel()
	testenv.Broker(t)
	_, amqpURL := testenv.VHost(t)
	r := newReceiver(t)
	r.answer(http.StatusServiceUnavailable)
	p := newChild(t, amqpURL, r.telling(t, "notify"))
	p.Start("")
	p.Draining()
	a := newAudit(t, amqpURL, "orders", nil)
	a.header = amqp.Table{"x-error-message": "the template is gone"}
	a.work()
	a.publish(3, func(i int) (string, string) { return fmt.Sprint(i), fmt.Sprint(i) })
	eventually(t, "the failure is said on the page", func() bool {
		_, page := p.get("/triage")
		return strings.Contains(page, "Notices do not get through to hook.")
	})
	code, body := p.post("/api/v1/groups/decisions", map[string]any{"groups": []string{"G-1"}, "resolve": map[string]any{}})
	if code != 200 {
		t.Fatal(code, body)
	}
	if r.count() != 0 {
		t.Error("it was told something")
	}
	_, metrics := p.get("/metrics")
	if !strings.Contains(metrics, `dlo_notifications_total{channel="hook",outcome="retried"}`) {
		t.Error("the metrics do not say it")
	}
	r.answer(0)
	eventually(t, "all is told", func() bool { return r.count() == 2 })
	r.mu.Lock()
	if r.told[0].Type != "notice.opened" || r.told[1].Type != "notice.resolved" || r.told[0].Data.Key != r.told[1].Data.Key || r.told[0].Data.URL != p.url+"/groups/G-1" {
		t.Errorf("%+v", r.told)
	}
	r.mu.Unlock()
	eventually(t, "the page says no more", func() bool {
		_, page := p.get("/triage")
		return !strings.Contains(page, "Notices do not get through")
	})
}
