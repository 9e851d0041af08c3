package notify

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// asideBox is an outbox of the tests. While its field "broken" is not nil, it cannot be written.
type asideBox struct {
	outbox
	open map[string]deadletter.Notice
}

func (b *asideBox) Tell(_ context.Context, n deadletter.Notice) error {
	if b.broken != nil {
		return b.broken
	}
	if b.open[n.Key] = n; n.Kind == deadletter.NoticeOver {
		delete(b.open, n.Key)
	}
	return nil
}

func (b *asideBox) OpenProblems(context.Context) (map[string]deadletter.Notice, error) {
	return maps.Clone(b.open), b.unread
}

// TestAProblemIsToldPastAStoreThatTakesNothing checks how dlo notifies people of a problem while
// the store accepts no writes. On each channel, the beginning of the problem must be reported once,
// and its end must be reported once. Some notices in the store may have been sent in the meantime.
// They must be recorded later, and not be sent twice.
func TestAProblemIsToldPastAStoreThatTakesNothing(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	at := time.Date(2026, 11, 23, 8, 0, 0, 0, time.UTC)
	clock := func() time.Time { return at }
	box := &asideBox{outbox: outbox{now: clock}, open: map[string]deadletter.Notice{}}
	box.add("oncall", deadletter.NoticeBreaker, deadletter.SeverityPage, "test")
	a := &Aside{Box: box, Clock: clock}
	due := func(channel string, want ...string) []deadletter.Delivery {
		t.Helper()
		list, err := a.Due(ctx, channel, 5)
		if err != nil && len(want) > 0 {
			t.Fatal(err)
		}
		var got []string
		for _, d := range list {
			got = append(got, string(d.Notice.Kind)+" "+d.Notice.Key)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%s is told %q, want %q", channel, got, want)
		}
		return list
	}
	done := func(d deadletter.Delivered) {
		t.Helper()
		if err := a.Delivered(ctx, []deadletter.Delivered{d}); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Tell(ctx, deadletter.Notice{Kind: deadletter.NoticeProblem, Key: "before"}); err != nil {
		t.Fatal(err)
	}
	if open, err := a.OpenProblems(ctx); err != nil || len(open) != 1 {
		t.Fatal(open, err)
	}
	test := due("oncall", "breaker test")
	box.broken, box.unread = errors.New("read-only"), errors.New("damaged")
	done(deadletter.Delivered{ID: test[0].ID, Sent: true}) // the notice was sent, but the store cannot record this
	due("oncall")
	disk := deadletter.Notice{
		Kind:     deadletter.NoticeProblem,
		Key:      "disk",
		Severity: deadletter.SeverityPage,
		Channels: []string{"oncall", "team"},
	}
	if err := a.Tell(ctx, disk); err != nil {
		t.Fatal(err)
	}
	if open, err := a.OpenProblems(ctx); err != nil || len(open) != 2 {
		t.Fatal(open, err)
	}
	first := due("oncall", "problem disk")[0]
	done(deadletter.Delivered{ID: first.ID, RetryAt: at.Add(time.Minute), Detail: "503"})
	due("oncall")
	at = at.Add(time.Minute)
	if again := due("oncall", "problem disk")[0]; again.Tries != 1 {
		t.Errorf("%d tries", again.Tries)
	}
	done(deadletter.Delivered{ID: first.ID, Sent: true})
	due("oncall")

	if err := a.Tell(ctx, deadletter.Notice{Kind: deadletter.NoticeOver, Key: "before"}); err == nil {
		t.Error("the end of what the store told was told elsewhere")
	}
	box.broken, box.unread = nil, nil
	disk.Kind = deadletter.NoticeOver
	if err := a.Tell(ctx, disk); err != nil {
		t.Fatal(err)
	}
	last := due("oncall", "over disk")[0]
	done(deadletter.Delivered{ID: last.ID, Sent: true})
	due("oncall") // the test message was sent only once
	if box.recorded == 0 || box.rows[0].open() {
		t.Error("what was sent meanwhile was not recorded")
	}
	team := due("team", "problem disk")[0] // the notice of the problem comes before the notice of its end
	done(deadletter.Delivered{ID: team.ID, Sent: true})
	due("team", "over disk")
	if open, err := a.OpenProblems(ctx); err != nil || len(open) != 1 {
		t.Error(open, err)
	}
}
