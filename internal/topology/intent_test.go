package topology_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/topology"
)

// droppingSite returns a vhost that has queues without a dead-letter exchange. One of these queues
// drops no messages. The others drop messages by design, for example because the messages expire
// there.
func droppingSite() *topology.Snapshot {
	s := site("4.3.6")
	s.Policies = nil
	s.Queues = append(
		s.Queues, classic("metrics.cpu", "x-message-ttl", 60000), classic("audit", "x-max-length", 10),
		classic("full", "x-max-length", 10, "x-overflow", "reject-publish"),
	)
	s.Queues = append(s.Queues, classic("busy"), classic("idle"))
	s.Policies = []topology.Policy{policy("caps", "^(busy|idle|orders)$", 0, "max-length", 1000)}
	s.Queues = append(s.Queues, classic("auto", "x-message-ttl", 60000), classic("get", "x-message-ttl", 60000))
	for i := range s.Queues {
		switch s.Queues[i].Name {
		case "auto": // consumers acknowledge automatically
			s.Queues[i].Rates = topology.Rates{
				Publish:      topology.Rate{PerSecond: 100},
				DeliverNoAck: topology.Rate{PerSecond: 99},
			}
		case "get":
			s.Queues[i].Rates = topology.Rates{
				Publish:  topology.Rate{PerSecond: 100},
				GetNoAck: topology.Rate{PerSecond: 100},
			}
		case "busy":
			s.Queues[i].Ready = topology.Figure{N: 990, Known: true}
		case "idle":
			s.Queues[i].Ready = topology.Figure{N: 3, Known: true}
		}
	}
	s.Queues[2].Rates = topology.Rates{Publish: topology.Rate{PerSecond: 3}, Ack: topology.Rate{PerSecond: 1}}
	return s
}

// TestWhatAQueueDropsByDesign makes a plan for queues that drop messages by design, because the
// messages expire or because the queue overflows. The plan must estimate the number of letters from
// these queues, and propose the rule that discards them.
func TestWhatAQueueDropsByDesign(t *testing.T) {
	want := topology.Want{
		Queues:   []string{"orders", "metrics.cpu", "audit", "full", "busy", "idle", "auto", "get"},
		Exchange: "dlo.dlx",
	}
	p := topology.MakePlan(droppingSite(), want)
	var got []string
	for _, d := range p.Drops {
		perDay := "unknown"
		if d.PerDay != nil {
			perDay = fmt.Sprint(*d.PerDay)
		}
		got = append(got, fmt.Sprintf("%s %s %s", d.Queue, d.Limit, perDay))
	}
	slices.Sort(got)
	if want := []string{
		"audit max-length 10 unknown", "auto message-ttl 60000 86400", "busy max-length 1000 unknown", "get message-ttl 60000 0",
		"metrics.cpu message-ttl 60000 172800",
	}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if rule := p.Rule; !strings.Contains(
		rule,
		`match: {broker: "main", vhost: "/", queue: ["audit", "auto", "busy", "get", "metrics.cpu"], reason: [expired, maxlen]}`,
	) {
		t.Errorf("%s", rule)
	}
	want.Intents = []topology.IntentOf{
		{Glob: "audit", Intent: topology.IntentAll},
		{Glob: "busy", Intent: topology.IntentAll},
		{Glob: "auto", Intent: topology.IntentAll},
		{Glob: "get", Intent: topology.IntentAll},
		{Glob: "metrics.*", Intent: topology.IntentNever},
	}
	p = topology.MakePlan(droppingSite(), want)
	if len(p.Drops) > 0 || p.Rule != "" || len(p.Refused) != 1 || p.Refused[0].Queue != "metrics.cpu" {
		t.Errorf("with intents: %+v", p)
	}
}

// TestAQueueOfWhichNothingIsKept covers a queue with the intent "never". The queue causes no
// finding and is shown as healthy. A plan includes it only if somebody names it, and then refuses
// it.
func TestAQueueOfWhichNothingIsKept(t *testing.T) {
	o := topology.Options{
		Inboxes: []string{"dlo.letters"},
		Intents: []topology.IntentOf{
			{Glob: "metrics.*", Intent: topology.IntentNever},
			{Glob: "*", Intent: topology.IntentAll},
		},
	}
	r := topology.ReportOn(droppingSite(), o)
	for _, f := range r.Findings {
		if f.Queue == "metrics.cpu" {
			t.Errorf("%s", findingText(f))
		}
	}
	for _, d := range r.All {
		if lost := d.Route.Lost != ""; lost == strings.HasPrefix(d.Name, "metrics") && !d.Own {
			t.Errorf("%s: lost: %q", d.Name, d.Route.Lost)
		}
	}
}
