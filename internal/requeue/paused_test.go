package requeue_test

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestPausedRetriesStay checks that a pause holds back the automatic retries of a queue or group
// until people resume them. Letters that people requeue must still be sent. Letters whose sending
// began before the pause must be finished.
func TestPausedRetriesStay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(
			t, &item{}, &item{queue: "email"}, &item{group: 5}, &item{}, &item{queue: "email", operation: 7},
			&item{queue: "email"},
		)
		d.letters[5].due = d.began.Add(time.Second)
		step := func(want string) {
			t.Helper()
			for n, c := -1, d.open(); n != 0; {
				var err error
				if n, err = c.dispatcher.Step(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if got := d.takeLog(); got != want {
				t.Errorf("\n got %s\nwant %s", got, want)
			}
		}
		d.pause("email", 0, true)
		d.pause("sms", 5, true)
		step("send 1, send 4, send 5, 1 confirmed, 4 confirmed, 5 confirmed")
		d.pause("sms", 5, false)
		step("send 3, 3 confirmed")
		time.Sleep(time.Second)
		d.pause("email", 0, false)
		d.leaveInDoubt()
		d.pause("email", 0, true)
		step("send 2 alone, send 6 alone, 2 confirmed, 6 confirmed")
	})
}
