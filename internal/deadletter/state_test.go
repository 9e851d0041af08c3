package deadletter_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/google/go-cmp/cmp"
)

// stateTable is the state table of docs/architecture.md. Each row contains a trigger, the states in
// which it is possible, and the state that results. In all other states, the trigger is not
// possible.
var stateTable = []struct {
	from    string // states in which the trigger is possible
	trigger deadletter.Trigger
	to      deadletter.State
}{
	{"received", deadletter.ClassifiedRetry, "scheduled"},
	{"received", deadletter.ClassifiedDead, "dead"},
	{"received", deadletter.ClassifiedDiscard, "discarded"},
	{"received", deadletter.ClassifiedHold, "held"},
	{"dead held scheduled", deadletter.RequeueAsked, "scheduled"},
	{"scheduled", deadletter.Claimed, "publishing"},
	{"publishing", deadletter.Confirmed, "requeued"},
	{"publishing", deadletter.Nacked, "scheduled"},
	{"publishing", deadletter.WaitBegun, "scheduled"},
	{"scheduled", deadletter.WaitOver, "requeued"},
	{"scheduled", deadletter.WaitLost, "held"},
	{"publishing", deadletter.Stopped, "held"},
	{"requeued", deadletter.Quiet, "quiet"},
	{"requeued", deadletter.LostSight, "held"},
	{"scheduled publishing requeued", deadletter.FoundRestored, "held"},
	// A letter whose attempt is open can come back in each of these states. It can also come back
	// in the state received, and then stays in this state. A purged letter cannot come back.
	{"publishing requeued quiet held scheduled dead discarded", deadletter.CameBack, "received"},
	{"scheduled dead held", deadletter.Discarding, "discarded"},
	{"discarded", deadletter.Restoring, "dead"},
	{"scheduled dead", deadletter.Holding, "held"},
	{"scheduled", deadletter.Timing, "scheduled"},
	{"scheduled", deadletter.DecidedDead, "dead"},
	{"held", deadletter.ReleasedDead, "dead"},
	{"held", deadletter.ReleasedAgain, "received"},
	{"held", deadletter.ReleasedDue, "scheduled"},
	{"received scheduled dead held requeued quiet discarded", deadletter.Purging, "purged"},
}

func TestTheStateTable(t *testing.T) {
	t.Parallel()
	want := map[deadletter.Trigger]map[deadletter.State]deadletter.State{}
	for _, row := range stateTable {
		want[row.trigger] = map[deadletter.State]deadletter.State{}
		for s := range strings.FieldsSeq(row.from) {
			want[row.trigger][deadletter.State(s)] = row.to
		}
	}
	got := map[deadletter.Trigger]map[deadletter.State]deadletter.State{}
	for trigger := range deadletter.Transitions {
		got[trigger] = map[deadletter.State]deadletter.State{}
		for _, s := range deadletter.States {
			if to, ok := s.On(trigger); ok {
				got[trigger][s] = to
			} else if to != "" {
				t.Errorf("%s refuses %q and names %s", s, trigger, to)
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-table +code):\n%s", diff)
	}
	if to, ok := deadletter.StateDead.On("no such trigger"); ok {
		t.Errorf("dead takes a trigger that does not exist and becomes %s", to)
	}
}

func TestPurgedIsFinal(t *testing.T) {
	t.Parallel()
	for _, row := range stateTable {
		if to, ok := deadletter.StatePurged.On(row.trigger); ok {
			t.Errorf("%q makes a purged letter %s", row.trigger, to)
		}
	}
}

// TestPublishingIsGuarded checks the transitions into and out of the state publishing. While a
// letter is in this state, and only then, it may be in doubt whether the letter was sent.
//
// Only a claim may lead to this state. A letter may leave it when its attempt has an outcome, or
// when the letter comes back. It may also leave it if the store turns out to be a copy and an
// earlier process was publishing the letter.
func TestPublishingIsGuarded(t *testing.T) {
	t.Parallel()
	for _, row := range stateTable {
		if row.to == deadletter.StatePublishing && row.trigger != deadletter.Claimed {
			t.Errorf("%q leads to publishing", row.trigger)
		}
		switch row.trigger {
		case deadletter.Confirmed, deadletter.Nacked, deadletter.WaitBegun, deadletter.Stopped, deadletter.CameBack, deadletter.FoundRestored:
			continue
		}
		if to, ok := deadletter.StatePublishing.On(row.trigger); ok {
			t.Errorf("%q takes a letter that is on its way and makes it %s", row.trigger, to)
		}
	}
}

func TestVerbs(t *testing.T) {
	t.Parallel()
	for verb, want := range map[deadletter.Verb]string{
		deadletter.VerbRequeue: "scheduled dead held", deadletter.VerbDiscard: "scheduled dead held",
		deadletter.VerbRestore: "discarded", deadletter.VerbView: "", deadletter.VerbCancel: "",
		deadletter.VerbHold: "scheduled dead", deadletter.VerbRelease: "held",
		deadletter.VerbPurge: "received scheduled dead held requeued quiet discarded", "bury": "",
	} {
		var may []string
		for _, s := range deadletter.States {
			if verb.May(s) {
				may = append(may, string(s))
			}
		}
		if got := strings.Join(may, " "); got != want {
			t.Errorf("%s: may act on %q, want %q", verb, got, want)
		}
		parsed, err := deadletter.ParseVerb(string(verb))
		if acts := slices.Contains(
			deadletter.Actions, verb,
		); acts != (want != "") || acts != (err == nil) || acts && parsed != verb {
			t.Errorf("%s: %s, %v", verb, parsed, err)
		}
	}
	if _, err := deadletter.ParseVerb("\x1b[2J"); !errors.Is(err, deadletter.ErrInvalid) ||
		strings.Contains(err.Error(), "\x1b") {
		t.Errorf("%v", err)
	}
}

func TestOutcomes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		outcome    deadletter.OutcomeKind
		open, used bool
	}{
		{deadletter.OutcomeOpen, true, false},
		{deadletter.OutcomeConfirmed, true, true},
		{deadletter.OutcomeReturned, false, false},
		{deadletter.OutcomeNacked, false, false},
		{deadletter.OutcomeRefused, false, false},
		{deadletter.OutcomeInDoubt, true, false},
		{deadletter.OutcomeUnsent, false, false},
		{deadletter.OutcomeCameBack, false, true},
	} {
		if c.outcome.Open() != c.open || c.outcome.Used() != c.used {
			t.Errorf("%s: open %v, used %v", c.outcome, c.outcome.Open(), c.outcome.Used())
		}
	}
}

func TestResults(t *testing.T) {
	t.Parallel()
	for _, r := range []deadletter.Result{
		deadletter.ResultPending, deadletter.ResultReleased, deadletter.ResultConfirmed, deadletter.ResultCameBack,
		deadletter.ResultFailed, deadletter.ResultChanged, deadletter.ResultSkipped,
		deadletter.ResultCancelled,
	} {
		if open := r == deadletter.ResultPending || r == deadletter.ResultReleased; r.Open() != open {
			t.Errorf("%s: open %v", r, r.Open())
		}
	}
	q := deadletter.OperationQueue{
		Counts: map[deadletter.Result]int{deadletter.ResultPending: 2, deadletter.ResultSkipped: 3},
	}
	if q.Total() != 5 {
		t.Error(q.Total())
	}
}

func TestTheGate(t *testing.T) {
	t.Parallel()
	o := deadletter.Origin{Queue: "sms\x1b"}
	if err := deadletter.Allow(deadletter.Local, deadletter.VerbRequeue, o); err != nil {
		t.Error(err)
	}
	err := deadletter.Allow(deadletter.Principal{Name: "eve"}, deadletter.VerbDiscard, o)
	if !errors.Is(err, deadletter.ErrForbidden) || !strings.Contains(err.Error(), `eve may not discard`) ||
		strings.Contains(err.Error(), "\x1b") {
		t.Error(err)
	}
}

func TestALetterThatKilledThreeTimesIsUndecodable(t *testing.T) {
	t.Parallel()
	for crashes, want := range []bool{false, false, false, true, true} {
		if l := (deadletter.Letter{Crashes: crashes}); l.Undecodable() != want {
			t.Errorf("%d crashes: %v", crashes, l.Undecodable())
		}
	}
}
