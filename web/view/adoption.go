package view

import (
	"net/url"
	"strings"

	"github.com/deadletteroffice/dlo/internal/topology"
)

// vhostOf returns a broker and a vhost, encoded for a form.
func vhostOf(broker, vhost string) string {
	return url.Values{"broker": {broker}, "vhost": {vhost}}.Encode()
}

// maxNames is the maximum number of queues of a policy that a page shows, or offers to take out of
// it. `dlo topology leave` can take out any queue.
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
	return "Set " + Number(len(p.Plan.Policies), "policy", "policies") + " for " +
		Number(len(p.Plan.Queues()), "queue", "queues")
}

// hiddenPolicy describes the policy that applies to the queues until the planned policy is set.
func hiddenPolicy(p topology.Planned) string {
	queues := Number(len(p.Queues), "queue", "queues")
	if p.Hides == "" {
		return "No policy applies to " + queues + " now."
	}
	return "Policy " + line(p.Hides, 120) + " applies to " + queues + " now. Its other keys are repeated."
}
