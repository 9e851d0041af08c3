package requeue

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// lab is the breaker of group 7 in the queue "sms". The test controls its clock.
type lab struct {
	t    *testing.T
	b    *breakers
	now  time.Time
	next int
	log  []change
}

func newLab(t *testing.T) *lab {
	return &lab{
		t: t,
		b: newBreakers(Breaker{
			CameBack: 90, Of: 50, Window: 10 * time.Minute, Probe: 3,
		}, "main", "/", 10*time.Minute),
		now: time.Date(2026, 11, 20, 22, 0, 0, 0, time.UTC),
	}
}

func (l *lab) send(n int, probe bool) []deadletter.ID {
	ids := make([]deadletter.ID, n)
	for i := range ids {
		l.next++
		ids[i] = deadletter.ID(fmt.Sprint("letter ", l.next))
		l.b.countSent("sms", 7, ids[i], probe, l.now, l.now)
	}
	return ids
}

func (l *lab) tick(d time.Duration) {
	l.now = l.now.Add(d)
	l.log = append(l.log, l.b.tick(l.now, func(string) float64 { return 50 })...)
}

func (l *lab) state() deadletter.GuardState {
	l.b.mu.Lock()
	defer l.b.mu.Unlock()
	return l.b.circuit("sms", 7).State
}

func (l *lab) wantState(s deadletter.GuardState) {
	l.t.Helper()
	if got := l.state(); got != s {
		l.t.Fatalf("the breaker is %q, want %q", got, s)
	}
}

// TestABreakerTripsWhenAlmostAllComeBack checks that a breaker trips when almost all of the letters
// that were sent last came back. It must not trip before enough letters were sent.
func TestABreakerTripsWhenAlmostAllComeBack(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		sent int
		back func(n int) bool
		want deadletter.GuardState
	}{
		{"all of 49", 49, func(int) bool { return true }, ""},
		{"all of 50", 50, func(int) bool { return true }, deadletter.GuardTripped},
		{"45 of 50", 50, func(n int) bool { return n%10 != 0 }, deadletter.GuardTripped},
		{"44 of 50", 50, func(n int) bool { return n%10 != 0 && n != 1 }, ""},
		{"half of 1000", 1000, func(n int) bool { return n%2 == 0 }, ""},
		{"the last 50 of 1000", 1000, func(n int) bool { return n >= 950 }, deadletter.GuardTripped},
		{"the first 40 of 1000", 1000, func(n int) bool { return n < 40 }, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t)
			for n, id := range l.send(c.sent, false) {
				if c.back(n) {
					l.b.countReturned([]deadletter.ID{id}, l.now.Add(time.Second))
				}
			}
			l.wantState(c.want)
		})
	}
}

// TestLettersOnTheirWaySayNothing checks letters that were sent after the newest letter that came
// back. The breaker must not count them, because they have not reached a worker yet.
func TestLettersOnTheirWaySayNothing(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	ids := l.send(5000, false)
	l.b.countReturned(ids[:49], l.now)
	l.wantState("")
	l.b.countReturned(ids[49:50], l.now)
	l.wantState(deadletter.GuardTripped)
}

// TestOldAndUnsentLettersAreNotCounted checks that a breaker does not count letters that came back
// too late, or that never reached their queue.
func TestOldAndUnsentLettersAreNotCounted(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	ids := l.send(49, false)
	l.tick(11 * time.Minute)
	ids = append(ids, l.send(1, false)...)
	l.b.countReturned(ids, l.now)
	l.wantState("")
	unsent := l.send(60, false)
	for _, id := range unsent[:20] {
		l.b.uncount(id)
	}
	l.b.countReturned(unsent[20:], l.now)
	l.wantState("")
}

// TestANightWithADeadDependency simulates a dependency that is down for eight hours at night. The
// breaker must send a few letters from time to time, to test whether the dependency works again,
// and must do this less and less often. One notice must be sent. In the morning, the rate must
// rise.
func TestANightWithADeadDependency(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.b.countReturned(l.send(50, false), l.now)
	l.wantState(deadletter.GuardTripped)
	probes := 0
	for range 8 * 3600 / 5 {
		l.tick(5 * time.Second)
		if n, _ := l.b.allow("sms", 7, l.now); n > 0 {
			if n != 3 {
				t.Fatalf("a probe of %d letters", n)
			}
			probes++
			ids := l.send(n, true)
			l.wantState(deadletter.GuardProbing)
			if again, _ := l.b.allow("sms", 7, l.now); again != 0 {
				t.Fatal("a second probe beside the first")
			}
			l.b.countReturned(ids, l.now.Add(time.Second))
			l.wantState(deadletter.GuardTripped)
		}
	}
	if probes < 45 || probes > 55 { // probes after 1, 2, 4 and 8 minutes, and then every 10 minutes
		t.Errorf("%d probes in a night", probes)
	}
	for n := 0; n <= 0; {
		l.tick(5 * time.Second)
		if n, _ = l.b.allow("sms", 7, l.now); n > 0 {
			l.send(n, true)
		}
	}
	l.tick(20 * time.Second)
	l.wantState(deadletter.GuardProbing)
	l.tick(15 * time.Second)
	l.wantState(deadletter.GuardRamping)
	before := 0.0
	for l.state() == deadletter.GuardRamping {
		n, rate := l.b.allow("sms", 7, l.now)
		if n >= 0 || rate < before {
			t.Fatalf("allows %d letters, %g a second after %g", n, rate, before)
		}
		before = rate
		l.send(1, false)
		l.tick(time.Second)
	}
	l.wantState("")
	if n, rate := l.b.allow("sms", 7, l.now); n >= 0 || !math.IsInf(rate, 1) {
		t.Errorf("after it closed: %d, %g", n, rate)
	}
	notices := 0
	for _, c := range l.log {
		if c.notice != nil {
			notices++
			if !strings.Contains(c.notice.Text, "50 of the last 50 letters came back") {
				t.Error(c.notice.Text)
			}
		}
	}
	if notices != 1 {
		t.Errorf("%d notices in a night", notices)
	}
	if last := l.log[len(l.log)-1].breaker; last.State != "" {
		t.Errorf("the last that is recorded: %+v", last)
	}
}

// TestARelapseTripsSooner checks a breaker that tripped before and now lets the rate rise again. If
// letters come back now, fewer of them must be enough to trip the breaker. After that, it must hold
// back all letters for a longer time than before.
func TestARelapseTripsSooner(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.b.countReturned(l.send(50, false), l.now)
	l.tick(time.Minute)
	l.send(3, true)
	l.tick(time.Minute)
	l.wantState(deadletter.GuardRamping)
	l.b.countReturned(l.send(9, false), l.now)
	l.wantState(deadletter.GuardRamping)
	l.b.countReturned(l.send(1, false), l.now)
	l.wantState(deadletter.GuardTripped)
	if got := l.b.circuit("sms", 7).Until.Sub(l.now); got != 2*time.Minute {
		t.Errorf("rests for %s", got)
	}
}

// TestWhatIsRecordedIsTakenOver checks that a new process takes over the recorded states of
// breakers. If an earlier process was sending a probe, the new process must send its own probe,
// because it does not know the letters of the earlier one. If a person resumed a tripped queue, the
// rate of the queue must rise slowly.
func TestWhatIsRecordedIsTakenOver(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	o := deadletter.Origin{Broker: "main", VHost: "/", Queue: "sms"}
	l.b.adopt([]deadletter.Breaker{
		{Origin: o, Group: 7, Waits: 1, State: deadletter.GuardProbing, Since: l.now, Wait: 4 * time.Minute},
	}, l.now)
	l.wantState(deadletter.GuardTripped)
	l.tick(time.Minute)
	if n, _ := l.b.allow("sms", 7, l.now); n != 0 {
		t.Errorf("%d letters at once", n)
	}
	l.tick(3 * time.Minute)
	if n, _ := l.b.allow("sms", 7, l.now); n != 3 {
		t.Errorf("%d letters as a probe", n)
	}
	l.b.adopt([]deadletter.Breaker{
		{Origin: o, Group: 7, Waits: 1, State: deadletter.GuardRamping, Since: l.now, Wait: 4 * time.Minute},
	}, l.now)
	l.wantState(deadletter.GuardRamping)
	l.b.adopt(nil, l.now)
	l.wantState("")
}

// TestABreakerOutlivesAClockThatIsSetBack covers a clock that is set back while a breaker holds
// back the letters of a queue. The breaker must send its next probe no later than after the maximum
// rest.
func TestABreakerOutlivesAClockThatIsSetBack(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.b.countReturned(l.send(50, false), l.now)
	l.tick(-time.Hour)
	l.tick(10 * time.Minute)
	if n, _ := l.b.allow("sms", 7, l.now); n != 3 {
		t.Errorf("%d letters as a probe", n)
	}
}

// TestABreakerCanBeOff checks the setting of 0 per cent, which turns a breaker off. While it is
// off, the breaker must never trip. If the breaker had tripped before it was turned off, it must
// hold back no letters any more.
func TestABreakerCanBeOff(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.b.countReturned(l.send(50, false), l.now)
	l.wantState(deadletter.GuardTripped)
	l.b.o.CameBack = 0
	if n, rate := l.b.allow("sms", 7, l.now.Add(time.Hour)); n >= 0 || !math.IsInf(rate, 1) {
		t.Errorf("a breaker that is off allows %d, %g", n, rate)
	}
	l = newLab(t)
	l.b.o.CameBack = 0
	l.b.countReturned(l.send(1000, false), l.now)
	l.wantState("")
}

// TestARampEndsWithLettersThatStayAway covers a breaker that lets the rate of retries rise slowly
// again. Time alone must not close this breaker. Letters must be sent and must not come back. If
// there are no letters for as long as the setting Window says, the breaker must close.
func TestARampEndsWithLettersThatStayAway(t *testing.T) {
	t.Parallel()
	ramp := func() *lab {
		l := newLab(t)
		l.b.countReturned(l.send(50, false), l.now)
		l.tick(time.Minute)
		l.send(3, true)
		l.tick(time.Minute)
		l.wantState(deadletter.GuardRamping)
		return l
	}
	l := ramp()
	l.tick(9 * time.Minute)
	l.wantState(deadletter.GuardRamping)
	l.tick(time.Minute)
	l.wantState("")
	l = ramp()
	l.tick(2 * time.Minute)
	l.send(20, false)
	l.tick(20 * time.Second)
	l.wantState(deadletter.GuardRamping)
	l.tick(10 * time.Second)
	l.wantState("")
	// Letters that came back before the breaker closed no longer count. One more return must therefore
	// not trip the breaker.
	l.b.countReturned(l.send(1, false), l.now)
	l.wantState("")
}

// TestABreakerDoesNotCountWhatWaitsInTheBroker covers letters that still wait in the broker. The
// breaker must not count them as letters that did not come back.
func TestABreakerDoesNotCountWhatWaitsInTheBroker(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	for n := range 60 {
		l.b.countReturned(l.send(1, false), l.now)
		l.b.countSent("sms", 7, deadletter.ID(fmt.Sprint("waits ", n)), false, l.now, l.now.Add(time.Hour))
		l.tick(time.Second)
	}
	l.wantState(deadletter.GuardTripped)
}

// TestABreakerCountsLetters checks that a breaker counts a letter once, however often the letter
// was sent and came back. A few letters that come back again and again must therefore not trip the
// breaker, and must be retried when they are due.
func TestABreakerCountsLetters(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	ids := l.send(49, false)
	for range 10 {
		l.b.countReturned(ids, l.now)
		l.tick(5 * time.Second)
		for _, id := range ids {
			l.b.countSent("sms", 7, id, false, l.now, l.now)
		}
	}
	l.b.countReturned(ids, l.now)
	l.wantState("")
	l.b.countReturned(l.send(1, false), l.now)
	l.wantState(deadletter.GuardTripped)
}

// TestFiveGroupsTripTheirQueue checks that a failing group does not hold back other groups of its
// queue. Only five tripped groups must trip the whole queue.
func TestFiveGroupsTripTheirQueue(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	fail := func(group deadletter.GroupID) {
		for range 50 {
			l.next++
			id := deadletter.ID(fmt.Sprint("letter ", l.next))
			l.b.countSent("sms", group, id, false, l.now, l.now)
			l.b.countReturned([]deadletter.ID{id}, l.now)
		}
	}
	state := func(queue string, group deadletter.GroupID) string {
		n, rate := l.b.allow(queue, group, l.now)
		return fmt.Sprintf("%v %d %g", l.b.guardedGroups(queue), n, rate)
	}
	for group := range deadletter.GroupID(4) {
		fail(group + 1)
	}
	if got := state("sms", 3); got != "[G-1 G-2 G-3 G-4] 0 0" {
		t.Error("a group that fails:", got)
	}
	if got := state("sms", 5); got != "[G-1 G-2 G-3 G-4] -1 +Inf" {
		t.Error("a healthy group:", got)
	}
	if got := state("sms", 0); got != "[G-1 G-2 G-3 G-4] -1 +Inf" {
		t.Error("their queue:", got)
	}
	l.tick(0)
	if len(l.log) != 4 || l.log[0].notice.Key != "breaker main sms G-1" ||
		!strings.Contains(
			l.log[0].notice.Text,
			"retries of group G-1 of queue sms are held back: 50 of the last 50 letters came back",
		) {
		t.Errorf("%+v", l.log)
	}
	l.log = nil
	fail(6)
	if got := state("sms", 0); got != "[] 0 0" {
		t.Error("the queue of five groups that fail:", got)
	}
	if got := state("email", 0); got != "[] -1 +Inf" {
		t.Error("another queue:", got)
	}
	l.tick(0)
	var recorded []string
	for _, c := range l.log {
		recorded = append(recorded, fmt.Sprintf("%s %s", c.breaker.Group, c.breaker.State))
	}
	if got := strings.Join(recorded, ", "); got != "G-6 tripped, G-1 , G-2 , G-3 , G-4 , G-6 ,  tripped" {
		t.Error(got)
	}
	if notice := l.log[len(l.log)-1].notice; notice == nil || notice.Key != "breaker main sms" {
		t.Errorf("%+v", notice)
	}
}

// TestABreakerOfNothingCloses checks breakers whose probe is due. A breaker that holds back no
// letter must close, and a breaker that holds back letters must stay tripped.
func TestABreakerOfNothingCloses(t *testing.T) {
	t.Parallel()
	for waits, want := range []deadletter.GuardState{"", deadletter.GuardTripped} {
		l := newLab(t)
		l.b.countReturned(l.send(50, false), l.now)
		l.tick(0)
		recorded := []deadletter.Breaker{l.log[0].breaker}
		recorded[0].Waits = waits
		l.tick(59 * time.Second)
		l.b.adopt(recorded, l.now)
		l.wantState(deadletter.GuardTripped)
		l.tick(time.Second)
		l.b.adopt(recorded, l.now)
		l.wantState(want)
	}
}
