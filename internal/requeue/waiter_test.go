package requeue

import (
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/rules"
)

// TestAnExpirationDoesNotEndAWait checks an expiration that a person has set in a revision. It must
// not end the wait of the letter in the broker.
func TestAnExpirationDoesNotEndAWait(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	d := &Dispatcher{o: Options{Now: func() time.Time { return now }}}
	for waiter, want := range map[rules.Waiter]string{
		rules.WaiterQueue: "", rules.WaiterTTL: "3600000", rules.WaiterDelayed: "",
	} {
		p := deadletter.Publishing{
			Queue:      "sms",
			Properties: deadletter.Properties{Expiration: "5000", Headers: deadletter.Table{}},
		}
		d.divert(&p, &deadletter.Due{
			Letter: deadletter.Letter{Row: deadletter.Row{DueAt: now.Add(time.Hour)}},
			Waiter: string(waiter),
			Wait:   time.Hour,
		})
		if p.Wait == nil || p.Properties.Expiration != want {
			t.Errorf("%s: %+v", waiter, p)
		}
	}
}

// TestEveryWaiterHasAPlace checks that every waiter except the store has a place in the broker. The
// dispatcher asks the broker about the places of all waiters that the rules name.
func TestEveryWaiterHasAPlace(t *testing.T) {
	t.Parallel()
	for _, name := range rules.Waiters {
		if w := waiters[name]; name.Broker() && (w == nil || w.place(time.Minute).Waiter != string(name)) {
			t.Errorf("%s has no row of waiters, or its place is of another", name)
		}
	}
}
