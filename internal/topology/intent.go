package topology

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Intent says which dead letters of a queue dlo should keep.
type Intent string

// These are the values of Intent. IntentFailures is the default.
const (
	IntentFailures Intent = "failures" // keep messages that consumers reject
	IntentAll      Intent = "all"      // also keep messages that expire or overflow
	IntentNever    Intent = "never"    // keep no messages
)

// Intents lists all intents as strings.
var Intents = []string{string(IntentFailures), string(IntentAll), string(IntentNever)}

// IntentOf is the intent for the queues whose names match a glob.
type IntentOf struct {
	Glob   string
	Intent Intent
}

// intentFor returns the intent for a queue. The first glob of the list that matches the queue gives
// the intent.
func intentFor(list []IntentOf, queue string) Intent {
	for _, i := range list {
		if deadletter.Glob(i.Glob, queue, false) {
			return i.Intent
		}
	}
	return IntentFailures
}

// Drop is a queue that drops messages by design, because they expire or because the queue
// overflows. If the queue gets a dead-letter exchange, all of these messages become letters.
type Drop struct {
	Queue  string `json:"queue"`
	Limit  string `json:"limit"`   // for example message-ttl 60000
	PerDay *int64 `json:"per_day"` // expected messages per day, from the current rates; null = unknown
}

// dropOf returns the limits that make a queue drop messages by design. The result "ok" is false if
// there are none.
func dropOf(v *view) (d Drop, ok bool) {
	var limits []string
	for _, limit := range v.droppingLimits() {
		if limit.Key == "message-ttl" || v.reaches(&limit) {
			limits = append(limits, fmt.Sprintf("%s %d", limit.Key, limit.N))
		}
	}
	d = Drop{Queue: v.Name, Limit: strings.Join(limits, ", ")}
	if surplus := v.Rates.Publish.PerSecond - v.Rates.Done(); v.Rates.Publish.PerSecond > 0 && surplus >= 0 {
		d.PerDay = new(int64(math.Round(surplus * 24 * 60 * 60)))
	}
	return d, len(limits) > 0
}

// reaches reports whether a queue probably reaches a length limit in normal operation. It returns
// true if the queue holds at least half as many messages as the limit allows, because a much higher
// limit is only a safeguard. If the number of messages is unknown, a limit counts as reached if it
// is an argument of the queue, and does not count if it comes from a policy.
func (v *view) reaches(limit *Limit) bool {
	if limit.Key == "max-length" && v.Ready.Known {
		return v.Ready.N >= limit.N/2
	}
	return limit.From == FromArgument
}

// DropRule returns the Rule of the plan.
func (p *Plan) DropRule() string {
	if len(p.Drops) == 0 {
		return ""
	}
	names := make([]string, len(p.Drops))
	for i, d := range p.Drops {
		names[i] = compact(d.Queue) // JSON texts are valid YAML
	}
	slices.Sort(names)
	place := ""
	if p.Broker != "" {
		place = fmt.Sprintf("broker: %s, vhost: %s, ", compact(p.Broker), compact(p.VHost))
	}
	return fmt.Sprintf(
		"rules:\n  - name: dropped by design\n    match: {%squeue: [%s], reason: [expired, maxlen]}\n    discard: true\n",
		place, strings.Join(names, ", "),
	)
}
