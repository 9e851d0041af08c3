package system

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/requeue"
	"github.com/deadletteroffice/dlo/internal/rules"
	"github.com/deadletteroffice/dlo/internal/store"
	"github.com/deadletteroffice/dlo/internal/testenv"
)

// scheduled is a store that records, for each letter, the time between its due time and its claim.
type scheduled struct {
	*store.Store
	now  func() time.Time
	mu   sync.Mutex
	lags []time.Duration
}

func (s *scheduled) ClaimDue(
	ctx context.Context, broker string, now time.Time, n int, a deadletter.Allowance,
) ([]deadletter.Due, error) {
	due, err := s.Store.ClaimDue(ctx, broker, now, n, a)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range due {
		s.lags = append(s.lags, s.now().Sub(d.Letter.DueAt))
	}
	return due, err
}

// confirming is a broker that confirms every letter immediately. The measurement is about the
// schedule and not about the broker.
type confirming struct{}

func (confirming) Session() int64                                 { return 1 }
func (confirming) LockStore(context.Context, int64, string) error { return nil }
func (confirming) UnlockStore(int64)                              {}
func (confirming) ReadMark(context.Context, string, bool) (*deadletter.Progress, error) {
	return nil, nil
}
func (confirming) WriteMark(context.Context, int64, deadletter.Progress) error { return nil }

func (confirming) Ready(ctx context.Context) error { return ctx.Err() }
func (confirming) Publish(_ context.Context, _ int64, ps []deadletter.Publishing) []deadletter.Outcome {
	out := make([]deadletter.Outcome, len(ps))
	for i, p := range ps {
		out[i] = deadletter.Outcome{Token: p.Token, Kind: deadletter.OutcomeConfirmed}
	}
	return out
}

func (confirming) Takes(...deadletter.Wait) bool   { return false }
func (confirming) Status() deadletter.BrokerStatus { return deadletter.BrokerStatus{Connected: true} }

func (confirming) Facts(context.Context, string) deadletter.QueueFacts {
	return deadletter.UnknownQueue
}

// TestBenchSchedule measures goal P11 of docs/performance.md: how late letters are claimed while
// 1,000 letters become due per second. It also measures how long dlo takes to find that no letter
// is due.
func TestBenchSchedule(t *testing.T) {
	testenv.Bench(t)
	for _, rows := range []int{10_000, *benchRows} {
		b := &benchStore{path: filepath.Join(t.TempDir(), "dlo.db"), random: rand.New(rand.NewPCG(1, 2))}
		var err error
		if b.Store, err = store.Open(t.Context(), b.path, store.Options{}); err != nil {
			t.Fatal(err)
		}
		const perSecond, seconds = 1000, 30
		inTime := min(perSecond*seconds, rows/2)
		for b.letters < rows {
			b.receive(t, 500)
		}
		// after all letters are decided, the dispatcher's clock starts at this time
		begin := time.Now().Add(24 * time.Hour)
		b.wait(t, func(i int) time.Time {
			if i < inTime {
				return begin.Add(time.Duration(i) * time.Second / perSecond)
			}
			return begin.Add(time.Hour + time.Duration(i)*time.Millisecond)
		})
		allow := deadletter.Allowance{Allow: func(deadletter.Origin, string) (int, bool) { return 1000, false }}
		var none []time.Duration
		for range 200 {
			began := time.Now()
			if due, err := b.ClaimDue(t.Context(), "main", time.Now(), 64, allow); err != nil || len(due) > 0 {
				t.Fatal(len(due), err)
			}
			none = append(none, time.Since(began))
		}
		filled := time.Now()
		now := func() time.Time { return begin.Add(time.Since(filled)) }
		s := &scheduled{Store: b.Store, now: now}
		targets := &rules.Targets{}
		targets.Add("main", "/", []string{"*"}, nil)
		d := requeue.New(s, confirming{}, requeue.Options{
			Broker:   "main",
			VHost:    "/",
			InFlight: 128,
			Watch:    time.Hour,
			InDoubt:  requeue.Republish,
			MaxBody:  1 << 20,
			Targets:  targets,
			Now:      now,
			Log:      slog.New(slog.DiscardHandler),
			Breaker:  requeue.Breaker{CameBack: 90, Of: 50, Window: 10 * time.Minute, Probe: 3},
			Rules: rules.NewBook(&rules.Set{
				Default: rules.Rule{Name: "default", Retry: &rules.Retry{Delays: []time.Duration{time.Hour * 1000}}},
			}),
		})
		ctx, stop := context.WithTimeout(t.Context(), time.Duration(inTime)*time.Second/perSecond+2*time.Second)
		d.Run(ctx)
		stop()
		if len(s.lags) != inTime {
			t.Errorf("%d of %d letters left", len(s.lags), inTime)
		}
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		t.Logf("P11 %8d letters wait: none due: p50 %.2f p99 %.2f ms; %d due per second: lag p50 %.1f p99 %.1f ms, %s; heap %d MiB",
			rows, ms(percentile(none, 50)), ms(percentile(none, 99)), perSecond, ms(percentile(s.lags, 50)),
			ms(percentile(s.lags, 99)), against(ms(percentile(s.lags, 99)), "<= 15"), m.HeapInuse>>20)
		b.Close()
	}
}

// wait schedules all received letters, distributed over 40 queues and 3,000 groups. The function
// "due" returns the time at which the i-th letter becomes due.
func (b *benchStore) wait(t *testing.T, due func(i int) time.Time) {
	t.Helper()
	for i := 0; ; {
		letters, err := b.NextReceived(t.Context(), 500)
		if err != nil {
			t.Fatal(err)
		}
		if len(letters) == 0 {
			return
		}
		verdicts := make([]deadletter.Classified, len(letters))
		for k, l := range letters {
			group := b.random.IntN(3000)
			verdicts[k] = deadletter.Classified{
				Letter:       l.ID,
				To:           deadletter.ClassifiedRetry,
				Origin:       deadletter.Origin{Broker: "main", VHost: "/", Queue: fmt.Sprintf("queue-%d", group%40)},
				Reason:       "rejected",
				Rule:         "default",
				GroupKey:     sha256.Sum256(fmt.Append(nil, group)),
				GroupTitle:   fmt.Sprint(group),
				GroupVersion: 1,
				Severity:     deadletter.SeverityDigest,
				DueAt:        due(i),
			}
			i++
		}
		if err := b.Classify(t.Context(), verdicts); err != nil {
			t.Fatal(err)
		}
	}
}
