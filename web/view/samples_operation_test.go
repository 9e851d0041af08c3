package view

import (
	"net/url"
	"time"

	"github.com/a-h/templ"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

func sampleConfirm(v deadletter.Verb) ConfirmPage {
	p := ConfirmPage{
		Shell:   sampleShell("Requeue", SectionLetters, "/letters/confirm"),
		Key:     "c0ffee",
		Return:  LettersURL("state:dead", "", ""),
		Restore: "for 7 days",
		Plan: deadletter.Plan{
			Action:   v,
			Total:    135,
			Eligible: 133,
			Pace:     deadletter.Pace{Hold: 10 * time.Second},
			Queues: []deadletter.PlanQueue{
				{
					Broker: "main", VHost: "/", Queue: "webhook-queue", Target: "webhook-queue", Letters: 120,
					Facts: deadletter.QueueFacts{Known: true, Exists: true, Consumers: 4, Ready: 6},
				},
				{
					Broker: "main", VHost: "/", Queue: "sms-queue", Target: "sms-queue", Letters: 10,
					Facts: deadletter.UnknownQueue,
				},
				{
					Broker: "main", VHost: "/", Queue: "old-queue", Target: "old-queue", Letters: 3,
					Facts:   deadletter.QueueFacts{Known: true},
					Warning: "The queue does not exist: these letters will be held as “no target”.",
				},
			},
			Skipped: []deadletter.PlanSkip{
				{
					Reason:   "already requeued, being watched",
					Letters:  2,
					Examples: []deadletter.ID{sampleID(1), sampleID(2)},
				},
				{
					Reason: "operation O-74 has it", Letters: 6, Operation: 74, Halted: deadletter.OperationStopped,
					HaltedAt: now.Add(-time.Hour),
				},
			},
		},
		Typed: url.Values{
			"canary": {"10"}, "wait": {"2m"}, "rate": {"50"}, "stop_at": {"5"}, "order": {"oldest"},
		},
	}
	for i := range 135 {
		p.IDs = append(p.IDs, sampleID(i))
	}
	return p
}

// sampleConfirmAll returns the confirm page for letters that a query selects.
func sampleConfirmAll(v deadletter.Verb) ConfirmPage {
	p := sampleConfirm(v)
	p.IDs, p.Query, p.Until, p.Except = nil, sampleLetters().All.Query, now, []deadletter.ID{sampleID(3)}
	p.Total, p.Eligible, p.Causes, p.Pace.Canary = 1340, 1338, 4, 10
	p.Queues[0].Letters = 1325
	p.Warnings = []string{"1,284 of these came back after a requeue on 17 November."}
	return p
}

// sampleTried returns the page of an operation that requeued one letter. This letter came back.
func sampleTried() OperationPage {
	p := sampleOperation(deadletter.OperationDone, deadletter.VerbRequeue)
	o := &p.Operation
	o.Total, o.Counts, o.Queues = 1, map[deadletter.Result]int{deadletter.ResultCameBack: 1}, nil
	p.Tried = &Tried{
		Letter: deadletter.OperationLetter{
			Letter: sampleID(0), Queue: "email-queue", Result: deadletter.ResultCameBack, State: deadletter.StateDead,
			Error: `template "welcome_v3" not found`, Group: 418, Was: 418,
		},
		Attempt: &deadletter.Attempt{
			Number: 3, Queue: "email-queue", Operation: o.ID, Outcome: deadletter.OutcomeCameBack,
			At: o.CreatedAt.Add(10 * time.Second), ClosedAt: o.CreatedAt.Add(10*time.Second + 4*time.Millisecond),
			Back: &deadletter.Return{At: o.CreatedAt.Add(12 * time.Second), Queue: "email-queue", Reason: "rejected"},
		},
	}
	return p
}

func sampleOperation(state deadletter.OperationState, action deadletter.Verb) OperationPage {
	counts := func(good, failed, skipped, back, pending int) map[deadletter.Result]int {
		done := deadletter.ResultConfirmed
		if action != deadletter.VerbRequeue {
			done = deadletter.ResultChanged
		}
		return map[deadletter.Result]int{
			done: good, deadletter.ResultFailed: failed, deadletter.ResultSkipped: skipped,
			deadletter.ResultCameBack: back, deadletter.ResultPending: pending,
		}
	}
	o := deadletter.Operation{
		ID:        77,
		Action:    action,
		State:     state,
		Phase:     deadletter.PhaseSending,
		By:        "local",
		Through:   "page",
		Reason:    "endpoints restored by vendor",
		CreatedAt: now.Add(-62 * time.Second),
		Total:     1341,
		Counts:    counts(803, 3, 3, 3, 529),
		Query:     sampleLetters().All.Query,
		Except:    1,
		Changed:   2,
		Twice:     1,
		Pace: deadletter.Pace{
			Rate: 20, Canary: 10, CanaryWait: 2 * time.Minute, StopAt: 5, MaxDepth: 10_000, Hold: 10 * time.Second,
		},
		Queues: []deadletter.OperationQueue{
			{Broker: "main", VHost: "/", Queue: "webhook-queue", Counts: counts(749, 3, 3, 3, 526)},
			{Broker: "main", VHost: "/", Queue: "sms-queue", Counts: counts(54, 0, 0, 0, 3)},
		},
	}
	if !state.Active() {
		o.FinishedAt, o.Phase = now.Add(-5*time.Second), deadletter.PhaseOver
	}
	recent := o
	recent.ID, recent.State, recent.Action, recent.FinishedAt, recent.Phase = 76, deadletter.OperationDone, deadletter.VerbDiscard, now.Add(-time.Hour), deadletter.PhaseOver
	recent.CreatedAt, recent.Counts, recent.Total = now.Add(-20*time.Hour), map[deadletter.Result]int{
		deadletter.ResultChanged: 23,
	}, 23
	p := OperationPage{
		Shell:       sampleShell("Operation O-77", SectionOperations, "/operations/O-77"),
		Operation:   o,
		Next:        "x",
		Recent:      []deadletter.Operation{recent},
		Watch:       10 * time.Minute,
		NewFailures: 12,
		NewExact:    true,
		Result:      deadletter.ResultFailed,
		Letters: []deadletter.OperationLetter{
			{
				Letter: sampleID(1), Queue: "webhook-queue", Result: deadletter.ResultFailed,
				Reason: "no confirm within 30 s",
			},
			{
				Letter: sampleID(2), Queue: "webhook-queue", Result: deadletter.ResultFailed,
				Reason: "the body is larger than 16 MiB", Twice: true,
			},
		},
	}
	return p
}

// sampleReturns returns letters that came back. There is one for every way in which an error is
// described.
func sampleReturns() []deadletter.OperationLetter {
	back := deadletter.OperationLetter{Queue: "webhook-queue", Result: deadletter.ResultCameBack, Reason: "rejected"}
	same, other, unread := back, back, back
	same.Letter, same.State, same.DueAt, same.Error, same.Group, same.Was = sampleID(
		3,
	), deadletter.StateScheduled, now.Add(
		5*time.Minute,
	), "Timeout: no answer within 30 s", 418, 418
	other.Letter, other.State, other.Error, other.Group, other.Was = sampleID(
		4,
	), deadletter.StateDead, "NoSuchTemplate: there is no template welcome_v3", 7, 418
	unread.Letter, unread.State = sampleID(5), deadletter.StateReceived
	return []deadletter.OperationLetter{same, other, unread}
}

// samplePhases returns the page of an operation in every phase that looks different.
func samplePhases() map[string]templ.Component {
	all := map[string]templ.Component{}
	away := sampleOperation(deadletter.OperationRunning, deadletter.VerbRequeue)
	away.Operation.Away, away.OnTheWay, away.Operation.Phase = sampleAway, 2, deadletter.PhaseCanary
	away.Operation.Counts[deadletter.ResultReleased], away.Result = 10, deadletter.ResultReleased
	away.Letters = []deadletter.OperationLetter{
		{Letter: sampleID(1), Queue: "sms-queue", Result: deadletter.ResultReleased, State: deadletter.StateScheduled},
		{Letter: sampleID(2), Queue: "sms-queue", Result: deadletter.ResultReleased, State: deadletter.StatePublishing},
	}
	all["operation-away"] = Operation(away)
	phase := func(name string, change func(p *OperationPage)) {
		p := sampleOperation(deadletter.OperationRunning, deadletter.VerbRequeue)
		p.NewFailures, p.Operation.Twice = -1, 0
		change(&p)
		all["operation-"+name] = Operation(p)
	}
	all["operation-tried"] = Operation(sampleTried())
	fresh := map[deadletter.Result]int{deadletter.ResultPending: 1341}
	phase("holding", func(p *OperationPage) {
		p.Operation.Phase, p.Operation.PhaseUntil, p.Operation.Counts, p.Letters, p.Result = deadletter.PhaseHolding, now.Add(
			8*time.Second,
		), fresh, nil, deadletter.ResultPending
		p.Operation.Queues = []deadletter.OperationQueue{
			{Broker: "main", VHost: "/", Queue: "webhook-queue", Counts: fresh},
		}
	})
	phase("canary-watched", func(p *OperationPage) {
		p.Operation.Phase, p.Operation.PhaseUntil = deadletter.PhaseWaiting, now.Add(84*time.Second)
		p.Operation.Counts, p.Letters = map[deadletter.Result]int{
			deadletter.ResultPending: 1331, deadletter.ResultConfirmed: 10,
		}, nil
		p.Result = deadletter.ResultConfirmed
	})
	phase("looks-again", func(p *OperationPage) { p.Refresh = LookEvery })
	phase("waits", func(p *OperationPage) { p.Operation.Why = "webhook-queue has more than 10,000 ready" })
	phase("paused", func(p *OperationPage) {
		p.Operation.State = deadletter.OperationPaused
		p.RateTyped, p.RateMistake = "fast", "a rate is a number above 0, for example 50"
	})
	phase("stopped-itself", func(p *OperationPage) {
		p.Operation.State, p.Operation.Why = deadletter.OperationStopped, "6.2% of 813 came back, more than 5%"
	})
	over := map[deadletter.Result]int{
		deadletter.ResultQuiet: 1335, deadletter.ResultUnverified: 3, deadletter.ResultCameBack: 3,
	}
	phase("watching", func(p *OperationPage) {
		p.Operation.Phase, p.Operation.SentAt = deadletter.PhaseWatching, now.Add(-4*time.Minute)
		p.Operation.Counts = map[deadletter.Result]int{deadletter.ResultConfirmed: 1338, deadletter.ResultCameBack: 3}
		p.Result, p.Letters = deadletter.ResultCameBack, sampleReturns()
	})
	phase("over", func(p *OperationPage) {
		p.Operation.State, p.Operation.Phase, p.Operation.FinishedAt, p.Operation.Counts = deadletter.OperationDone, deadletter.PhaseOver, now.Add(-time.Minute), over
		p.Result, p.Letters, p.Next = deadletter.ResultCameBack, sampleReturns(), ""
		p.BackGroups = []deadletter.BackGroup{
			{Group: 7, Title: "NoSuchTemplate: there is no template welcome_v3", Letters: 2},
			{Group: 418, Title: "Timeout: no answer within 30 s", Letters: 1, Same: true},
		}
		p.Groups = []deadletter.GroupRow{
			{ID: 7, Title: "NoSuchTemplate: there is no template welcome_v3", Queue: "webhook-queue", Count: 2},
			{ID: 418, Title: "Timeout: no answer within 30 s", Queue: "webhook-queue"},
			{ID: 419, Title: "Refused", Queue: "webhook-queue", Waiting: 1},
			{ID: 420, Title: "Reset", Queue: "webhook-queue", Status: deadletter.GroupResolved},
			{ID: 421, Title: "Not found", Queue: "webhook-queue"},
		}
		p.Operation.Counts[deadletter.ResultSkipped] = 6
		p.From = "/letters?q=queue%3Awebhook-queue"
	})
	phase("discarded", func(p *OperationPage) {
		p.Operation.Action, p.Operation.State, p.Operation.Phase, p.Operation.FinishedAt = deadletter.VerbDiscard, deadletter.OperationDone, deadletter.PhaseOver, now
		p.Operation.Counts, p.Result, p.Letters = map[deadletter.Result]int{
			deadletter.ResultChanged: 1341,
		}, deadletter.ResultChanged, nil
		p.Undoable, p.UndoExact = 1300, true
	})
	phase("cancelled", func(p *OperationPage) {
		p.Operation.State, p.Operation.Phase, p.Operation.FinishedAt = deadletter.OperationCancelled, deadletter.PhaseOver, now
		p.Operation.Total, p.Operation.Counts = 40, map[deadletter.Result]int{
			deadletter.ResultCameBack: 10, deadletter.ResultCancelled: 30,
		}
		p.Operation.Queues, p.Letters = p.Operation.Queues[:1], nil
	})
	phase("purged", func(p *OperationPage) {
		p.Operation.Action, p.Operation.State, p.Operation.Phase, p.Operation.FinishedAt = deadletter.VerbPurge, deadletter.OperationDone, deadletter.PhaseOver, now
		p.Operation.Counts, p.Result, p.Letters, p.Operation.Query = map[deadletter.Result]int{
			deadletter.ResultChanged: 1341,
		}, deadletter.ResultChanged, nil, ""
	})
	return all
}

func sampleOperations() OperationsPage {
	p := sampleOperation(deadletter.OperationRunning, deadletter.VerbRequeue)
	cancelled := p.Operation
	cancelled.ID, cancelled.State, cancelled.Phase, cancelled.FinishedAt = 75, deadletter.OperationCancelled, deadletter.PhaseOver, now
	return OperationsPage{
		Shell:      sampleShell("Operations", SectionOperations, "/operations"),
		Operations: append([]deadletter.Operation{p.Operation, cancelled}, p.Recent...), Older: 75, First: true,
	}
}
