package view

import (
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Fault is a fault of the dead-letter paths. It concerns one queue, or several queues in the same
// way.
type Fault struct {
	Severity deadletter.Severity
	Titles   []string // one title for each queue
	Place    string   // broker and vhost; "" if there is only one
	Loses    string
	Why      string
	Cure     string
	Likely   bool
	Since    time.Time // zero = unknown
	Fix      string    // commands that cure the fault; "" = there are none
	Plan     string    // identifies the plan of Fix in a form; "" = dlo cannot apply it
	Queue    string    // the only queue of Plan, as PlaceOf encodes it; "" = all queues of the fault
	Policies []PlannedPolicy
	Refused  []Refusal // queues that no policy can cure
	Drops    []Drop    // queues that drop messages by design
	Rule     string    // rule that discards the letters of Drops; "" = Drops is empty
	Sent     int       // letters that dlo sent to the queue of a storm, and that have not settled
	SentURL  string    // their list
}

// Refusal is a queue that a plan leaves alone.
type Refusal struct{ Queue, Why string }

// words says why a plan leaves the queue alone.
func (r Refusal) words() string {
	return "dlo plans no policy for " + queueName(r.Queue) + ": " + line(r.Why, 300) + "."
}

// Drop is a queue that drops messages by design.
type Drop struct {
	Queue  string
	Limit  string
	PerDay int64 // -1 = unknown
}

// words describes the letters that dlo receives if the queue is adopted.
func (d Drop) words() string {
	volume := "How many is unknown."
	if d.PerDay >= 0 {
		volume = "Now that is about " + Count(int(d.PerDay)) + " a day."
	}
	return queueName(d.Queue) + " drops messages by design (" + line(d.Limit, 120) + "). All of them become letters. " + volume
}

// PathLook is the latest look at the dead-letter paths of one vhost.
type PathLook struct {
	Place  string    // broker and vhost
	ReadAt time.Time // zero = no look has succeeded
	// Passive means that dlo looks over AMQP, because there is no management API.
	Passive bool
	Failed  string // why the latest look failed; "" = it did not fail
	Queues  int
	Gaps    []string
}

// These constants limit the problems on the page. dlo topology check lists all of them.
const (
	MaxFaults      = 10
	maxFaultTitles = 6
	maxFix         = 3000 // bytes
	maxDrops       = 3
	maxRefused     = 3
	maxRule        = 500 // maximum bytes; dlo topology plan prints longer ones
)

// shownTitles returns the titles of a problem for which there is room, and the number of the
// others.
func (p Fault) shownTitles() ([]string, int) {
	if n := len(p.Titles) - maxFaultTitles; n > 0 {
		return p.Titles[:maxFaultTitles], n
	}
	return p.Titles, 0
}

// icon returns the name of the icon for the severity of a problem, and its tone.
func (p Fault) icon() (name, tone string) {
	switch p.Severity {
	case deadletter.SeverityPage:
		return "stop", "bad"
	case deadletter.SeverityNotify:
		return "warn", "warn"
	}
	return "info", "faint"
}

// facts returns the details of a problem: the place, the loss, the certainty, and when it was first
// seen.
func (p Fault) facts(now time.Time) string {
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

// looked returns words for the time at which the paths were last examined, and for the number of
// queues.
func looked(now time.Time, looks []PathLook) string {
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
	return Number(queues, "queue", "queues") + " checked " + When(now, oldest) + " " + ways(looks)
}

// ways says how dlo looked at the vhosts.
func ways(looks []PathLook) string {
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

// These say how dlo read a broker.
const (
	throughAPI = "through the management API"
	overAMQP   = "over AMQP"
)

// noFaults is shown if there is no fault. A look that read only a part proves nothing.
func noFaults(looks []PathLook) string {
	for _, l := range looks {
		if l.Failed != "" || len(l.Gaps) > 0 {
			return "dlo found no fault, but could not read everything. It is therefore not known whether a queue loses its dead letters."
		}
	}
	return "No queue loses its dead letters, as far as dlo can see."
}
