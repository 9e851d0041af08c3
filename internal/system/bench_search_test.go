package system

import (
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/testenv"
)

const (
	searchers   = 12 // number of clients that search
	searched    = 6_600
	searchesFor = 30 * time.Second
)

// TestBenchSearches measures how long pages take while clients search without a pause. No index
// helps the searches. Before searches had their own slots, the other pages took 0.34 s (p50) and
// 1.5 s (p95).
func TestBenchSearches(t *testing.T) {
	testenv.Bench(t)
	node := testenv.PrivateBroker(t)
	_, broker := node.VHost(t)
	a := newAudit(t, broker, "orders", nil)
	p := newChild(t, broker, "default: {retry: {delays: []}}\n")
	p.Start("")
	p.Draining()
	a.burst(searched)
	eventually(t, "all letters dead", func() bool { return p.letters("dead") == searched })
	eventually(t, "all letters indexed", func() bool { return p.count("unindexed", "") == 0 })
	id := p.ids(`SELECT id, random FROM letters LIMIT 1`)[0]
	pages := []string{"/", "/triage", "/letters/" + string(id), "/queues", "/rules"}
	alone := p.paged(t, pages, nil)
	stop := make(chan struct{})
	var searching sync.WaitGroup
	var mu sync.Mutex
	answers := map[int]int{}
	for client := range searchers {
		searching.Go(func() {
			queries := []string{
				"*", "error:*nowhere*", "header.x-tenant:*9", "tem* state:dead", "error:*v3*", "-error:*welcome*",
			}
			for i := client; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				code, _ := p.get("/letters?q=" + url.QueryEscape(queries[i%len(queries)]))
				mu.Lock()
				answers[code]++
				mu.Unlock()
			}
		})
	}
	busy := p.paged(t, pages, time.After(searchesFor))
	close(stop)
	searching.Wait()
	t.Logf("pages alone p50 %.0f, p95 %.0f ms; beside %d clients that search %d letters p50 %.0f, p95 %.0f ms, goal p95 <= 500; answers to searches by status %v",
		ms(percentile(alone, 50)), ms(percentile(alone, 95)), searchers, searched, ms(percentile(busy, 50)),
		ms(percentile(busy, 95)), answers)
}

// paged requests pages in turn until the channel "stop" is closed. If "stop" is nil, it requests
// each page ten times. It returns the time that each response took.
func (p *child) paged(t *testing.T, pages []string, stop <-chan time.Time) (took []time.Duration) {
	t.Helper()
	for i := 0; ; i++ {
		select {
		case <-stop:
			return took
		default:
		}
		if stop == nil && i == 10*len(pages) {
			return took
		}
		began := time.Now()
		if code, _ := p.get(pages[i%len(pages)]); code != 200 {
			t.Fatal(pages[i%len(pages)], code)
		}
		took = append(took, time.Since(began))
	}
}
