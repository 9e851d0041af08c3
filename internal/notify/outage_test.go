package notify

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// wall is a clock that tests set.
type wall struct {
	mu sync.Mutex
	at time.Time
}

func newWall() *wall { return &wall{at: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)} }

func (w *wall) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.at
}

func (w *wall) advance(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at = w.at.Add(d)
}

// drive runs the steps of the worker of a channel, with real connections. To wait between two
// steps, drive only moves the clock. It returns when no delivery is open, or when the clock reaches
// the given time.
func drive(t *testing.T, b *bench, clock *wall, name string, until time.Time) {
	t.Helper()
	w := newWorker(b.Notifier, name)
	for range 10_000 {
		s, c, ok := w.current(t.Context())
		if open, _, _ := b.box.count(name); !ok || open == 0 || !clock.now().Before(until) {
			return
		}
		clock.advance(w.step(t.Context(), s, c))
	}
	t.Fatal("it does not come to an end")
}

// moody is a receiver that changes its behaviour: it first refuses connections, then does not
// answer, then answers with 503, then with 429, and after an hour with 200.
type moody struct {
	clock *wall
	began time.Time
	hung  chan struct{}

	mu    sync.Mutex
	taken []received
	seen  map[string]int // behaviour -> how often it occurred
}

func newMoody(t *testing.T, clock *wall) (*moody, *httptest.Server) {
	m := &moody{clock: clock, began: clock.now(), hung: make(chan struct{}), seen: map[string]int{}}
	s := httptest.NewServer(m)
	t.Cleanup(func() { close(m.hung); s.Close() })
	return m, s
}

func (m *moody) mood() string {
	switch gone := m.clock.now().Sub(m.began); {
	case gone < 20*time.Minute:
		return "refuses"
	case gone < 24*time.Minute: // these would wait for real minutes
		return "hangs"
	case gone < 40*time.Minute:
		return "503"
	case gone < time.Hour:
		return "429"
	}
	return "takes"
}

func (m *moody) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, _ := io.ReadAll(q.Body)
	mood := m.mood()
	m.mu.Lock()
	m.seen[mood]++
	if mood == "takes" {
		m.taken = append(m.taken, received{q.URL.Path, q.Header, body})
	}
	m.mu.Unlock()
	switch mood {
	case "refuses":
		panic(http.ErrAbortHandler)
	case "hangs":
		<-m.hung
	case "503":
		respondWith(503, canary)(w)
	case "429":
		respondWith(429, canary, "Retry-After", "120")(w)
	}
}

// downKinds contains the kinds of channels whose receivers are down for an hour in the test. Mail
// has its own test.
var downKinds = []string{"slack", "pagerduty", "alertmanager", "webhook"}

// TestEveryChannelMeetsAnOutageAndHostileTexts checks that no kind of channel lacks two tests: the
// test in which the receiver is down for an hour, and a test that sends hostile texts.
func TestEveryChannelMeetsAnOutageAndHostileTexts(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range files {
		code, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(code), ") Channel() Channel {") || strings.HasSuffix(file, "_test.go") {
			continue
		}
		found++
		name := strings.TrimSuffix(file, ".go")
		if name != "mail" && !slices.Contains(downKinds, name) {
			t.Errorf("%s is not in the list down", name)
		}
		if tests, _ := os.ReadFile(name + "_test.go"); !strings.Contains(string(tests), "range hostileMessages()") {
			t.Errorf("no test in %s_test.go sends hostileMessages", name)
		}
	}
	if found != len(downKinds)+1 {
		t.Errorf("%d channels were found, and downKinds has %v beside mail", found, downKinds)
	}
}

func TestAReceiverThatIsDownForAnHourLosesNothing(t *testing.T) {
	t.Parallel()
	for _, name := range downKinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock := newWall()
			m, server := newMoody(t, clock)
			c := channelTo(t, name, server.URL+"/"+canary)
			b := newBench(clock.now, Quiet{}, map[string]Channel{"c": c})
			keys := strings.Fields("a b c d e f")
			b.box.add("c", opened, loud, keys...)
			b.box.add("c", resolved, loud, keys...)
			drive(t, b, clock, "c", clock.now().Add(30*time.Minute))
			if p := b.Problems(); len(p) != 1 || p[0].Since != m.began {
				t.Errorf("problems %v", p)
			} else {
				noSecret(t, p[0].Text)
			}
			drive(t, b, clock, "c", clock.now().Add(24*time.Hour))
			if open, sent, failed := b.box.count("c"); sent != 12 {
				t.Fatalf("%d open, %d sent, %d failed; it saw %v", open, sent, failed, m.seen)
			}
			for _, mood := range []string{"refuses", "hangs", "503", "429", "takes"} {
				if m.seen[mood] == 0 {
					t.Errorf("it never was asked while it %s: %v", mood, m.seen)
				}
			}
			if !c.Together && len(m.taken) != 12 {
				t.Errorf("it took %d", len(m.taken))
			}
			if name == "pagerduty" {
				last := map[string]string{}
				for _, q := range m.taken {
					e := decoded(t, string(q.body)).(map[string]any)
					key := e["dedup_key"].(string)
					last[key] += e["event_action"].(string) + " "
				}
				for key, got := range last {
					if got != "trigger resolve " {
						t.Errorf("%s: %s", key, got)
					}
				}
			}
			if late := clock.now().Sub(m.began.Add(time.Hour)); late > maxBackoff+time.Minute {
				t.Errorf("the last one came %s after it was back", late)
			}
			if len(b.Problems()) != 0 {
				t.Errorf("problems %v", b.Problems())
			}
			noSecret(t, b.log.String())
			for id := range 12 {
				noSecret(t, b.box.row(id+1).Detail)
			}
		})
	}
}

// channelTo returns a channel of the given kind with a short timeout. Every option that can contain
// a secret contains one.
func channelTo(t *testing.T, kind, url string) Channel {
	t.Helper()
	const soon = 500 * time.Millisecond
	switch kind {
	case "slack":
		s, err := NewSlack(SlackOptions{URL: url, AllowPrivate: true})
		if err != nil {
			t.Fatal(err)
		}
		s.client.http.Timeout = soon
		return s.Channel()
	case "pagerduty":
		s, err := NewPagerDuty(PagerDutyOptions{Key: canary, URL: url, AllowPrivate: true})
		if err != nil {
			t.Fatal(err)
		}
		s.client.http.Timeout = soon
		return s.Channel()
	case "alertmanager":
		s, err := NewAlertmanager(AlertmanagerOptions{URL: url, AllowPrivate: true})
		if err != nil {
			t.Fatal(err)
		}
		s.client.http.Timeout = soon
		return s.Channel()
	case "webhook":
		s, err := NewWebhook(WebhookOptions{URL: url, Secret: hookSecret, AllowPrivate: true})
		if err != nil {
			t.Fatal(err)
		}
		s.client.http.Timeout = soon
		return s.Channel()
	}
	t.Fatalf("there is no channel %s", kind)
	return Channel{}
}

func TestMailThatIsPutOffForAnHourIsNotLost(t *testing.T) {
	t.Parallel()
	clock := newWall()
	s := newMailServer(t, &mailServer{answers: map[string]string{"RCPT": "450 greylisted " + canary}})
	b := newBench(clock.now, Quiet{}, map[string]Channel{
		"mail": mailTo(t, s, "127.0.0.1", MailOptions{AllowPrivate: true}).Channel(),
	})
	b.box.add("mail", opened, loud, "a", "b", "c", "d", "e")
	b.box.add("mail", resolved, loud, "a")
	drive(t, b, clock, "mail", clock.now().Add(time.Hour))
	if p := b.Problems(); len(p) != 1 ||
		p[0].Text != "the mail server does not accept the message for 1 of 1 receivers for now" {
		t.Errorf("problems %v", p)
	}
	s.mu.Lock()
	clear(s.answers)
	s.mu.Unlock()
	drive(t, b, clock, "mail", clock.now().Add(24*time.Hour))
	if open, sent, failed := b.box.count("mail"); sent != 6 {
		t.Errorf("%d open, %d sent, %d failed", open, sent, failed)
	}
	noSecret(t, b.log.String())
}

// TestAReceiverThatNeverAnswersDelaysNoOther checks a receiver that accepts connections but never
// answers. Only the goroutine that sends to this receiver may wait for it.
func TestAReceiverThatNeverAnswersDelaysNoOther(t *testing.T) {
	t.Parallel()
	clock := newWall()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var conns sync.WaitGroup
	asked := make(chan struct{}, 100)
	conns.Go(func() {
		for {
			c, err := silent.Accept()
			if err != nil {
				return
			}
			asked <- struct{}{}
			conns.Go(func() { _, _ = io.Copy(io.Discard, c); c.Close() })
		}
	})
	t.Cleanup(func() { silent.Close(); conns.Wait() })
	told := make(chan struct{}, 100)
	healthy := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { told <- struct{}{} }))
	t.Cleanup(healthy.Close)

	hanging, err := NewWebhook(WebhookOptions{
		URL: "http://" + silent.Addr().String(), Secret: hookSecret, AllowPrivate: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	hanging.client.http.Timeout = time.Second // meanwhile, the other channel gets everything that is due
	b := newBench(clock.now, Quiet{}, map[string]Channel{
		"silent": hanging.Channel(), "healthy": channelTo(t, "pagerduty", healthy.URL),
	})
	b.box.add("silent", opened, loud, "a", "b")
	stop := b.start(t)
	<-asked
	for i := range 5 {
		b.box.add("healthy", opened, loud, fmt.Sprint(i))
	}
	b.Wake()
	for range 5 {
		<-told
	}
	if open, _, _ := b.box.count("silent"); open != 2 {
		t.Errorf("%d are open", open)
	}
	stop()
	if open, sent, failed := b.box.count("silent"); open != 2 {
		t.Errorf("%d open, %d sent, %d failed", open, sent, failed)
	}
	if d := cmp.Diff(map[string]float64{"sent": 5}, b.outcomes(t, "healthy")); d != "" {
		t.Error(d)
	}
}
