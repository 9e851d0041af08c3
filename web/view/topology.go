package view

import (
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Fault is a fault that dlo has found in dead-letter paths. It concerns one queue, or several
// queues in the same way.
type Fault struct {
	Severity deadletter.Severity
	Titles   []string // one title for each queue
	Place    string   // the broker and the vhost; "" if there is only one
	Loses    string
	Why      string
	Cure     string
	Likely   bool
	Since    time.Time // when the fault was first seen; zero if unknown
	Fix      string    // the commands that cure the fault, or ""
	Plan     string    // names the plan of Fix in a form; "" if dlo cannot apply the plan
	Queue    string    // the only queue of Plan as PlaceOf encodes it; "" for all queues of the fault
	Policies []PlannedPolicy
	Refused  []Refusal // the queues that no policy can cure
	Drops    []Drop    // the queues that drop messages by design
	Rule     string    // the rule that discards the letters of Drops; "" if Drops is empty
	Sent     int       // letters that dlo sent to a queue with endless redeliveries and that have not settled
	SentURL  string    // the URL of the list of these letters
}

// Refusal is a queue for which a plan contains no policy, and the reason.
type Refusal struct{ Queue, Why string }

// words says why a plan contains no policy for the queue.
func (r Refusal) words() string {
	return "dlo plans no policy for " + queueName(r.Queue) + ": " + line(r.Why, 300) + "."
}

// Drop is a queue that drops messages by design.
type Drop struct {
	Queue  string
	Limit  string
	PerDay int64 // -1 if unknown
}

// words describes the messages that the queue drops now. If dlo changed the policy of the queue,
// all of them would become letters.
func (d Drop) words() string {
	volume := "How many is unknown."
	if d.PerDay >= 0 {
		volume = "Now that is about " + Count(int(d.PerDay)) + " a day."
	}
	return queueName(d.Queue) + " drops messages by design (" + line(d.Limit, 120) + "). All of them become letters. " +
		volume
}

// PathLook says when and how dlo last read the dead-letter paths of one vhost.
type PathLook struct {
	Place  string    // the broker and the vhost
	ReadAt time.Time // zero if dlo has never read the vhost successfully
	// Passive is true if dlo has read the vhost over AMQP, because there is no management API.
	Passive bool
	Failed  string // why dlo could not read the vhost the last time, or ""
	Queues  int
	Gaps    []string
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

// shownTitles returns the titles of a fault for which there is room, and the number of the others.
func (p Fault) shownTitles() ([]string, int) {
	if n := len(p.Titles) - maxFaultTitles; n > 0 {
		return p.Titles[:maxFaultTitles], n
	}
	return p.Titles, 0
}

// icon returns the name of the icon for the severity of a fault, and the tone of the icon.
func (p Fault) icon() (name, tone string) {
	switch p.Severity {
	case deadletter.SeverityPage:
		return "stop", "bad"
	case deadletter.SeverityNotify:
		return "warn", "warn"
	}
	return "info", "faint"
}

// details returns the details of a fault: where it is, what is lost, whether this is certain, and
// when the fault was first seen.
func (p Fault) details(now time.Time) string {
	text := ""
	if p.Place != "" {
		text = line(p.Place, 120) + ". "
	}
	text += "Lost: " + line(p.Loses, 200) + "."
	if p.Likely {
		text += " This is likely, not certain."
	}
	if !p.Since.IsZero() {
		text += " First seen " + When(now, p.Since) + "."
	}
	return text
}

// lookWords says how many queues dlo has checked, and when. If it has checked several vhosts, the
// text names the earliest of the times.
func lookWords(now time.Time, looks []PathLook) string {
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
func wayWords(looks []PathLook) string {
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
func noFaults(looks []PathLook) string {
	for _, l := range looks {
		if l.Failed != "" || len(l.Gaps) > 0 {
			return "dlo found no fault, but could not read everything. It is therefore not known whether a queue loses its dead letters."
		}
	}
	return "No queue loses its dead letters, as far as dlo can see."
}
