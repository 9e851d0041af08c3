package deadletter_test

import (
	"testing"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

func TestAbout(t *testing.T) {
	t.Parallel()
	for want, got := range map[string]string{
		"v1.2.3 (2026-11-30, 48b0b2e2)": deadletter.About("v1.2.3", "48b0b2e2", "2026-11-30"),
		"v1.2.3":                        deadletter.About("v1.2.3", "", ""),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
