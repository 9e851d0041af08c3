package view

import (
	"slices"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/topology"
)

// Fault is a fault that dlo has found in dead-letter paths.
type Fault struct {
	Same    []topology.Finding // at least one; they differ only in the queue
	Plan    topology.Plan      // the plan that cures the fault, or the reasons why not
	Sum     string             // identifies the plan in a form; "" if dlo cannot apply it
	Queue   string             // the only queue of Plan as PlaceOf encodes it; "" for all queues of the fault
	Sent    int                // letters that dlo sent to a queue with endless redeliveries and that have not settled
	SentURL string             // the URL of the list of these letters
}

func pathPlace(broker, vhost string) string { return line(broker+", vhost "+vhost, 120) }

// dropWords describes the messages that a queue drops now. If dlo changed the policy of the queue,
// all of them would become letters.
func dropWords(d topology.Drop) string {
	volume := "How many is unknown."
	if d.PerDay != nil {
		volume = "Now that is about " + Count(int(*d.PerDay)) + " a day."
	}
	return queueName(d.Queue) + " drops messages by design (" + line(d.Limit, 120) + "). All of them become letters. " +
		volume
}

// These constants limit the faults on the page. `dlo topology check` lists all of them.
const (
	MaxFaults      = 10
	maxFaultTitles = 6
	maxFix         = 3000 // in bytes
	maxDrops       = 3
	maxRefused     = 3
	maxRule        = 500 // in bytes; `dlo topology plan` prints longer ones
)

// fix returns the commands that cure a fault, or "".
func (p Fault) fix() string {
	if p.Sum == "" {
		return ""
	}
	return topology.Render([]topology.Plan{p.Plan}, topology.FormCommands)
}

// icon returns the name of the icon for the severity of a fault, and the tone of the icon.
func (p Fault) icon() (name, tone string) {
	switch p.Same[0].Severity {
	case deadletter.SeverityPage:
		return "stop", "bad"
	case deadletter.SeverityNotify:
		return "warn", "warn"
	}
	return "info", "faint"
}

// details returns the details of a fault: where it is, what is lost, whether this is certain, and
// when the fault was first seen.
func (p Fault) details(now time.Time, withPlace bool) string {
	text, f := "", p.Same[0]
	if withPlace {
		text = pathPlace(f.Broker, f.VHost) + ". "
	}
	text += "Lost: " + line(f.Loses, 200) + "."
	if f.Sure == topology.Likely {
		text += " This is likely, not certain."
	}
	for _, one := range p.Same {
		if one.Since.Before(f.Since) {
			f.Since = one.Since
		}
	}
	if !f.Since.IsZero() {
		text += " First seen " + When(now, f.Since) + "."
	}
	return text
}

// lookWords says how many queues dlo has checked, and when. If it has checked several vhosts, the
// text names the earliest of the times.
func lookWords(now time.Time, looks []topology.Report) string {
	queues, oldest := 0, time.Time{}
	for _, l := range looks {
		queues += l.Queues
		if !l.ReadAt.IsZero() && (oldest.IsZero() || l.ReadAt.Before(oldest)) {
			oldest = l.ReadAt
		}
	}
	if oldest.IsZero() {
		return ""
	}
	return Number(queues, "queue", "queues") + " checked " + When(now, oldest) + " " + wayWords(looks)
}

// wayWords says how dlo has read the vhosts: through the management API, over AMQP, or both.
func wayWords(looks []topology.Report) string {
	api, passive := false, false
	for _, l := range looks {
		api, passive = api || !l.Passive && !l.ReadAt.IsZero(), passive || l.Passive && !l.ReadAt.IsZero()
	}
	switch {
	case api && passive:
		return throughAPI + " and over AMQP"
	case passive:
		return overAMQP
	}
	return throughAPI
}

// These texts say how dlo read a broker.
const (
	throughAPI = "through the management API"
	overAMQP   = "over AMQP"
)

// noFaults returns the sentence for a page without faults. If dlo could read only a part of a
// vhost, the sentence does not say that there is no fault.
func noFaults(looks []topology.Report) string {
	if slices.ContainsFunc(looks, func(l topology.Report) bool { return l.Failed != "" || len(l.Gaps) > 0 }) {
		return "dlo found no fault, but could not read everything. It is therefore not known whether a queue loses its dead letters."
	}
	return "No queue loses its dead letters, as far as dlo can see."
}
