package classify_test

import (
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// TestAnImportedLetterStaysWhatItWas checks that rules and guards do not decide on a letter again
// if another dlo has already decided on it. The letter must also keep the origin that the other dlo
// recorded.
func TestAnImportedLetterStaysWhatItWas(t *testing.T) {
	t.Parallel()
	imported := func(was deadletter.State, queue string, headers deadletter.Table) deadletter.Letter {
		l := deadLetter(queue, "rejected", headers)
		l.Imported = was
		return l
	}
	elsewhere := imported(deadletter.StateDead, "sms", deadletter.Table{"x-error-message": "the first error"})
	elsewhere.SetOrigin(deadletter.Origin{
		Broker: "main", VHost: "/", Queue: "email-2", Exchange: "e", RoutingKey: "rk",
	})
	elsewhere.Reason, elsewhere.DiedAt, elsewhere.Error = "expired", now.Add(-time.Minute), "card 1234567890123456"
	nowhere := imported(deadletter.StateHeld, "", nil)
	unnamed := imported(deadletter.StateDead, "", nil)
	unnamed.Queue, unnamed.Reason = "sms", "maxlen"
	away := imported(deadletter.StateDiscarded, "not-allowed", nil)
	unread := imported(deadletter.StateDiscarded, "sms", nil)
	unread.Crashes = deadletter.MaxCrashes
	got := verdicts(t, options(), imported(deadletter.StateDead, "sms", nil), elsewhere, nowhere, unnamed, away, unread)
	for i, want := range []struct {
		to            deadletter.Trigger
		queue, reason string
	}{
		{deadletter.ClassifiedDead, "sms", "rejected"},
		{deadletter.ClassifiedDead, "email-2", "expired"},
		{deadletter.ClassifiedHold, "", ""},
		{deadletter.ClassifiedDead, "sms", "maxlen"},
		{deadletter.ClassifiedDiscard, "not-allowed", "rejected"},
		{deadletter.ClassifiedDiscard, "sms", "rejected"},
	} {
		if v := got[i]; !v.Imported || v.To != want.to || v.Origin.Queue != want.queue || v.Reason != want.reason ||
			!v.DueAt.IsZero() {
			t.Errorf("letter %d: %+v", i, v)
		}
	}
	if v := got[1]; v.Origin.RoutingKey != "rk" || !v.DiedAt.Equal(now.Add(-time.Minute)) ||
		v.Error == elsewhere.Error || v.Error == "" {
		t.Errorf("%+v", v)
	}
}
