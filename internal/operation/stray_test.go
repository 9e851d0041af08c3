package operation_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/classify"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/operation"
	"github.com/deadletteroffice/dlo/internal/payload"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/internal/rules"
)

// configured replaces the configuration by one with only the given broker and vhost. The letters of
// the office belong to the broker main and the vhost /. With another broker or vhost, these letters
// have no place in the configuration.
func (o *ruled) configured(broker, vhost string) {
	targets := &rules.Targets{}
	targets.Add(broker, vhost, []string{"*"}, []string{"dlo.letters"})
	o.classifier = classify.New(o.store, classify.Options{
		Decoder: func() *payload.Decoder { return &payload.Decoder{} }, Rules: o.book, Targets: targets,
		Now: func() time.Time { return o.at }, Log: slog.New(slog.DiscardHandler),
	})
	o.desk = operation.New(o.store, operation.Options{
		Targets: targets, Now: func() time.Time { return o.at }, Log: slog.New(slog.DiscardHandler),
		Decider: o.classifier,
	})
}

func (o *ruled) steps() {
	o.t.Helper()
	for range 20 {
		o.at = o.at.Add(time.Second)
		_, _, err := o.desk.Step(o.t.Context())
		o.must(err)
	}
}

// TestNobodyPromisesWhatNobodyCanSend checks letters whose broker is not in the configuration. It
// also checks letters whose broker is in the configuration, but without their vhost. A plan must
// refuse each action that would send these letters, and the operation must skip them for the same
// reason. All other actions must work.
func TestNobodyPromisesWhatNobodyCanSend(t *testing.T) {
	t.Parallel()
	for _, where := range []struct{ broker, vhost, reason string }{
		{"prod", "/", `there is no broker "main" in the configuration`},
		{"main", "shop", `broker main is configured for vhost "shop", not "/"`},
	} {
		for _, c := range []struct {
			action  deadletter.Verb
			held    bool // if true, the letters are held before the action
			refused bool
		}{
			{deadletter.VerbRetryNow, false, true},
			{deadletter.VerbReschedule, false, true},
			{deadletter.VerbRequeue, false, true},
			{deadletter.VerbRelease, true, true},
			{deadletter.VerbHold, false, false},
			{deadletter.VerbDiscard, false, false},
			{deadletter.VerbPurge, false, false},
		} {
			t.Run(fmt.Sprintf("%s of %s %s", c.action, where.broker, where.vhost), func(t *testing.T) {
				t.Parallel()
				o := openRuled(t, set())
				ids := o.wait("sms", 10)
				if c.held {
					o.start(operation.Request{Action: deadletter.VerbHold, Selection: query.Selection{IDs: ids}})
					o.steps()
				}
				before := o.letter(ids[0])
				o.configured(where.broker, where.vhost)
				r := operation.Request{Action: c.action, Selection: query.Selection{IDs: ids}, Reason: "now"}
				if c.action == deadletter.VerbReschedule {
					r.DueAt = o.at.Add(time.Hour)
				}
				plan, err := o.desk.Plan(t.Context(), deadletter.Local, r)
				o.must(err)
				skipped := ""
				if len(plan.Skipped) > 0 {
					skipped = fmt.Sprint(plan.Skipped[0].Letters, " ", plan.Skipped[0].Reason)
				}
				if want := "10 " + where.reason; c.refused && (skipped != want || plan.Eligible != 0) ||
					!c.refused && plan.Eligible != 10 {
					t.Errorf("the plan has %d letters, and leaves out %q", plan.Eligible, skipped)
				}
				op := o.operation(o.start(r))
				o.steps()
				op = o.operation(op.ID)
				after := o.letter(ids[0])
				if c.refused && (op.Counts[deadletter.ResultSkipped] != 10 ||
					op.Counts[deadletter.ResultChanged] != 0 || after.State != before.State || !after.DueAt.Equal(
					before.DueAt,
				)) {
					t.Errorf("the operation did %v, and the letter is %s, due %s", op.Counts, after.State, after.DueAt)
				}
				if !c.refused && op.Counts[deadletter.ResultChanged] != 10 {
					t.Errorf("the operation did %v", op.Counts)
				}
			})
		}
	}
}

// TestWhatIsReleasedToDeadNeedsNoBroker checks a letter that was dead before it was held. People
// can release it without a broker, because it is not sent.
func TestWhatIsReleasedToDeadNeedsNoBroker(t *testing.T) {
	t.Parallel()
	o := openRuled(t, set(rules.Rule{Name: "never", Retry: &rules.Retry{}}))
	ids := o.wait("sms", 3)
	o.start(operation.Request{Action: deadletter.VerbHold, Selection: query.Selection{IDs: ids}})
	o.steps()
	o.configured("prod", "/")
	plan, err := o.desk.Plan(t.Context(), deadletter.Local, operation.Request{
		Action:    deadletter.VerbRelease,
		Selection: query.Selection{IDs: ids},
	})
	o.must(err)
	o.start(operation.Request{Action: deadletter.VerbRelease, Selection: query.Selection{IDs: ids}})
	o.steps()
	if l := o.letter(ids[0]); plan.Eligible != 3 || l.State != deadletter.StateDead {
		t.Errorf("%d letters by the plan, and the letter is %s", plan.Eligible, l.State)
	}
}

// TestNewRulesLeaveWhatNobodyCanSend checks that new rules skip letters whose broker is not in the
// configuration. A retry under a new rule could not be sent either.
func TestNewRulesLeaveWhatNobodyCanSend(t *testing.T) {
	t.Parallel()
	o := openRuled(t, set())
	o.wait("sms", 4)
	noise := o.wait("noise", 2)
	o.configured("prod", "/")
	o.book.Replace(set(rules.Rule{Name: "noise", Match: queues("noise"), Discard: true}, rules.Rule{
		Name: "short", Match: queues("sms"), Retry: &rules.Retry{Delays: []time.Duration{time.Minute}},
	}))
	got := o.apply("", false)
	if n := got.Left[`there is no broker "main" in the configuration`]; n != 4 || len(got.Changes) != 1 ||
		!strings.Contains(string(o.letter(noise[0]).State), "discarded") {
		t.Errorf("%+v", got)
	}
}
