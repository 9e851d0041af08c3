package notify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/google/go-cmp/cmp"
)

const (
	opened   = deadletter.NoticeOpened
	resolved = deadletter.NoticeResolved
	loud     = deadletter.SeverityPage
	soft     = deadletter.SeverityNotify
)

// keysOf returns the event and the key of each message, in the order of the messages.
func keysOf(ms []Message) (out []string) {
	for _, m := range ms {
		out = append(out, string(m.Event)+" "+m.Key[len("dlo-01234567-"):])
	}
	return out
}

func TestEachNoticeIsToldOnceAndAKeyInItsOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		pager := &scribe{answers: func(n int, _ Message) error {
			if n == 0 {
				return errDown // the first notice with key a is delayed, and the second must not overtake it
			}
			return nil
		}}
		b := newBench(time.Now, Quiet{}, map[string]Channel{"oncall": {Sender: pager}})
		b.box.add("oncall", opened, loud, "a")
		b.box.add("oncall", resolved, loud, "a")
		b.box.add("oncall", opened, loud, "b")
		stop := b.start(t)
		time.Sleep(time.Minute)
		stop()
		told, _ := pager.sentMessages()
		if d := cmp.Diff([]string{"fires a", "fires a", "fires b", "resolves a"}, keysOf(told)); d != "" {
			t.Error(d)
		}
		if told[0].ID != told[1].ID || told[1].ID == told[3].ID {
			t.Error("a further try is the same message, the next notice is not")
		}
		if d := cmp.Diff(map[string]float64{"sent": 3, "retried": 1}, b.outcomes(t, "oncall")); d != "" {
			t.Error(d)
		}
		if len(b.Problems()) != 0 {
			t.Errorf("problems that are over: %v", b.Problems())
		}
	})
}

func TestAFailureIsTriedAgainEverMoreSeldomAndAtLastGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		pager := &scribe{answers: func(int, Message) error { return errDown }}
		b := newBench(time.Now, Quiet{}, map[string]Channel{"oncall": {Sender: pager}})
		b.box.add("oncall", opened, loud, "a")
		began := time.Now()
		stop := b.start(t)
		time.Sleep(time.Hour)
		if p := b.Problems(); len(p) != 1 || p[0] != (Problem{"oncall", "the connection was refused", began}) {
			t.Errorf("problems %v", p)
		}
		time.Sleep(4 * 24 * time.Hour)
		stop()
		_, at := pager.sentMessages()
		for i, want := range []time.Duration{5, 10, 20, 40, 80, 160, 320, 640, 720, 720} {
			want *= time.Second
			if gap := at[i+1].Sub(at[i]); gap < want || gap > want*5/4+idle {
				t.Errorf("after try %d it waits %s, want %s", i+1, gap, want)
			}
		}
		if last := at[len(at)-1].Sub(began); last < patience || last > patience+maxBackoff {
			t.Errorf("the last try was after %s", last)
		}
		r := b.box.row(1)
		if !r.Failed || r.Detail != fmt.Sprintf("given up after %d tries: the connection was refused", len(at)) {
			t.Errorf("got %+v", r.Delivered)
		}
	})
}

func TestAnOldNoticeGetsItsTriesToo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		pager := &scribe{answers: func(int, Message) error { return errDown }}
		b := newBench(time.Now, Quiet{}, map[string]Channel{"oncall": {Sender: pager}})
		b.box.add("oncall", opened, loud, "a")
		time.Sleep(10 * 24 * time.Hour) // dlo is down for this time
		stop := b.start(t)
		time.Sleep(24 * time.Hour)
		stop()
		if told, _ := pager.sentMessages(); len(told) != fewest {
			t.Errorf("%d tries", len(told))
		}
	})
}

func TestARefusalForGoodEndsOneNoticeOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		pager := &scribe{answers: func(n int, _ Message) error {
			if n == 0 {
				return permanentError("the receiver answered 400 Bad Request")
			}
			return nil
		}}
		b := newBench(time.Now, Quiet{}, map[string]Channel{"oncall": {Sender: pager}})
		b.box.add("oncall", opened, loud, "a")
		stop := b.start(t)
		synctest.Wait()
		if p := b.Problems(); len(p) != 1 || p[0].Text != "the receiver answered 400 Bad Request" {
			t.Errorf("problems %v", p)
		}
		b.box.add("oncall", opened, loud, "b")
		b.Wake()
		synctest.Wait()
		stop()
		if r := b.box.row(1); !r.Failed || r.Detail != "the receiver answered 400 Bad Request" {
			t.Errorf("got %+v", r.Delivered)
		}
		if r := b.box.row(2); !r.Sent {
			t.Errorf("got %+v", r.Delivered)
		}
		if d := cmp.Diff(
			map[string]float64{"sent": 1, "failed": 1}, b.outcomes(t, "oncall"),
		); d != "" || len(b.Problems()) != 0 {
			t.Errorf("%s, problems %v", d, b.Problems())
		}
	})
}

func TestAReceiverThatSaysWhenIsLeftAloneUntilThen(t *testing.T) {
	t.Parallel()
	for said, want := range map[time.Duration]time.Duration{
		7 * time.Minute: 7 * time.Minute, 24 * time.Hour: time.Hour,
	} {
		synctest.Test(t, func(t *testing.T) {
			chat := &scribe{answers: func(n int, _ Message) error {
				if n == 0 {
					return &LaterError{After: said, Err: errors.New("the receiver answered 429 Too Many Requests")}
				}
				return nil
			}}
			b := newBench(time.Now, Quiet{}, map[string]Channel{"team": {Sender: chat}})
			b.box.add("team", opened, loud, "a", "b")
			stop := b.start(t)
			for range 100 {
				time.Sleep(time.Minute)
				b.Wake() // the wait stays the same
			}
			stop()
			_, at := chat.sentMessages()
			if len(at) != 3 || at[1].Sub(at[0]) != want {
				t.Errorf("told at %v, want the second after %s", at, want)
			}
		})
	}
}

func TestOneChannelThatIsDownHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		healthy, panics := &scribe{}, &scribe{
			answers: func(int, Message) error { panic("https://example.com/" + canary) },
		}
		hangs := sendFunc(func(ctx context.Context, _ Message) error { <-ctx.Done(); return errors.New("no answer in time") })
		b := newBench(time.Now, Quiet{}, map[string]Channel{
			"healthy": {Sender: healthy},
			"panics":  {Sender: panics},
			"hangs":   {Sender: hangs},
		})
		for _, c := range []string{"healthy", "panics", "hangs"} {
			b.box.add(c, opened, loud, "a", "b", "c")
		}
		began := time.Now()
		stop := b.start(t)
		synctest.Wait()
		if _, sent, _ := b.box.count("healthy"); sent != 3 || !time.Now().Equal(began) {
			t.Errorf("%d were sent", sent)
		}
		time.Sleep(time.Hour)
		stop()
		for _, c := range []string{"panics", "hangs"} {
			if open, sent, failed := b.box.count(c); open != 3 {
				t.Errorf("%s: %d open, %d sent, %d failed", c, open, sent, failed)
			}
		}
		if p := b.Problems(); len(p) != 2 || p[0].Channel != "hangs" ||
			p[1].Text != "a fault in dlo kept the message from being sent; see the log" {
			t.Errorf("problems %v", p)
		}
		noSecret(t, b.log.String())
		if !strings.Contains(b.log.String(), "a channel panicked") {
			t.Error("the log does not say so")
		}
	})
}

type sendFunc func(context.Context, Message) error

func (f sendFunc) Send(ctx context.Context, m Message) (string, error) { return "200 OK", f(ctx, m) }

// TestAChannelIsTested sends a test to a channel whose receiver accepts it, and to one whose
// receiver does not. The answer must be returned, shown later and audited. Nothing may be sent to a
// channel that does not exist, or while dlo may send no notices.
func TestAChannelIsTested(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		team, down := &scribe{}, &scribe{
			answers: func(int, Message) error { return errors.New("the receiver answered 503") },
		}
		b := newBench(time.Now, Quiet{}, map[string]Channel{
			"team": {Sender: team},
			"down": {Sender: down},
			"old":  Gone("old"),
		})
		var acts []string
		b.o.Record = func(_ context.Context, a deadletter.Act) error {
			acts = append(acts, strings.Join([]string{a.Kind, a.Actor, a.Targets[0].Name, a.Detail}, "|"))
			return nil
		}
		defer b.start(t)()
		synctest.Wait()
		by := deadletter.Principal{Name: "Lena"}
		for channel, want := range map[string]deadletter.Channel{
			"team": {Name: "team", TestedAt: time.Now(), Accepted: true, Answer: "200 OK"},
			"down": {Name: "down", TestedAt: time.Now(), Answer: "the receiver answered 503"},
		} {
			if got, err := b.Test(t.Context(), channel, by); err != nil || got != want {
				t.Errorf("%s: %+v %v", channel, got, err)
			}
			if list := b.Channels(); len(list) != 2 || !slices.Contains(list, want) {
				t.Errorf("%+v has no %+v", list, want)
			}
		}
		slices.Sort(acts)
		if want := []string{
			"channel tested|Lena|down|the receiver answered 503", "channel tested|Lena|team|200 OK",
		}; !slices.Equal(acts, want) {
			t.Errorf("audited %q", acts)
		}
		sent, _ := team.sentMessages()
		if len(sent) != 1 || sent[0].Title != "Test of the channel team" ||
			!strings.Contains(sent[0].Text, "a test by Lena") || sent[0].Event != Told {
			t.Errorf("sent %+v", sent)
		}
		for _, channel := range []string{"none", "old"} {
			if _, err := b.Test(t.Context(), channel, by); !errors.Is(err, deadletter.ErrNotFound) ||
				!strings.Contains(err.Error(), "down, team") {
				t.Errorf("%s: %v", channel, err)
			}
		}
		b.o.Silent = func() bool { return true }
		if _, err := b.Test(t.Context(), "team", by); !errors.Is(err, deadletter.ErrConflict) || len(acts) != 2 {
			t.Errorf("a silent dlo: %v", err)
		}
	})
}

func TestSeveralNoticesAreToldTogetherWhereThatIsWanted(t *testing.T) {
	t.Parallel()
	keys := strings.Fields("a b c d e f")
	for _, c := range []struct {
		name     string
		together bool
		keys     []string
		want     []int // number of lines in each message
	}{
		{"a pager", false, keys, []int{0, 0, 0, 0, 0, 0}},
		{"a chat", true, keys, []int{6}},
		{"a chat, three", true, keys[:3], []int{0, 0, 0}},
		{
			"a chat, more than a message holds",
			true,
			strings.Fields(strings.Repeat("x", 0) + "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22"),
			[]int{20, 0, 0},
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &scribe{}
			b := newBench(time.Now, Quiet{}, map[string]Channel{"c": {Sender: s, Together: c.together}})
			b.box.add("c", opened, soft, c.keys...)
			stop := b.start(t)
			time.Sleep(time.Minute)
			stop()
			told, _ := s.sentMessages()
			var got []int
			for _, m := range told {
				got = append(got, len(m.Lines))
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("%s: %s", c.name, d)
			}
			if open, _, failed := b.box.count("c"); open+failed > 0 {
				t.Errorf("%s: %d open, %d failed", c.name, open, failed)
			}
		})
	}
}

func TestADigestIsAMessageOfItsOwn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &scribe{}
		b := newBench(time.Now, Quiet{}, map[string]Channel{"team": {Sender: s, Together: true}})
		b.box.add("team", opened, soft, "a", "b")
		b.box.add("team", deadletter.NoticeDigest, deadletter.SeverityDigest, "digest")
		b.box.add("team", opened, soft, "c", "d")
		stop := b.start(t)
		time.Sleep(time.Minute)
		stop()
		told, _ := s.sentMessages()
		if len(told) != 2 || len(told[0].Lines) != 4 || told[1].Kind != deadletter.NoticeDigest {
			t.Errorf("told %+v", told)
		}
	})
}

func TestWhatIsRefusedTogetherIsToldApart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		chat := &scribe{answers: func(_ int, m Message) error {
			if len(m.Lines) > 0 || strings.HasSuffix(m.Key, "-c") {
				return permanentError("the receiver answered 400 Bad Request")
			}
			return nil
		}}
		b := newBench(time.Now, Quiet{}, map[string]Channel{"team": {Sender: chat, Together: true}})
		b.box.add("team", opened, soft, "a", "b", "c", "d", "e", "f", "g")
		stop := b.start(t)
		time.Sleep(time.Minute)
		b.box.add("team", opened, soft, "h", "i", "j", "k") // these become one message again
		time.Sleep(time.Minute)
		stop()
		told, _ := chat.sentMessages()
		if len(told) != 1+7+1+4 {
			t.Errorf("%d messages", len(told))
		}
		if open, sent, failed := b.box.count("team"); open != 0 || sent != 10 || failed != 1 {
			t.Errorf("%d open, %d sent, %d failed", open, sent, failed)
		}
	})
}

func TestPaceOfAChannel(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		channel Channel
		want    string // times in seconds at which messages are sent
	}{
		{"as it is", Channel{}, "0 0 0 0 0 1 2 3 4 5"},
		{"mail", Channel{Every: 5 * time.Second, Burst: 1}, "0 5 10 15 20 25 30 35 40 45"},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &scribe{}
			c.channel.Sender = s
			b := newBench(time.Now, Quiet{}, map[string]Channel{"c": c.channel})
			b.box.add("c", opened, loud, strings.Fields("a b c d e f g h i j")...)
			began := time.Now()
			stop := b.start(t)
			time.Sleep(time.Minute)
			stop()
			var got []string
			_, at := s.sentMessages()
			for _, a := range at {
				got = append(got, fmt.Sprint(a.Sub(began).Seconds()))
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("%s: told at %v, want %s", c.name, got, c.want)
			}
		})
	}
}

func TestPaceOutlivesAClockThatIsSetBack(t *testing.T) {
	t.Parallel()
	var p pace
	now := time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)
	for range 5 {
		p.wait(now, time.Second, 5)
	}
	if wait := p.wait(now.Add(-time.Hour), time.Second, 5); wait > time.Second {
		t.Errorf("it waits %s", wait)
	}
}

func TestWhatIsSentAndNotRecordedIsRecordedBeforeAnythingElseIsSent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &scribe{}
		b := newBench(time.Now, Quiet{}, map[string]Channel{"oncall": {Sender: s}})
		b.box.setBroken(errors.New("the disk is full"))
		b.box.add("oncall", opened, loud, "a", "b")
		stop := b.start(t)
		time.Sleep(time.Hour)
		if told, _ := s.sentMessages(); len(told) != 1 {
			t.Errorf("%d messages while nothing can be recorded", len(told))
		}
		b.box.setBroken(nil)
		time.Sleep(time.Minute)
		stop()
		if told, _ := s.sentMessages(); len(told) != 2 {
			t.Errorf("%d messages", len(told))
		}
	})
}

func TestACrashBetweenSendAndRecordSendsTheSameAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &scribe{}
		channels := map[string]Channel{"oncall": {Sender: s}}
		b := newBench(time.Now, Quiet{}, channels)
		b.box.setBroken(errors.New("killed"))
		b.box.add("oncall", opened, loud, "a")
		stop := b.start(t)
		time.Sleep(time.Second)
		stop()
		b.box.setBroken(nil)
		after := New(b.box, Options{})
		after.Replace(Settings{Office: office, Channels: channels})
		b.Notifier = after
		stop = b.start(t)
		time.Sleep(time.Minute)
		stop()
		told, _ := s.sentMessages()
		if len(told) != 2 || told[0].ID != told[1].ID || told[0].Key != told[1].Key {
			t.Errorf("told %+v", told)
		}
	})
}

func TestAMessageOnItsWayArrivesWhenDloStops(t *testing.T) {
	t.Parallel()
	for _, takes := range []time.Duration{3 * time.Second, time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			slow := sendFunc(func(ctx context.Context, _ Message) error {
				select {
				case <-time.After(takes):
					return nil
				case <-ctx.Done():
					return errors.New("no answer in time")
				}
			})
			b := newBench(time.Now, Quiet{}, map[string]Channel{"oncall": {Sender: slow}})
			b.box.add("oncall", opened, loud, "a")
			stop := b.start(t)
			time.Sleep(time.Second)
			began := time.Now()
			stop()
			r := b.box.row(1)
			if r.Sent != (takes < lastWord) || r.Tries != 0 || time.Since(began) > lastWord {
				t.Errorf("after %s: %+v", time.Since(began), r.Delivered)
			}
		})
	}
}

func TestChannelsAreReplacedWhileItRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		wrong, right, other := &scribe{
			answers: func(int, Message) error { return &LaterError{After: time.Hour, Err: errDown} },
		}, &scribe{}, &scribe{}
		b := newBench(time.Now, Quiet{}, map[string]Channel{"oncall": {Sender: wrong}, "old": {Sender: other}})
		b.box.add("oncall", opened, loud, "a")
		stop := b.start(t)
		synctest.Wait()
		if len(b.Problems()) != 1 {
			t.Errorf("problems %v", b.Problems())
		}

		b.Replace(Settings{
			Office:   office,
			Channels: map[string]Channel{"oncall": {Sender: right}, "new": {Sender: other}},
		})
		b.box.add("new", opened, loud, "n")
		b.box.add("old", opened, loud, "o")
		b.box.add("oncall", opened, loud, "b") // delivery a waits for an hour, because the receiver asked for it
		b.Wake()
		time.Sleep(time.Minute)
		if told, _ := right.sentMessages(); len(told) != 1 {
			t.Errorf("%d messages by the new settings", len(told))
		}
		if _, sent, _ := b.box.count("new"); sent != 1 {
			t.Error("a new channel is not served")
		}
		if open, _, _ := b.box.count("old"); open != 1 {
			t.Error("what is due to a channel that is not there any more has to stay")
		}

		b.Replace(Settings{
			Office:   office,
			Channels: map[string]Channel{"oncall": {Sender: right}, "new": {Sender: other}, "old": Gone("old")},
		})
		time.Sleep(2 * time.Hour)
		if r := b.box.row(3); !r.Failed || r.Detail != "there is no channel old any more" {
			t.Errorf("got %+v", r.Delivered)
		}
		if p := b.Problems(); len(p) != 1 || p[0].Channel != "old" {
			t.Errorf("problems %v", p)
		}

		b.Replace(Settings{Office: office, Channels: map[string]Channel{"old": {Sender: other}}})
		b.box.add("old", opened, loud, "p")
		time.Sleep(time.Minute)
		if len(b.Problems()) != 0 {
			t.Errorf("problems %v", b.Problems())
		}
		b.Replace(Settings{})
		time.Sleep(time.Minute)
		stop()
		for _, c := range []string{"oncall", "new", "old"} {
			if open, _, _ := b.box.count(c); open != 0 {
				t.Errorf("%s: %d are open", c, open)
			}
		}
	})
}

func TestSentInPartIsSentAndSaid(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &scribe{
			answers: func(int, Message) error { return &PartlyError{"the mail server refuses 1 of 2 receivers"} },
		}
		b := newBench(time.Now, Quiet{}, map[string]Channel{"mail": {Sender: s}})
		b.box.add("mail", opened, loud, "a")
		stop := b.start(t)
		time.Sleep(time.Hour)
		stop()
		if told, _ := s.sentMessages(); len(told) != 1 || !b.box.row(1).Sent {
			t.Errorf("told %d times, %+v", len(told), b.box.row(1).Delivered)
		}
		if p := b.Problems(); len(p) != 1 || p[0].Text != "the mail server refuses 1 of 2 receivers" {
			t.Errorf("problems %v", p)
		}
	})
}

func TestAnOutboxThatCannotBeReadIsReadLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &scribe{}
		b := newBench(time.Now, Quiet{}, map[string]Channel{"oncall": {Sender: s}})
		b.box.unread = errors.New("the disk is gone")
		b.box.add("oncall", opened, loud, "a")
		stop := b.start(t)
		time.Sleep(time.Minute)
		b.box.mu.Lock()
		b.box.unread = nil
		b.box.mu.Unlock()
		time.Sleep(time.Minute)
		stop()
		if told, _ := s.sentMessages(); len(told) != 1 || !strings.Contains(b.log.String(), "the disk is gone") {
			t.Errorf("told %d times", len(told))
		}
	})
}
