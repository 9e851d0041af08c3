package topology

import (
	"slices"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// checkCycles reports circles of queues in which messages go round without any consumer: they
// expire or overflow from each queue into the next. The broker drops a message that comes to the
// same queue a second time if no consumer rejected it on the way (measured on 3.10.8, 4.0.5,
// 4.3.6).
func (in *inspector) checkCycles() {
	done := map[string]bool{}
	for _, v := range in.all {
		round := in.roundTrip(v, (*view).dropsAutomatically, (*view).certainQueues)
		if round == nil || done[v.Name] || in.retries(round) {
			continue
		}
		for _, name := range round {
			done[name] = true
		}
		in.add(Finding{
			Kind: Cycle, Queue: v.Name, Others: round[1 : len(round)-1],
			Title: "Expired messages go in a circle: " + withArrows(round),
			Loses: "messages that go round once without being rejected",
			Why:   "The broker drops a message that dead-letters into a queue a second time if no consumer rejected it on the way. It reports nothing to the publisher.",
			Cure:  "Let the expired messages of one of these queues go to a queue outside the circle.",
		})
	}
}

// retries reports whether a circle of queues is a retry by time-to-live, which checkRecipe reports.
// In such a circle, messages expire in every queue except one. Messages leave this last queue
// because a consumer rejects them, or because the queue has reached its length limit.
func (in *inspector) retries(round []string) bool {
	stay := 0
	for _, name := range round[1:] {
		if _, ttl := in.views[name].Least("message-ttl"); !ttl {
			stay++
		}
	}
	return stay == 1 && len(round) > 2
}

// dropsAutomatically reports whether messages leave a queue as dead letters although no consumer
// rejects them. This happens if messages expire, or if there are too many of them. It returns false
// for dlo's own queues. The definition of such a queue does not show where its letters go when they
// expire, because the routing key of each letter is the name of its origin queue.
func (v *view) dropsAutomatically() bool {
	if deadletter.OwnQueue(v.Name) || v.isFederation() {
		return false
	}
	return len(v.droppingLimits()) > 0
}

// certainQueues returns the queues that dead letters certainly reach. It leaves out a queue if only
// messages with a guessed routing key reach it.
func (v *view) certainQueues() []string {
	return slices.DeleteFunc(slices.Clone(v.Queues), func(q string) bool { return slices.Contains(v.Guessed, q) })
}

// roundTrip returns the shortest path on which dead letters of a queue come back to that queue. The
// path is a list of queue names, and its first and last name are the name of that queue. The result
// is nil if there is no such path. The path contains only queues for which the parameter "step"
// returns true. The parameter "successors" returns the queues that come after a queue.
func (in *inspector) roundTrip(from *view, step func(*view) bool, successors func(*view) []string) []string {
	if !step(from) {
		return nil
	}
	before := map[string]string{}
	for next := []*view{from}; len(next) > 0; next = next[1:] {
		v := next[0]
		for _, name := range successors(v) {
			if name == from.Name {
				round := []string{name}
				for at := v.Name; at != from.Name; at = before[at] {
					round = append(round, at)
				}
				round = append(round, from.Name)
				slices.Reverse(round)
				return round
			}
			if _, seen := before[name]; seen || in.views[name] == nil || !step(in.views[name]) {
				continue
			}
			before[name] = v.Name
			next = append(next, in.views[name])
		}
	}
	return nil
}

// checkRecipe reports a queue that retries its messages through other queues with a time-to-live.
// If a consumer rejects a message, the message waits in these other queues until it expires there,
// and then returns to the queue of the consumer.
func (in *inspector) checkRecipe(v *view) {
	if _, ttl := v.Least("message-ttl"); ttl || v.isFederation() || len(v.Queues) == 0 {
		return
	}
	round := in.roundTrip(
		v, func(at *view) bool { _, ttl := at.Least("message-ttl"); return at == v || ttl },
		func(at *view) []string { return at.Queues },
	)
	if len(round) < 3 {
		return
	}
	sure := Certain
	for i, name := range round[:len(round)-1] {
		if slices.Contains(in.views[name].Guessed, round[i+1]) {
			sure = Likely
		}
	}
	var wait time.Duration
	for _, name := range round[1 : len(round)-1] {
		ttl, _ := in.views[name].Least("message-ttl")
		wait += time.Duration(ttl.N) * time.Millisecond
	}
	why := textf(
		"A rejected message returns after %s: %s. The delay is the same each time, and nothing ends the retries but the consumer.",
		wait, withArrows(round),
	)
	if v.dropsAutomatically() {
		why += " A message that the length limit of the queue pushes out goes the same way once, and is dropped the second time."
	}
	in.add(Finding{
		Kind: RetryRecipe, Queue: v.Name, Others: round[1 : len(round)-1], Sure: sure,
		cause: withArrows(round[1 : len(round)-1]),
		Title: textf("%s retries through %s", v.Name, withArrows(round[1:len(round)-1])),
		Loses: "nothing, as long as the consumer counts x-death and stops",
		Why:   why,
		Cure:  "dlo can take over: dead-letter the queue to dlo, and give it a rule with growing delays and a last attempt. docs/adopting.md has the steps.",
	})
}

// withArrows returns the names of queues as one text, with an arrow between each two.
func withArrows(list []string) string { return joinNames(list, " → ") }
