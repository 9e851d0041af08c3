package system

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/payload/payloadtest"
	"github.com/deadletteroffice/dlo/internal/store"
	"github.com/deadletteroffice/dlo/internal/testenv"
)

const (
	pagedLetters = 55_000
	pagedQueues  = 38
)

// causes are the error texts of the letters. They give 18 groups for each queue.
var causes = []string{
	"timeout", "refused", "missing template", "bad address", "no such user", "over quota", "expired token",
	"locked row", "full disk",
	"closed socket", "unknown currency", "empty basket", "wrong tenant", "stale version", "broken image", "short read",
	"bad checksum", "no route",
}

// TestBenchPages measures how long pages take with 55,000 letters in 38 queues and 684 groups. It
// measures the responses of the server, and then whole pages in a browser that is 390 px wide. No
// page may be wider than the browser.
func TestBenchPages(t *testing.T) {
	testenv.Bench(t)
	_, broker := testenv.PrivateBroker(t).VHost(t)
	p := newChild(t, broker, "default: {retry: {delays: []}}\nsearch: {fields: [id]}\n")
	fillPages(t, p.store)
	p.Start("")
	p.Draining()
	eventually(t, "all letters indexed", func() bool { return p.count("unindexed", "") == 0 })
	group := fmt.Sprintf("/groups/G-%s", p.texts(`SELECT max(id) FROM groups`)[0])
	letter := "/letters/" + string(p.ids(`SELECT id, random FROM letters ORDER BY id DESC LIMIT 1`)[0])
	tab := testenv.Browser(t)
	tab.Viewport(390, 844)
	for _, page := range []string{
		"/", "/triage", "/triage?tab=digest", "/letters", "/letters?q=queue:queue-07+state:dead", "/letters?q=timeout",
		"/letters?q=sort:size", letter, group, "/queues", "/schemas", "/rules", "/operations", "/audit",
	} {
		var took []time.Duration
		var size int
		for range 20 {
			began := time.Now()
			code, text := p.get(page)
			if code != http.StatusOK {
				t.Fatal(page, code)
			}
			took, size = append(took, time.Since(began)), len(text)
		}
		tab.Open(p.url + page)
		complete := testenv.Run(
			tab, chromedp.Evaluate[float64](`performance.getEntriesByType('navigation')[0].domComplete`),
		)
		wide := testenv.Run(tab, chromedp.Evaluate[int](`document.documentElement.scrollWidth`))
		t.Logf(
			"%-60s p50 %4.0f, p95 %4.0f ms, %4d kB; in a browser of 390 px %4.0f ms, %d px wide", page,
			ms(percentile(took, 50)), ms(percentile(took, 95)), size/1000, complete, wide,
		)
		if wide > 390 {
			t.Errorf("%s is %d px wide", page, wide)
		}
	}
}

// fillPages creates a store with the letters of the measurement. All of them are dead.
func fillPages(t *testing.T, path string) {
	t.Helper()
	s, err := store.Open(t.Context(), path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b := &backlog{Store: s, path: path, letters: pagedLetters, d: benchDecoder(t)}
	random := rand.New(rand.NewPCG(16, 16))
	receiveInto(t, s, pagedLetters, func(n int) deadletter.Arrival {
		p := deadletter.Properties{
			ContentType: "application/x-protobuf", DeliveryMode: 2, MessageID: fmt.Sprint(n), Timestamp: time.Now(),
			Headers: rejectedFrom(fmt.Sprintf("queue-%02d", n%pagedQueues)),
		}
		p.Headers["x-error-message"] = causes[n/pagedQueues%len(causes)] + fmt.Sprintf(" of request %d", n)
		return deadletter.Arrival{Body: payloadtest.Order(random, n, 1+n%8), Properties: p}
	})
	b.classify(t)
	b.index(t, true, nil)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
