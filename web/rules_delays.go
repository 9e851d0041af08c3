package web

import (
	"cmp"
	"strings"

	"github.com/deadletteroffice/dlo/internal/rules"
	"github.com/deadletteroffice/dlo/web/view"
)

const delaysSaid = 6 // the maximum number of delays shown per rule; a single further delay is shown instead of "1 more"

// delaysOf returns one line with the delays before the retries of a rule. The line applies to
// letters that died for the given reason. Each delay includes its jitter, and the line ends with
// the final outcome: "9 s to 11 s, 1 h, then dead: page".
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
