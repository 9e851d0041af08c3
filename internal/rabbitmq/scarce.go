package rabbitmq

import (
	"fmt"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

const (
	scarceWait     = time.Hour // how long dlo waits before it takes letters that have one delivery left
	scarceFailures = 3         // number of sessions in a row that settle no window before dlo waits for scarceWait
)

// checkDeliveriesLeft checks how often the letters of a window were delivered before, according to
// x-delivery-count. If this count has reached the delivery limit of the inbox and the delivery is
// lost, the broker deletes the letter.
//
// checkDeliveriesLeft reports when the count of a letter is at least half of the limit. It reports
// again whenever a count is higher than in the last report. On 4.3, a letter keeps the delivery
// count of the queue in which it died.
func (i *Inbox) checkDeliveriesLeft(w []deadletter.Arrival) {
	limit, most := int64(i.facts.limit), int64(0)
	if limit == 0 {
		return
	}
	for k := range w {
		n := w[k].DeliveryCount()
		most = max(most, n)
		i.scarce = i.scarce || n == limit-1
	}
	if 2*most < limit || most <= i.spent {
		return
	}
	i.spent = most
	i.link.recordEvent(deadletter.Problem{
		Kind: deadletter.ProblemNearLimit, Severity: deadletter.SeverityPage, Inbox: i.queue, Queue: i.queue,
		Title: "Letters of inbox " + deadletter.Visible(i.queue) + " have few deliveries left.",
		Text: fmt.Sprintf(
			"A letter came with x-delivery-count %d, and the broker deletes it after %d: each lost connection counts.",
			most, limit,
		),
		Cure: i.facts.cure + ".",
	})
}

// restTime returns how long to wait before the next session. A session uses up one delivery of each
// letter that it receives. If a letter has only one delivery left before the delivery limit, the
// wait is an hour, so that dlo's own sessions do not use up this last delivery.
func (i *Inbox) restTime() time.Duration {
	wait := i.fruitless.next()
	if !i.scarce || i.fruitless.failures <= scarceFailures {
		return wait
	}
	i.say(fmt.Sprintf("sessions end before a letter is stored, and its next delivery is the last one that the delivery limit of %d allows. dlo tries again in an hour. %s", i.facts.limit, i.facts.cure))
	return scarceWait
}

// Missing must be called if letters of the inbox are missing in the broker. If a queue has a
// delivery limit, the broker deletes a letter that was delivered too often, even if dlo has not
// stored this letter yet. Missing reports a problem.
func (i *Inbox) Missing(letters int) {
	i.link.recordEvent(deadletter.Problem{
		Kind: deadletter.ProblemMissing, Severity: deadletter.SeverityPage, Inbox: i.queue, Queue: i.queue,
		Title: "Letters of inbox " + deadletter.Visible(i.queue) + " are missing.",
		Text: fmt.Sprintf(
			"The last delivery of at least %d letters was lost before they were stored, so the broker has deleted them. The setting accept_limited accepts the delivery limit of this inbox.",
			letters,
		),
		Cure: i.facts.cure + ".",
	})
}
