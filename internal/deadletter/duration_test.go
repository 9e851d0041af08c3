package deadletter_test

import (
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

func TestDurations(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"250ms": 250 * time.Millisecond, "1h30m": 90 * time.Minute, "30d": 720 * time.Hour, "0d": 0, "0": 0,
	} {
		if got, err := deadletter.ParseDuration(text); err != nil || got != want {
			t.Errorf("%s: %s, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "d", "-1d", "1.5d", "5", "1w", "9999999999d", "1d12h", "1e9s\x00"} {
		if got, err := deadletter.ParseDuration(text); err == nil {
			t.Errorf("%q: %s", text, got)
		}
	}
}
