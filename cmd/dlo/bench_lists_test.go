package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/internal/store"
)

// listFilters are what TestBenchLists asks for; each is measured on the first page and on one from the middle.
var listFilters = []string{"", "state:dead", "state:scheduled", "state:held", "queue:queue-7", "queue:queue-7,queue-8 state:dead", "type:acme.v1.Type3", "type:acme.v1.Type1 reason:expired", "reason:maxlen", "group:G-17", "group:G-17 state:dead"}

// TestBenchLists measures P6: any list filter at many rows against 10,000, while letters come in.
func TestBenchLists(t *testing.T) {
	if os.Getenv("DLO_BENCH") != "1" {
		t.Skip("a measurement, not a test: make bench")
	}
	small, large := map[string][]time.Duration{}, map[string][]time.Duration{}
	began := time.Now()
	measureLists(t, 10_000, small)
	measureLists(t, *benchRows, large)
	t.Logf("%d rows against 10,000, 50 a page, while letters come in; p50 and p99 in ms (%s in all)", *benchRows, time.Since(began).Round(time.Second))
	for _, f := range listFilters {
		s50, s99, l50, l99 := percentile(small[f], 50), percentile(small[f], 99), percentile(large[f], 50), percentile(large[f], 99)
		t.Logf("P6 %-36q %6.2f %6.2f -> %6.2f %6.2f   ratio p50 %.1f, p99 %.1f, goal <= 3", f, ms(s50), ms(s99), ms(l50), ms(l99), ms(l50)/ms(s50), ms(l99)/ms(s99))
	}
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func percentile(ds []time.Duration, p int) time.Duration {
	slices.Sort(ds)
	return ds[min(len(ds)-1, len(ds)*p/100)]
}

// measureLists fills a store of its own and lists it while one writer goes on receiving.
func measureLists(t *testing.T, rows int, into map[string][]time.Duration) {
	t.Helper()
	s, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "dlo.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	random := rand.New(rand.NewPCG(1, 2))
	for number := int64(1); number <= int64(rows/500); number++ {
		benchReceive(t, s, number)
		if number%4 == 0 {
			benchClassify(t, s, random)
		}
	}
	benchClassify(t, s, random)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for number := int64(rows); ; number++ {
			select {
			case <-stop:
				return
			default:
				benchReceive(t, s, number)
				time.Sleep(20 * time.Millisecond) // 25,000 letters a second at most
			}
		}
	}()
	defer func() { close(stop); <-stopped }()
	for _, f := range listFilters {
		q, err := query.Parse(f)
		if err != nil {
			t.Fatal(err)
		}
		middle := ""
		for i := range 300 {
			p := deadletter.Page{Limit: 50}
			if i%2 == 1 {
				p.After = middle
			}
			began := time.Now()
			list, _, older, err := s.Letters(t.Context(), q, p)
			into[f] = append(into[f], time.Since(began))
			if err != nil {
				t.Fatal(err)
			}
			if i%2 == 0 || i < 20 { // wander into the list
				middle = older
			}
			if len(list) == 0 && i == 0 {
				t.Fatalf("%q matches nothing", f)
			}
		}
	}
}

func benchReceive(t *testing.T, s *store.Store, number int64) {
	w := deadletter.Window{Session: 1, Number: number, Broker: "main", VHost: "/", Inbox: "dlo.letters", Uncertain: deadletter.UncertainHold, Horizon: time.Minute, HorizonRows: 1000}
	for i := range 500 {
		a := deadletter.Arrival{Tag: uint64(i + 1), Body: make([]byte, 300), Properties: deadletter.Properties{MessageID: fmt.Sprintf("%d-%d", number, i)}}
		w.Arrivals = append(w.Arrivals, a)
	}
	r, err := s.Receive(context.Background(), w)
	if err == nil {
		err = s.Settle(context.Background(), r.Window)
	}
	if err != nil {
		t.Error(err)
	}
}

// benchClassify spreads letters over 40 queues, 10 types, 3 reasons and 3,000 groups; some states, reasons and groups are rare.
func benchClassify(t *testing.T, s *store.Store, random *rand.Rand) {
	t.Helper()
	for {
		letters, err := s.ClaimReceived(t.Context(), 500)
		if err != nil {
			t.Fatal(err)
		}
		if len(letters) == 0 {
			return
		}
		verdicts := make([]deadletter.Classified, len(letters))
		for i, l := range letters {
			group := random.IntN(3000)
			if random.IntN(2) == 0 {
				group = 17 // half of all letters fail for one cause
			}
			reason := "rejected"
			switch {
			case group%50 == 1:
				reason = "expired"
			case group == 2999:
				reason = "maxlen"
			}
			to := deadletter.ClassifiedDead
			switch n := random.IntN(1000); {
			case n == 0:
				to = deadletter.ClassifiedHold
			case n < 50:
				to = deadletter.ClassifiedRetry
			}
			verdicts[i] = deadletter.Classified{
				Letter: l.ID, To: to, Origin: deadletter.Origin{Broker: "main", VHost: "/", Queue: fmt.Sprintf("queue-%d", group%40)}, Reason: reason, Type: fmt.Sprintf("acme.v1.Type%d", group%10),
				Summary: "url: \"https://example.com\"", Error: "endpoint answered 410", GroupKey: sha256.Sum256(fmt.Append(nil, group)), GroupTitle: fmt.Sprint(group), GroupVersion: 1, Severity: deadletter.SeverityDigest, DueAt: time.Now().Add(time.Hour),
			}
		}
		if err := s.Classify(t.Context(), verdicts); err != nil {
			t.Fatal(err)
		}
	}
}
