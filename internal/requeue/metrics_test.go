package requeue_test

import (
	"testing"
	"testing/synctest"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/requeue"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
)

// TestAttemptsAreCounted checks that attempts are counted by outcome. An attempt that was never
// sent must not count.
func TestAttemptsAreCounted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, letters(5)...)
		d.letters[4].body = make([]byte, 1001)
		d.options.InFlight = 10
		registry := prometheus.NewPedanticRegistry()
		d.options.Metrics = requeue.NewMetrics(registry)
		kinds := []deadletter.OutcomeKind{
			deadletter.OutcomeConfirmed, deadletter.OutcomeConfirmed, deadletter.OutcomeInDoubt,
			deadletter.OutcomeUnsent,
		}
		d.wire.answer = func(*deadletter.Publishing) answer {
			kind := kinds[0]
			kinds = kinds[1:]
			return answer{kind: kind}
		}
		if _, err := d.open().dispatcher.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]float64{}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				got[m.GetLabel()[0].GetValue()+" "+m.GetLabel()[1].GetValue()] += m.GetCounter().GetValue()
			}
		}
		if diff := cmp.Diff(map[string]float64{
			"confirmed sms": 2, "unknown sms": 1, "refused sms": 1,
		}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}
