package operation_test

import (
	"context"
	"errors"
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
	"github.com/google/go-cmp/cmp"
)

// ruled is an office whose letters are classified by rules. A test can replace the rules.
type ruled struct {
	*office
	book       *rules.Book
	classifier *classify.Classifier
	waits      int // number of calls of wait, which makes the bodies differ
}

func openRuled(t *testing.T, set *rules.Set) *ruled {
	t.Helper()
	o := &ruled{office: open(t), book: rules.NewBook(set)}
	targets := &rules.Targets{}
	targets.Add("main", "/", []string{"*"}, []string{"dlo.letters"})
	o.classifier = classify.New(o.store, classify.Options{
		Decoder: func() *payload.Decoder { return &payload.Decoder{} }, Rules: o.book, Targets: targets,
		Now: func() time.Time { return o.at }, Log: slog.New(slog.DiscardHandler),
	})
	o.desk = operation.New(o.store, operation.Options{
		Targets: targets, Now: func() time.Time { return o.at }, Log: slog.New(slog.DiscardHandler),
		Decider: o.classifier,
	})
	return o
}

// wait stores n letters that died in the given queue. It classifies them a little later.
func (o *ruled) wait(queue string, n int) []deadletter.ID {
	o.t.Helper()
	o.waits++
	var arrivals []deadletter.Arrival
	for i := range n {
		a := deadletter.Arrival{
			Exchange:   "dlo.dlx",
			RoutingKey: queue,
			Tag:        uint64(i + 1),
			Body:       []byte(fmt.Sprint(queue, o.waits, i)),
			Properties: deadletter.Properties{Headers: deadletter.Table{
				"x-death": []any{
					deadletter.Table{
						"queue":        queue,
						"exchange":     "",
						"reason":       "rejected",
						"count":        int64(1),
						"routing-keys": []any{queue},
						"time":         o.at,
					},
				},
			}},
		}
		print, err := a.Print()
		o.must(err)
		a.Fingerprint = print
		arrivals = append(arrivals, a)
	}
	o.window++
	r, err := o.store.Receive(o.t.Context(), deadletter.Window{
		Session: 1, Number: o.window, Broker: "main", VHost: "/", Inbox: "dlo.letters", Arrivals: arrivals,
		Uncertain: deadletter.UncertainKeep, Horizon: time.Minute, HorizonRows: 1000,
	})
	o.must(err)
	o.must(o.store.SettleWindow(o.t.Context(), r.Window))
	o.at = o.at.Add(3 * time.Second)
	for n := 1; n > 0; {
		n, err = o.classifier.Step(o.t.Context())
		o.must(err)
	}
	return r.New
}

func (o *ruled) apply(text string, dry bool) rules.Applied {
	o.t.Helper()
	q, err := query.Parse(text, query.Options{Now: o.at})
	o.must(err)
	a, err := o.desk.Apply(o.t.Context(), deadletter.Local, operation.ApplyRequest{
		Query: q, DryRun: dry, Reason: "new rules",
	})
	o.must(err)
	return a
}

func (o *ruled) letter(id deadletter.ID) deadletter.Letter {
	o.t.Helper()
	l, err := o.store.Letter(o.t.Context(), id)
	o.must(err)
	return l
}

func set(list ...rules.Rule) *rules.Set {
	return &rules.Set{
		Seed:  7,
		Rules: list,
		Default: rules.Rule{
			Name: rules.DefaultName, Retry: &rules.Retry{Delays: []time.Duration{time.Hour, 2 * time.Hour}, Jitter: .5},
			Severity: deadletter.SeverityDigest,
		},
	}
}

func queues(names ...string) rules.Match { return rules.Match{Queue: names} }

// TestNewRulesAreAppliedToLettersThatWait changes the rules while letters wait. A dry run must
// report exactly the changes that the following run makes. Another run must change nothing.
func TestNewRulesAreAppliedToLettersThatWait(t *testing.T) {
	t.Parallel()
	o := openRuled(t, set())
	sms, email, noise, other := o.wait("sms", 250), o.wait("email", 60), o.wait("noise", 30), o.wait("other", 10)
	if a := o.apply("", false); a.Looked != 350 || a.Unchanged != 350 || len(a.Changes) != 0 || len(a.Left) != 0 {
		t.Fatalf("rules that have not changed: %+v", a)
	}
	// These operations prepare four letters. Two letters get a due time that a person chose, one
	// letter is released by a requeue, and one letter becomes due immediately.
	due := o.at.Add(90 * time.Minute)
	o.start(operation.Request{Action: deadletter.VerbReschedule, Selection: query.Selection{IDs: sms[:2]}, DueAt: due})
	o.start(operation.Request{
		Action:    deadletter.VerbRequeue,
		Selection: query.Selection{IDs: email[:1]},
		Pace:      operation.Pace{Hold: ptr(time.Duration(0)), Canary: ptr(0)},
	})
	o.start(operation.Request{Action: deadletter.VerbRetryNow, Selection: query.Selection{IDs: other[:1]}})
	for range 20 {
		o.at = o.at.Add(time.Second)
		_, _, err := o.desk.Step(o.t.Context())
		o.must(err)
	}
	before := o.letter(sms[0])

	severe := deadletter.SeverityPage
	o.book.Replace(set(
		rules.Rule{Name: "short", Match: queues("sms"), Retry: &rules.Retry{Delays: []time.Duration{10 * time.Minute}}},
		rules.Rule{Name: "never", Match: queues("email"), Retry: &rules.Retry{}, Severity: severe},
		rules.Rule{Name: "noise", Match: queues("noise"), Discard: true},
	))
	dry := o.apply("", true)
	want := []rules.AppliedChange{
		{
			From:     rules.Decided{Rule: "default", Outcome: deadletter.RuleRetry},
			To:       rules.Decided{Rule: "short", Outcome: deadletter.RuleRetry},
			Letters:  248,
			Examples: sms[2:5],
		},
		{
			From:     rules.Decided{Rule: "default", Outcome: deadletter.RuleRetry},
			To:       rules.Decided{Rule: "never", Outcome: deadletter.RuleDead},
			Letters:  59,
			Examples: email[1:4],
		},
		{
			From:     rules.Decided{Rule: "default", Outcome: deadletter.RuleRetry},
			To:       rules.Decided{Rule: "noise", Outcome: deadletter.RuleDiscard},
			Letters:  30,
			Examples: noise[:3],
		},
	}
	if diff := cmp.Diff(rules.Applied{
		DryRun:    true,
		Looked:    350,
		Unchanged: 9,
		Left:      map[string]int{"someone set its due time": 3, "an operation has released it": 1},
		Changes:   want,
	}, dry); diff != "" {
		t.Fatal(diff)
	}
	if l := o.letter(sms[9]); l.Rule != "default" || o.letter(email[9]).State != deadletter.StateScheduled {
		t.Fatalf("a dry run changed %+v", l)
	}
	dry.DryRun = false
	if diff := cmp.Diff(dry, o.apply("", false)); diff != "" {
		t.Errorf("(-dry run +what was done)\n%s", diff)
	}
	if l := o.letter(sms[9]); l.Rule != "short" || !l.DueAt.Equal(l.ReceivedAt.Add(10*time.Minute)) ||
		l.Why != "rule short: retry 1 of 1 in 10m0s" || l.Severity != deadletter.SeverityDigest {
		t.Errorf("retried otherwise: %+v", l)
	}
	if l := o.letter(
		email[9],
	); l.State != deadletter.StateDead || l.Rule != "never" || l.Severity != severe || !l.DueAt.IsZero() ||
		l.Why != "rule never: no retries" {
		t.Errorf("dead: %+v", l)
	}
	if l := o.letter(noise[9]); l.State != deadletter.StateDiscarded {
		t.Errorf("discarded: %+v", l)
	}
	if diff := cmp.Diff(before, o.letter(sms[0])); diff != "" || !before.DueAt.Equal(due) {
		t.Errorf("what a person chose: due %s\n%s", before.DueAt, diff)
	}
	history, err := o.store.History(t.Context(), email[9])
	o.must(err)
	if e := history[len(
		history,
	)-1]; e.Kind != "decided again" || e.Actor != "local" || e.Detail != "rule never: no retries" {
		t.Errorf("%+v", e)
	}
	entries, _, err := o.store.Audit(t.Context(), (query.Query{}).With(query.Action, "rules applied"), "", 10)
	o.must(err)
	if len(entries) != 2 || entries[0].Actor != "local" ||
		entries[0].Detail != "to 350 letters, all that are scheduled: 248 retried otherwise, 59 dead, 30 discarded, 9 unchanged, 4 left alone: new rules" {
		t.Errorf("%+v", entries)
	}
	if a := o.apply("", false); len(a.Changes) != 0 || a.Looked != 261 || a.Unchanged != 257 {
		t.Errorf("a second time: %+v", a)
	}
}

// TestNewDueTimesCountFromTheDeath checks due times under new rules. If the new delay has already
// passed, the letter must be due now and not in the past. For a letter that came back, the delay
// must count from its return.
func TestNewDueTimesCountFromTheDeath(t *testing.T) {
	t.Parallel()
	o := openRuled(t, set())
	id := o.wait("sms", 1)[0]
	o.at = o.at.Add(20 * time.Minute)
	o.book.Replace(set(rules.Rule{Name: "short", Retry: &rules.Retry{Delays: []time.Duration{10 * time.Minute}}}))
	o.apply("", false)
	if l := o.letter(id); !l.DueAt.Equal(o.at) {
		t.Errorf("due %s, now is %s", l.DueAt, o.at)
	}
	o.book.Replace(set(rules.Rule{Name: "long", Retry: &rules.Retry{Delays: []time.Duration{25 * time.Minute}}}))
	o.apply("queue:sms", false)
	if l := o.letter(id); !l.DueAt.Equal(l.ReceivedAt.Add(25 * time.Minute)) {
		t.Errorf("due %s", l.DueAt)
	}
}

// TestApplyByQuery checks that rules can be applied only to the waiting letters that a query
// matches. Letters that match the query but do not wait must be ignored.
func TestApplyByQuery(t *testing.T) {
	t.Parallel()
	o := openRuled(t, set())
	o.wait("sms", 3)
	o.wait("email", 2)
	o.book.Replace(set(rules.Rule{Name: "never", Retry: &rules.Retry{}}))
	for text, want := range map[string]int{"queue:email": 2, "state:dead": 0, "state:scheduled,dead": 5, "": 5} {
		if a := o.apply(text, true); a.Looked != want {
			t.Errorf("%q: %d letters", text, a.Looked)
		}
	}
	_, err := o.desk.Apply(t.Context(), deadletter.Principal{Name: "mallory"}, operation.ApplyRequest{})
	if !errors.Is(err, deadletter.ErrForbidden) {
		t.Errorf("%v", err)
	}
	if _, err := o.desk.Apply(t.Context(), deadletter.Local, operation.ApplyRequest{
		Reason: strings.Repeat("x", 501),
	}); !errors.Is(err, deadletter.ErrInvalid) {
		t.Errorf("%v", err)
	}
}

// stopping is a classifier that cancels the context after a number of batches.
type stopping struct {
	*classify.Classifier
	cancel func()
	after  int
}

func (s *stopping) Applied(list []deadletter.NewDecision) {
	if s.after--; s.after == 0 {
		s.cancel()
	}
	s.Classifier.Applied(list)
}

func TestApplyStopsWithItsCaller(t *testing.T) {
	t.Parallel()
	o := openRuled(t, set())
	o.wait("sms", 450)
	o.book.Replace(set(rules.Rule{Name: "never", Retry: &rules.Retry{}}))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	desk := operation.New(o.store, operation.Options{
		Now: func() time.Time { return o.at }, Decider: &stopping{o.classifier, cancel, 2},
	})
	a, err := desk.Apply(ctx, deadletter.Local, operation.ApplyRequest{})
	if err != nil || !a.Stopped || a.Looked != 400 || a.Changes[0].Letters != 400 {
		t.Errorf("%+v, %v", a, err)
	}
	entries, _, err := o.store.Audit(t.Context(), (query.Query{}).With(query.Action, "rules applied"), "", 10)
	o.must(err)
	if len(entries) != 1 || !strings.Contains(entries[0].Detail, "400 dead") ||
		!strings.HasSuffix(entries[0].Detail, "stopped before the end") {
		t.Errorf("%+v", entries)
	}
	if a := o.apply("", false); a.Looked != 50 || a.Changes[0].Letters != 50 {
		t.Errorf("the rest: %+v", a)
	}
}
