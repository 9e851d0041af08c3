package trial

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// shelf is a store with one letter. The test changes the state of this letter.
type shelf struct {
	mu       sync.Mutex
	letter   deadletter.Letter
	attempts []deadletter.Attempt
	fail     error
	acts     []deadletter.Act
	full     error // error that Record returns
}

func (s *shelf) Record(_ context.Context, a deadletter.Act) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.acts = append(s.acts, a)
	return s.full
}

func (s *shelf) TrialMark(id string) string { return "mark of " + id }

func (s *shelf) Letter(context.Context, deadletter.ID) (deadletter.Letter, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.letter, s.fail
}

func (s *shelf) Attempts(context.Context, deadletter.ID) ([]deadletter.Attempt, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.attempts, nil
}

func (s *shelf) move(change func(s *shelf)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

// stage takes the place of the broker in a test. The test decides what the stage does with the
// trial message.
type stage struct {
	sent  chan deadletter.TrialMessage
	hear  func(accepted bool)
	fail  chan error
	ended atomic.Bool // the function Try has returned
}

// play runs trials in a synctest bubble. The function "script" acts as the broker: from the channel
// b.sent, it gets the trial message that dlo sends.
func play(t *testing.T, unable, unready string, script func(trials *Trials, s *shelf, b *stage)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s, b := &shelf{}, &stage{sent: make(chan deadletter.TrialMessage, 1), fail: make(chan error, 1)}
		trials := New(s, []Broker{{
			Name: "main", VHost: "/", Unable: unable, Unready: func() string { return unready },
			Try: func(ctx context.Context, m deadletter.TrialMessage, heard func(bool)) error {
				defer b.ended.Store(true)
				b.hear = heard
				b.ended.Store(false)
				b.sent <- m
				select {
				case err := <-b.fail:
					return err
				case <-ctx.Done():
					return nil
				}
			},
		}}, time.Now, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan error)
		go func() { over <- trials.Run(ctx) }()
		script(trials, s, b)
		cancel()
		<-over
	})
}

// letterOf returns the letter that a message becomes when it arrives.
func letterOf(m deadletter.TrialMessage) deadletter.Letter {
	return deadletter.Letter{
		Row: deadletter.Row{
			ID:         deadletter.NewID(7, 7),
			State:      deadletter.StateScheduled,
			Summary:    "hello",
			ReceivedAt: time.Now(),
		},
		Rule:    deadletter.TrialRule,
		Arrived: m.Properties,
	}
}

// TestATrialGoesTheWholeWay checks that the time of each step is recorded, and that only one trial
// runs at a time.
func TestATrialGoesTheWholeWay(t *testing.T) {
	t.Parallel()
	play(t, "", "", func(trials *Trials, s *shelf, b *stage) {
		if trials.Newest() != nil {
			t.Error("a trial before the first")
		}
		if _, err := trials.Start(t.Context(), deadletter.Local, ""); err != nil {
			t.Fatal(err)
		}
		m := <-b.sent
		if _, err := trials.Start(t.Context(), deadletter.Local, "main"); !errors.Is(err, deadletter.ErrConflict) {
			t.Errorf("a second one: %v", err)
		}
		l := letterOf(m)
		if !trials.Made(&l) {
			t.Error("its letter is not known")
		}
		for what, change := range map[string]func(l *deadletter.Letter){
			"without a mark": func(l *deadletter.Letter) { l.Arrived.Headers = nil },
			"with another mark": func(
				l *deadletter.Letter,
			) {
				l.Arrived.Headers = deadletter.Table{deadletter.HeaderTrial: "x"}
			},
			"with a mark that is none": func(l *deadletter.Letter) {
				l.Arrived.Headers = deadletter.Table{
					deadletter.HeaderTrial: int32(1),
				}
			},
			"under another id": func(l *deadletter.Letter) { l.Arrived.MessageID = "other" },
			"without an id":    func(l *deadletter.Letter) { l.Arrived.MessageID = "" },
		} {
			forged := l
			change(&forged)
			if trials.Made(&forged) {
				t.Errorf("%s it passes", what)
			}
		}
		time.Sleep(time.Second)
		b.hear(false)
		time.Sleep(time.Second)
		s.move(func(s *shelf) { s.letter = letterOf(m) })
		stranger := letterOf(m)
		stranger.Arrived.MessageID = "an earlier one"
		trials.Arrived(&stranger)
		if trials.Newest().Letter != "" {
			t.Error("a letter of an earlier trial is taken for that of this one")
		}
		l = letterOf(m)
		trials.Arrived(&l)
		time.Sleep(time.Second)
		s.move(func(s *shelf) {
			s.attempts = []deadletter.Attempt{{Outcome: deadletter.OutcomeConfirmed, ClosedAt: time.Now()}}
		})
		b.hear(true)
		time.Sleep(time.Second)
		if trials.Newest().State != deadletter.TrialRunning {
			t.Error("it is over before its letter settled")
		}
		s.move(func(s *shelf) { s.letter.State, s.letter.ChangedAt = deadletter.StateQuiet, time.Now() })
		time.Sleep(time.Second)
		c := trials.Newest()
		for what, want := range map[string][2]time.Duration{
			"rejected": {c.RejectedAt.Sub(c.StartedAt), time.Second},
			"arrived":  {c.ArrivedAt.Sub(c.StartedAt), 2 * time.Second},
			"decoded":  {c.DecodedAt.Sub(c.StartedAt), 2 * time.Second},
			"requeued": {c.RequeuedAt.Sub(c.StartedAt), 3 * time.Second},
			"accepted": {c.AcceptedAt.Sub(c.StartedAt), 3 * time.Second},
			"settled":  {c.QuietAt.Sub(c.StartedAt), 4 * time.Second},
		} {
			if want[0] != want[1] {
				t.Errorf("%s after %s, want %s", what, want[0], want[1])
			}
		}
		var acts []deadletter.Act
		s.move(func(s *shelf) { acts = s.acts })
		if len(acts) != 1 || acts[0].Kind != deadletter.ActTrialStarted || acts[0].Actor != "local" ||
			acts[0].Targets[0].Name != "main" || !strings.Contains(
			acts[0].Detail, "queue dlo.try",
		) {
			t.Errorf("the audit has %+v", acts)
		}
		if c.State != deadletter.TrialDone || c.Summary != "hello" || c.Letter != l.ID || c.By != "local" ||
			!b.ended.Load() {
			t.Errorf("%+v, ended %v", c, b.ended.Load())
		}
		if _, err := trials.Start(t.Context(), deadletter.Local, "main"); err != nil {
			t.Errorf("once more: %v", err)
		}
		<-b.sent
		s.move(func(s *shelf) { s.full = errors.New("disk full") })
		b.fail <- errors.New("EOF")
		time.Sleep(time.Second)
		if _, err := trials.Start(t.Context(), deadletter.Local, "main"); err == nil || err.Error() != "disk full" {
			t.Errorf("what the audit cannot have is begun: %v", err)
		}
		time.Sleep(time.Second)
		if c := trials.Newest(); c.State != deadletter.TrialFailed || len(b.sent) > 0 {
			t.Errorf("%+v", c)
		}
	})
}

// TestATrialHearsOfItsOwnMessage checks that a trial ignores the message of an earlier trial. The
// consumer of the earlier trial may still be handling that message.
func TestATrialHearsOfItsOwnMessage(t *testing.T) {
	t.Parallel()
	play(t, "", "", func(trials *Trials, _ *shelf, b *stage) {
		begin := func() {
			t.Helper()
			if _, err := trials.Start(t.Context(), deadletter.Local, "main"); err != nil {
				t.Fatal(err)
			}
			<-b.sent
		}
		begin()
		earlier := b.hear
		b.fail <- errors.New("EOF")
		time.Sleep(time.Second)
		begin()
		earlier(false)
		earlier(true)
		if c := trials.Newest(); !c.RejectedAt.IsZero() || !c.AcceptedAt.IsZero() {
			t.Errorf("%+v", c)
		}
	})
}

// TestATrialThatDoesNotGoTheWholeWay checks that a failed trial says why it failed, and what to do
// about it.
func TestATrialThatDoesNotGoTheWholeWay(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		script func(trials *Trials, s *shelf, b *stage, m deadletter.TrialMessage)
		want   string
		cure   string
	}{
		{"a right is missing", func(_ *Trials, _ *shelf, b *stage, _ deadletter.TrialMessage) {
			b.fail <- &deadletter.TrialRefused{Why: "user dlo may not\x1b", Cure: "rabbitmqctl"}
		}, `user dlo may not\x1b`, "rabbitmqctl"},
		{
			"the connection ends",
			func(_ *Trials, _ *shelf, b *stage, _ deadletter.TrialMessage) { b.fail <- errors.New("EOF") }, "EOF", "",
		},
		{
			"nothing is delivered", func(*Trials, *shelf, *stage, deadletter.TrialMessage) {},
			"was not delivered to its consumer in time", "",
		},
		{
			"nothing arrives", func(_ *Trials, _ *shelf, b *stage, _ deadletter.TrialMessage) { b.hear(false) },
			"did not arrive here in time", "",
		},
		{"nothing is sent back", func(trials *Trials, s *shelf, b *stage, m deadletter.TrialMessage) {
			b.hear(false)
			s.move(func(s *shelf) { s.letter = letterOf(m) })
			trials.Arrived(&s.letter)
		}, "was not sent back in time", ""},
		{"nobody sees what became of it", func(trials *Trials, s *shelf, b *stage, m deadletter.TrialMessage) {
			b.hear(false)
			s.move(func(s *shelf) {
				s.letter, s.attempts = letterOf(m), []deadletter.Attempt{
					{Outcome: deadletter.OutcomeConfirmed, ClosedAt: time.Now()},
				}
			})
			trials.Arrived(&s.letter)
		}, "dlo could not see in time", ""},
		{"it is held", func(trials *Trials, s *shelf, b *stage, m deadletter.TrialMessage) {
			b.hear(false)
			s.move(func(s *shelf) {
				s.letter = letterOf(m)
				s.letter.State, s.letter.Why = deadletter.StateHeld, "no target"
			})
			trials.Arrived(&s.letter)
		}, "its letter is held: no target", ""},
		{"the store does not answer", func(trials *Trials, s *shelf, b *stage, m deadletter.TrialMessage) {
			s.move(func(s *shelf) { s.fail = errors.New("busy") })
			l := letterOf(m)
			trials.Arrived(&l)
		}, "busy", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			play(t, "", "", func(trials *Trials, s *shelf, b *stage) {
				if _, err := trials.Start(t.Context(), deadletter.Local, "main"); err != nil {
					t.Fatal(err)
				}
				c.script(trials, s, b, <-b.sent)
				time.Sleep(limit + time.Second)
				if got := trials.Newest(); got.State != deadletter.TrialFailed ||
					!strings.Contains(got.Problem, c.want) || got.Cure != c.cure || !b.ended.Load() {
					t.Errorf("%+v, ended %v", got, b.ended.Load())
				}
			})
		})
	}
}

// TestWhereNoTrialCanBe checks that nothing is started if a trial is impossible. The error must say
// why.
func TestWhereNoTrialCanBe(t *testing.T) {
	t.Parallel()
	stranger := deadletter.Principal{Name: "eve"}
	for _, c := range []struct {
		unable, unready string
		by              deadletter.Principal
		broker          string
		kind            error
		want            string
	}{
		{"no exchange", "", deadletter.Local, "main", deadletter.ErrConflict, "no exchange"},
		{"", "not connected", deadletter.Local, "main", deadletter.ErrConflict, "not connected"},
		{"", "", stranger, "main", deadletter.ErrForbidden, `eve may not send a trial letter`},
		{"", "", deadletter.Local, "other", deadletter.ErrNotFound, "there is no broker"},
	} {
		play(t, c.unable, c.unready, func(trials *Trials, _ *shelf, _ *stage) {
			if _, err := trials.Start(
				t.Context(), c.by, c.broker,
			); !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
			if trials.Newest() != nil {
				t.Error("a trial was begun")
			}
			if c.unable != "" && trials.Unable("main") != c.unable {
				t.Error(trials.Unable("main"))
			}
		})
	}
}

// TestAStopEndsATrial checks that a trial ends when dlo is stopped. dlo must wait until the trial
// queue is deleted.
func TestAStopEndsATrial(t *testing.T) {
	t.Parallel()
	var ended *stage
	play(t, "", "", func(trials *Trials, _ *shelf, b *stage) {
		if _, err := trials.Start(t.Context(), deadletter.Local, "main"); err != nil {
			t.Fatal(err)
		}
		<-b.sent
		ended = b
	})
	if !ended.ended.Load() {
		t.Error("it goes on")
	}
}
