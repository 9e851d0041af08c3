package notify_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/notify"
)

// outbox is a double of the store. It records the notices, and which problems are open.
type outbox struct {
	told []string
	open map[string]deadletter.Notice
}

func (o *outbox) Tell(_ context.Context, n deadletter.Notice) error {
	o.told = append(
		o.told, fmt.Sprintf("%s %s to %s", n.Kind, strings.SplitN(n.Text, "\n", 2)[0], strings.Join(n.Channels, ",")),
	)
	if n.Kind == deadletter.NoticeProblem {
		o.open[n.Key] = n
	} else {
		delete(o.open, n.Key)
	}
	return nil
}

func (o *outbox) OpenProblems(context.Context) (map[string]deadletter.Notice, error) {
	return o.open, nil
}

// TestAProblemIsToldWhileItLasts checks that people are notified once when a problem has lasted for
// a while. They must be notified once more when it has been over for a while. A restart in between
// must make no difference.
func TestAProblemIsToldWhileItLasts(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 23, 8, 0, 0, 0, time.UTC)
	var now []deadletter.Problem
	unknown := map[string]bool{}
	box := &outbox{open: map[string]deadletter.Notice{}}
	begin := func() *notify.Problems {
		return &notify.Problems{
			Store: box, Now: func() []deadletter.Problem { return now },
			Channels: func() []string { return []string{"oncall"} },
			Unknown:  func() map[string]bool { return unknown },
			Log:      slog.New(slog.DiscardHandler), Clock: func() time.Time { return at },
		}
	}
	p := begin()
	step := func(after time.Duration, want ...string) {
		t.Helper()
		at = at.Add(after)
		if err := p.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(box.told, want) {
			t.Errorf("after %s: %q, want %q", after, box.told, want)
		}
		box.told = nil
	}
	away := deadletter.Problem{
		Kind: deadletter.ProblemBrokerAway, Severity: deadletter.SeverityPage, Title: "Broker main is not connected.",
		Text: "refused", Broker: "main",
	}
	loses := deadletter.Problem{
		Kind: deadletter.ProblemInboxLoses, Severity: deadletter.SeverityPage, Title: "It loses letters.",
		Broker: "main", Queue: "dlo.letters",
	}
	now = []deadletter.Problem{away}
	step(0)
	step(19 * time.Second)
	now = nil
	step(time.Second) // the problem did not last long enough
	now = []deadletter.Problem{away, loses, loses}
	step(time.Second)
	step(20*time.Second, "problem Broker main is not connected. to oncall", "problem It loses letters. to oncall")
	step(time.Hour)
	p = begin()
	step(time.Minute)
	now = []deadletter.Problem{loses}
	unknown[away.Key()] = true
	step(time.Hour)
	step(time.Hour)
	delete(unknown, away.Key())
	step(time.Second)
	step(59 * time.Second)
	step(time.Second, "over It is over: Broker main is not connected. to oncall")
	step(time.Hour)
	now = []deadletter.Problem{away, loses}
	step(time.Second)
	step(time.Minute, "problem Broker main is not connected. to oncall")
}
