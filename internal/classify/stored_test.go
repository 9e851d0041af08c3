package classify_test

import (
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/classify"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// TestFactsAreWhatTheClassifierSees compares the facts of a stored letter with its verdict. If
// people ask why a rule decided, they must see the same facts as the classifier.
func TestFactsAreWhatTheClassifierSees(t *testing.T) {
	t.Parallel()
	o := options()
	c := classify.New(&fake{}, o)
	received := deadLetter("sms", "rejected", deadletter.Table{
		"x-error-message": "card 4111111111111111 refused", "x-error-class": "secret",
	})
	received.Attempts, received.Reset, received.ReceivedAt = 3, 2, now.Add(-time.Hour)
	v := verdicts(t, o, received)[0]

	stored := received
	stored.SetOrigin(v.Origin)
	stored.State, stored.Reason = deadletter.StateDead, v.Reason
	stored.Error = "a text from before the masks: 4111111111111111"
	for name, l := range map[string]deadletter.Letter{"received": received, "stored": stored} {
		f := c.Facts(&l)
		if f.Queue != "sms" || f.Exchange != "events" || f.Key != "k" || f.Broker != "main" || f.VHost != "/" ||
			f.Reason != v.Reason || f.Type != v.Type || f.Error != v.Error || f.Attempts != 3 || f.Reset != 2 ||
			f.Age != time.Hour {
			t.Errorf("%s: %+v, verdict %+v", name, f, v)
		}
		if d := o.Rules.Set().Decide(f); d.Why != v.Why || d.Rule != v.Rule || now.Add(d.Delay) != v.DueAt {
			t.Errorf("%s: %+v, verdict %+v", name, d, v)
		}
	}

	poison := stored
	poison.Crashes = deadletter.MaxCrashes
	f := classify.New(&fake{}, o).Facts(&poison)
	if f.Queue != "sms" || f.Type != "" || f.Error != v.Error {
		t.Errorf("%+v", f)
	}
	if values, ok := f.Field("user"); ok {
		t.Errorf("what cannot be read has a field: %q", values)
	}

	imported := stored
	imported.Imported, imported.Reason, imported.Error = deadletter.StateDead, "expired", "refused: 4111111111111111"
	if f := c.Facts(&imported); f.Reason != "expired" || f.Error != "refused: ••••" {
		t.Errorf("%+v", f)
	}
}
