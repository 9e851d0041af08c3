package view

import (
	"net/url"
	"strconv"
	"strings"
	"time"
)

// PlannedPolicy is a policy that cures a problem.
type PlannedPolicy struct {
	Queues  int
	Hides   string   // the policy that applies now, or ""
	Changes []string // descriptions of the changes that it makes to keys, and all its keys if it repeats some
}

// AdoptedPolicy is a policy that dlo has set.
type AdoptedPolicy struct {
	ID     int64
	Broker string
	VHost  string
	Name   string
	Queues []string
	At     time.Time
	By     string
}

func (a AdoptedPolicy) id() string { return strconv.FormatInt(a.ID, 10) }

// leavableQueues returns the queues that a form offers to take out of a policy. `dlo topology
// leave` can take out any queue.
func (a AdoptedPolicy) leavableQueues() []string { return a.Queues[:min(len(a.Queues), maxNames)] }

// inVHost returns the broker and the vhost of a policy, encoded for a form.
func (a AdoptedPolicy) inVHost() string {
	return url.Values{"broker": {a.Broker}, "vhost": {a.VHost}}.Encode()
}

func (a AdoptedPolicy) place() string {
	return "vhost " + line(a.VHost, 80) + " of broker " + line(a.Broker, 80)
}

// maxNames is the maximum number of queues of a policy that a page shows.
const maxNames = 12

// firstNames returns the names of the first maxNames queues as text.
func firstNames(queues []string) string {
	shown := make([]string, 0, maxNames)
	for _, q := range queues[:min(len(queues), maxNames)] {
		shown = append(shown, line(q, 120))
	}
	text := strings.Join(shown, ", ")
	if left := len(queues) - maxNames; left > 0 {
		text += " and " + Number(left, "more queue", "more queues")
	}
	return text
}

// applyButton returns the label of the button that sets the policies for a fault.
func (p Fault) applyButton() string {
	queues := 0
	for _, one := range p.Policies {
		queues += one.Queues
	}
	return "Set " + Number(len(p.Policies), "policy", "policies") + " for " + Number(queues, "queue", "queues")
}

// hiddenPolicy describes the policy that applies to the queues until the planned policy is set.
func (p PlannedPolicy) hiddenPolicy() string {
	if p.Hides == "" {
		return "No policy applies to " + Number(p.Queues, "queue", "queues") + " now."
	}
	return "Policy " + line(p.Hides, 120) + " applies to " + Number(p.Queues, "queue", "queues") +
		" now. Its other keys are repeated."
}
