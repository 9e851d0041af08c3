package operation_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/operation"
)

// TestDeadLettersThatAreAboutToAgeOut checks the warning about dead letters that will be purged
// soon. It must last until people decide about the letters, and must be logged only once.
func TestDeadLettersThatAreAboutToAgeOut(t *testing.T) {
	t.Parallel()
	o := open(t)
	var log bytes.Buffer
	const day = 24 * time.Hour
	k := operation.NewKeeper(
		o.store, operation.Retention{Dead: 10 * day}, func() time.Time { return o.at },
		slog.New(slog.NewTextHandler(&log, nil)),
	)
	after := func(d time.Duration, want string, logged int) {
		t.Helper()
		o.at = o.at.Add(d)
		o.must(k.Step(t.Context()))
		if got := k.Warning(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		if got := strings.Count(log.String(), "about to age out"); got != logged {
			t.Errorf("logged %d times, want %d: %s", got, logged, log.String())
		}
	}
	const text = " dead letters will be purged within 120h0m0s, as retention.dead is 240h0m0s. Decide on them, hold them, or raise retention.dead."
	o.arrive("sms", 2)
	after(4*day, "", 0)
	o.arrive("sms", 1)
	after(2*day, "2"+text, 1)
	after(3*day+12*time.Hour, "3"+text, 1)
	after(5*day, "", 1) // the letters are purged
	o.arrive("sms", 1)
	after(6*day, "1"+text, 2)
}
