package classify_test

import (
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/classify"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/rules"
	"github.com/prometheus/client_golang/prometheus"
)

// TestALetterOfATrial covers letters that dlo itself makes for a trial, to show people the path of
// a letter. The rule for trials must decide on such a letter. The letter must go back to its queue,
// and must not count as a death. Other letters that died in that queue are normal letters, and must
// be held.
func TestALetterOfATrial(t *testing.T) {
	t.Parallel()
	var told []deadletter.ID
	registry := prometheus.NewRegistry()
	o := options()
	o.Metrics = classify.NewMetrics(registry)
	o.Made = func(l *deadletter.Letter) bool { return l.Arrived.Headers["dlo-try"] == "mark" }
	o.Tried = func(l *deadletter.Letter) { told = append(told, l.ID) }
	made := deadLetter(deadletter.TrialQueue, "rejected", deadletter.Table{"dlo-try": "mark"})
	again := made
	again.ID, again.Attempts = deadletter.NewID(2, 2), 1
	forged := deadLetter(deadletter.TrialQueue, "rejected", deadletter.Table{"dlo-try": "other"})
	elsewhere := deadLetter("sms", "rejected", deadletter.Table{"dlo-try": "mark"})
	imported := made
	imported.Imported = deadletter.StateDead
	got := verdicts(t, o, made, again, forged, elsewhere, imported)
	if v := got[0]; !v.Tried || v.Rule != deadletter.TrialRule || v.To != deadletter.ClassifiedRetry ||
		!v.DueAt.Equal(now.Add(time.Second)) || !v.ToldBy.IsZero() || v.Origin.Queue != deadletter.TrialQueue ||
		len(v.Channels) > 0 {
		t.Errorf("%+v", v)
	}
	if v := got[1]; !v.Tried || v.To != deadletter.ClassifiedDead {
		t.Errorf("rejected again: %+v", v)
	}
	if v := got[2]; v.Tried || v.Rule != rules.DefaultName || v.To != deadletter.ClassifiedHold {
		t.Errorf("forged: %+v", v)
	}
	if v := got[3]; v.Tried || v.Rule != rules.DefaultName || v.To != deadletter.ClassifiedRetry {
		t.Errorf("of another queue: %+v", v)
	}
	if v := got[4]; v.Tried || v.To != deadletter.ClassifiedDead {
		t.Errorf("imported: %+v", v)
	}
	if len(told) != 2 || told[0] != made.ID {
		t.Errorf("told of %v", told)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		// only the letters "forged" and "elsewhere" count
		if n := len(family.GetMetric()); family.GetName() == "dlo_received_total" && n != 2 {
			t.Errorf("%d queues with deaths", n)
		}
	}

	waiting := waitingLetter(func(l *deadletter.Waiting) {
		l.Rule, l.Queue = deadletter.TrialRule, deadletter.TrialQueue
	})
	decided, err := classify.New(&fake{}, o).DecideAgain(t.Context(), []deadletter.Waiting{waiting})
	if err != nil || decided[0].Left != "dlo made it for a trial" {
		t.Errorf("decided again: %+v, %v", decided, err)
	}
}
