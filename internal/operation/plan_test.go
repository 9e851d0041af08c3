package operation_test

import (
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/operation"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/internal/store"
)

// TestWhatAPlanWarnsOf checks the warnings of a plan for each target queue. If a fact is unknown,
// the plan must not guess it.
func TestWhatAPlanWarnsOf(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.arrive("sms", 20)
	for _, c := range []struct {
		name  string
		facts deadletter.QueueFacts
		want  string
	}{
		{"nothing can be asked", deadletter.UnknownQueue, "its depth is unknown"},
		{
			"all is well",
			deadletter.QueueFacts{Known: true, Exists: true, Consumers: 2, Ready: 3, DeadLetters: "exchange dlo.dlx"},
			"",
		},
		{
			"it is gone",
			deadletter.QueueFacts{Known: true, Consumers: -1, Ready: -1, MaxLength: -1, MaxBytes: -1},
			"does not exist",
		},
		{"no consumers", deadletter.QueueFacts{Known: true, Exists: true, Ready: 3}, "nobody consumes it"},
		{
			"it would overflow",
			deadletter.QueueFacts{Known: true, Exists: true, Consumers: 1, Ready: 90, MaxLength: 100},
			"at most 100 messages and has 90",
		},
		{
			"the second death would be lost",
			deadletter.QueueFacts{Known: true, Exists: true, Consumers: 1, DeadLetters: deadletter.DeadLettersNowhere},
			"would be lost",
		},
		{
			"order matters",
			deadletter.QueueFacts{Known: true, Exists: true, Consumers: 1, SingleActive: true},
			"single active consumer",
		},
		{
			"deeper than its limit",
			deadletter.QueueFacts{Known: true, Exists: true, Consumers: 1, Ready: 200},
			"wait until it has fewer than 150",
		},
		{
			"as deep as its limit",
			deadletter.QueueFacts{Known: true, Exists: true, Consumers: 1, Ready: 150},
			"wait until it has fewer than 150",
		},
	} {
		o.facts = &c.facts
		plan, err := o.desk.Plan(t.Context(), deadletter.Local, operation.Request{
			Action:    deadletter.VerbRequeue,
			Selection: selection(t, "queue:sms"),
			Pace:      operation.Pace{MaxDepth: ptr(150)},
		})
		o.must(err)
		if got := plan.Queues[0].Warning; c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestAPlanSaysThatTheBrokerIsAway checks that a plan contains a warning if the broker is
// unreachable. Every action that sends letters needs this warning, even if it sends the letters
// later, when they are due. The warning must not appear twice.
func TestAPlanSaysThatTheBrokerIsAway(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.arrive("sms", 2)
	o.retry = true
	o.arrive("email", 1)
	o.facts, o.away = &deadletter.UnknownQueue, "main is not connected: letters wait until it is back"
	for _, c := range []struct {
		query   string
		request operation.Request
		want    string
	}{
		{
			"queue:sms",
			operation.Request{Action: deadletter.VerbRequeue, Pace: operation.Pace{MaxDepth: ptr(150)}},
			o.away,
		},
		{"queue:email", operation.Request{Action: deadletter.VerbRetryNow}, o.away},
		{"queue:sms", operation.Request{Action: deadletter.VerbDiscard}, ""},
	} {
		c.request.Selection = selection(t, c.query)
		plan, err := o.desk.Plan(t.Context(), deadletter.Local, c.request)
		o.must(err)
		if got := strings.Join(
			plan.Warnings, "; ",
		); len(plan.Queues) != 1 || plan.Queues[0].Warning != "" || got != c.want {
			t.Errorf("%s: %q, %+v", c.request.Action, got, plan.Queues)
		}
	}
}

// TestAPlanSaysWhatCameBackOfPeople checks requeues by people. If their letters came back, a plan
// must report these requeues, with operation and time. The plan must not report automatic retries
// that came back, because they say nothing about a requeue by people.
func TestAPlanSaysWhatCameBackOfPeople(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.retry, o.broken = true, true
	o.arrive("sms", 3)
	o.advance(time.Second)
	requeue := operation.Request{
		Action:    deadletter.VerbRequeue,
		Selection: selection(t, "state:dead"),
		Pace:      operation.Pace{Canary: ptr(0), StopAt: ptr(0.0)},
	}
	plan, err := o.desk.Plan(t.Context(), deadletter.Local, requeue)
	o.must(err)
	if len(plan.Queues) != 1 || plan.Queues[0].Letters != 3 || plan.Queues[0].CameBack != 0 ||
		plan.Queues[0].Warning != "" {
		t.Fatalf("after retries: %+v", plan.Queues)
	}
	begun := o.operation(o.start(requeue)).CreatedAt
	o.advance(20 * time.Second)
	o.retry, o.broken = false, false
	o.arrive("sms", 2)
	plan, err = o.desk.Plan(t.Context(), deadletter.Local, requeue)
	o.must(err)
	want := "3 of them came back after people requeued them, the last time in O-1 at " +
		begun.Format("2006-01-02 15:04") + " UTC"
	if q := plan.Queues[0]; q.Letters != 5 || q.CameBack != 3 || q.Last != 1 || q.Warning != want {
		t.Errorf("after a requeue: %+v, want %q", q, want)
	}
}

// TestAnOperationDoesWhatItsPlanSays checks that an operation skips exactly the letters that its
// plan reports as skipped, for the same reason. Skipped letters must stay unchanged. Plan and
// operation must both respect a redirect.
func TestAnOperationDoesWhatItsPlanSays(t *testing.T) {
	t.Parallel()
	o := open(t)
	stays, goes := o.arrive("other", 3), o.arrive("moved", 2)
	_, err := o.desk.Redirect(t.Context(), deadletter.Local, deadletter.Override{
		Broker: "main", VHost: "/", Queue: "moved", To: "spare",
	})
	o.must(err)
	o.depth["spare"] = 7
	r := operation.Request{
		Action:    deadletter.VerbRequeue,
		Selection: selection(t, "state:dead"),
		Pace:      operation.Pace{Hold: ptr(time.Duration(0))},
	}
	plan, err := o.desk.Plan(t.Context(), deadletter.Local, r)
	o.must(err)
	if len(plan.Queues) != 1 || plan.Queues[0].Target != "spare" || plan.Queues[0].Facts.Ready != 7 ||
		len(plan.Skipped) != 1 || plan.Skipped[0].Letters != 3 {
		t.Fatalf("%+v", plan)
	}
	id := o.start(r)
	o.advance(time.Second)
	o.wantState(
		id, deadletter.OperationRunning, deadletter.PhaseWatching, deadletter.ResultConfirmed, len(goes),
		deadletter.ResultSkipped, len(stays),
	)
	skipped, _, err := o.store.OperationLetters(t.Context(), id, []deadletter.Result{deadletter.ResultSkipped}, "", 10)
	o.must(err)
	for _, l := range skipped {
		if l.Reason != plan.Skipped[0].Reason {
			t.Errorf("%q, and the plan said %q", l.Reason, plan.Skipped[0].Reason)
		}
	}
	for _, id := range stays {
		if l, err := o.store.Letter(t.Context(), id); err != nil || l.State != deadletter.StateDead {
			t.Error(l.State, err)
		}
	}
}

// TestAPlanWarnsOfLettersInDoubt checks a plan for letters in doubt, which would be sent again. The
// plan must warn that a copy of these letters may exist.
func TestAPlanWarnsOfLettersInDoubt(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.arrive("sms", 3)
	first := o.start(operation.Request{
		Action:    deadletter.VerbRequeue,
		Selection: selection(t, "queue:sms"),
		First:     1,
		Pace:      operation.Pace{Hold: ptr(time.Duration(0))},
	})
	_, _, err := o.desk.Step(t.Context())
	o.must(err)
	due, err := o.store.ClaimDue(t.Context(), "main", o.at, 10, deadletter.Allowance{
		Allow: func(deadletter.Origin, string) (int, bool) { return 10, false },
	})
	if err != nil || len(due) != 1 {
		t.Fatal(due, err)
	}
	o.must(o.store.Mark(t.Context(), []deadletter.Mark{
		{Letter: due[0].Letter.ID, Token: due[0].Attempt.Token, Outcome: deadletter.OutcomeInDoubt, Detail: "in doubt"},
	}, deadletter.Noted{}))
	o.wantState(first, deadletter.OperationDone, deadletter.PhaseOver, deadletter.ResultInDoubt, 1)
	for _, c := range []struct {
		action deadletter.Verb
		query  string
		want   int
	}{
		{deadletter.VerbRequeue, "queue:sms", 1},
		{deadletter.VerbRelease, "state:held", 1},
		{deadletter.VerbRequeue, "state:dead", 0},
		{deadletter.VerbDiscard, "queue:sms", 0},
	} {
		plan, err := o.desk.Plan(t.Context(), deadletter.Local, operation.Request{
			Action: c.action, Selection: selection(t, c.query),
		})
		if err != nil || len(plan.Warnings) != c.want ||
			c.want > 0 && !strings.HasPrefix(plan.Warnings[0], "1 of them may already be in their queue") {
			t.Errorf("%s %s: %q, %v", c.action, c.query, plan.Warnings, err)
		}
	}
}

// TestAPlanOverARestoredStore uses a store that was restored from a copy. Some of its letters may
// have been sent after the copy was made. If an action would send such letters again, the plan must
// leave them out, but no other letters. The operation must leave out the same letters as the plan.
func TestAPlanOverARestoredStore(t *testing.T) {
	t.Parallel()
	for action, skipped := range map[deadletter.Verb]int{
		deadletter.VerbRequeue: 3, deadletter.VerbRelease: 1, deadletter.VerbDiscard: 0, deadletter.VerbPurge: 0,
	} {
		o := open(t)
		o.arrive("sms", 1)
		waits := o.arrive("email", 1)
		// the letter was dead before it was held
		o.start(operation.Request{Action: deadletter.VerbHold, Selection: query.Selection{IDs: o.arrive("spare", 1)}})
		o.advance(time.Second)
		o.start(operation.Request{
			Action:    deadletter.VerbRequeue,
			Selection: query.Selection{IDs: waits},
			Pace:      operation.Pace{Hold: ptr(time.Duration(0))},
		})
		_, _, err := o.desk.Step(t.Context()) // after this step, the letter is about to be sent
		o.must(err)
		o.must(o.store.Close())
		o.store, err = store.Open(t.Context(), o.store.Path(), store.Options{Now: func() time.Time { return o.at }})
		o.must(err)
		o.restart()
		seen := o.store.Progress()
		seen.Claims++
		o.must(o.store.Restored(t.Context(), seen, false))
		r := operation.Request{
			Action:    action,
			Selection: selection(t, ""),
			Pace:      operation.Pace{Hold: ptr(time.Duration(0))},
		}
		if action == deadletter.VerbRelease {
			r.Selection = selection(t, "state:held")
		}
		plan, err := o.desk.Plan(t.Context(), deadletter.Local, r)
		o.must(err)
		planned := 0
		for _, s := range plan.Skipped {
			if s.Reason != deadletter.WhyRestored {
				t.Errorf("%s: %+v", action, s)
			}
			planned += s.Letters
		}
		op := o.start(r)
		o.advance(time.Second)
		if did := o.operation(op).Counts[deadletter.ResultSkipped]; planned != skipped || did != skipped {
			t.Errorf("%s: the plan leaves out %d letters, the operation %d, want %d", action, planned, did, skipped)
		}
	}
}
