package web

import (
	"cmp"
	"strings"

	"github.com/deadletteroffice/dlo/internal/rules"
	"github.com/deadletteroffice/dlo/web/view"
)

const delaysSaid = 6 // of a rule; one more is said as well, rather than that there is one

// delaysOf says in a line when letters of a reason are retried by a rule of a set, each delay with
// what jitter makes of it, and what becomes of them then: "9 s to 11 s, 1 h, then dead: page".
func delaysOf(set *rules.Set, rule *rules.Rule, reason string) string {
	if rule.Discard {
		return "discarded at once"
	}
	dead := "dead"
	if severity := cmp.Or(rule.Severity, set.Default.Severity); severity != "" {
		dead += ": " + string(severity)
	}
	retry := set.Retries(rule, reason)
	count := retry.Count()
	if count == 0 {
		return "no retry, " + dead
	}
	said := count
	if count > delaysSaid+1 {
		said = delaysSaid
	}
	parts := make([]string, 0, said+1)
	for n := range said {
		low, high := retry.Band(n)
		text := view.Duration(low)
		if high := view.Duration(high); high != text {
			text += " to " + high
		}
		parts = append(parts, text)
	}
	if said < count {
		parts = append(parts, view.Count(count-said)+" more")
	}
	return strings.Join(parts, ", ") + ", then " + dead
}
