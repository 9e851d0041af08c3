package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// BenchmarkSend claims batches of 64 letters and marks them as confirmed, as the dispatcher does.
func BenchmarkSend(b *testing.B) {
	s, c := open(b)
	for n := range int64(40) {
		w := window(b, n+1, "sms", 500)
		for i := range w.Arrivals {
			w.Arrivals[i].Body = fmt.Appendf(nil, "%500d", i)
		}
		receive(b, s, w)
	}
	classify(b, s, deadletter.ClassifiedRetry, c.now())
	letters := 0
	var claiming, marking time.Duration
	for b.Loop() {
		began := time.Now()
		due, err := s.ClaimDue(b.Context(), "main", c.now(), 64, deadletter.Allowance{
			Allow: func(deadletter.Origin, string) (int, bool) { return 64, false },
		})
		if err != nil || len(due) == 0 {
			b.Fatal(len(due), err)
		}
		claiming += time.Since(began)
		began = time.Now()
		mark(b, s, c, deadletter.OutcomeConfirmed, due...)
		marking += time.Since(began)
		letters += len(due)
	}
	b.ReportMetric(float64(claiming.Microseconds())/float64(letters), "us/claim")
	b.ReportMetric(float64(marking.Microseconds())/float64(letters), "us/mark")
}
