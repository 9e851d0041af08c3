package view

import (
	"slices"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

func TestTheStepsOfATrial(t *testing.T) {
	t.Parallel()
	open := func(p *OperationPage) { p.Tried.Attempt, p.Tried.Letter.Result = nil, deadletter.ResultReleased }
	confirmed := func(f deadletter.QueueFacts) func(*OperationPage) {
		return func(p *OperationPage) {
			p.Tried.Letter.Result, p.Tried.Attempt.Outcome, p.Tried.Attempt.Back, p.Tried.Facts = deadletter.ResultConfirmed, deadletter.OutcomeConfirmed, nil, f
			p.Operation.SentAt, p.Watch = now.Add(-10*time.Second), time.Minute
		}
	}
	watched := "Watched until 09:14:50 UTC"
	for _, c := range []struct {
		name string
		set  func(*OperationPage)
		want []string
	}{
		{"before it is sent", open, []string{"Requested", "Not sent yet"}},
		{"it was skipped", func(p *OperationPage) {
			p.Tried.Attempt, p.Tried.Letter.Result, p.Tried.Letter.Reason = nil, deadletter.ResultSkipped, "it is held"
		}, []string{"Requested", "Not sent"}},
		{"on its way", func(p *OperationPage) {
			confirmed(deadletter.UnknownQueue)(p)
			p.Tried.Letter.Result, p.Tried.Attempt.Outcome = deadletter.ResultReleased, deadletter.OutcomeOpen
		}, []string{"Requested", "Sent", "Not confirmed yet"}},
		{"no such queue", func(p *OperationPage) {
			p.Tried.Letter.Result, p.Tried.Attempt.Outcome, p.Tried.Attempt.Back = deadletter.ResultReturned, deadletter.OutcomeReturned, nil
		}, []string{"Requested", "Sent", "Returned"}},
		{
			"nobody can say",
			confirmed(deadletter.UnknownQueue),
			[]string{"Requested", "Sent", "Confirmed", "Not known whether a consumer has it", watched},
		},
		{
			"no consumer",
			confirmed(deadletter.QueueFacts{Known: true, Exists: true, Ready: 1}),
			[]string{"Requested", "Sent", "Confirmed", "Nobody takes it", watched},
		},
		{
			"behind others",
			confirmed(deadletter.QueueFacts{Known: true, Exists: true, Consumers: 2, Ready: 7}),
			[]string{"Requested", "Sent", "Confirmed", "It may still be in the queue", watched},
		},
		{
			"in work",
			confirmed(deadletter.QueueFacts{Known: true, Exists: true, Consumers: 2, Unacked: 1}),
			[]string{"Requested", "Sent", "Confirmed", "A consumer has it", watched},
		},
		{
			"taken",
			confirmed(deadletter.QueueFacts{Known: true, Exists: true, Consumers: 2}),
			[]string{"Requested", "Sent", "Confirmed", "A consumer has taken it", watched},
		},
		{"quiet", func(p *OperationPage) {
			confirmed(deadletter.UnknownQueue)(p)
			p.Tried.Letter.Result = deadletter.ResultQuiet
		}, []string{"Requested", "Sent", "Confirmed", "Quiet"}},
		{"back", func(*OperationPage) {}, []string{"Requested", "Sent", "Confirmed", "Came back"}},
	} {
		p := sampleTried()
		c.set(&p)
		var got []string
		for _, h := range p.triedSteps(t.Context()) {
			got = append(got, h.Title)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
