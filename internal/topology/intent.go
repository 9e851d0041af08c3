package topology

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Intent says what should happen to the messages that a queue gives up on.
type Intent string

// These are the intents.
const (
	IntentFailures Intent = "failures" // keep what consumers reject; this is the default
	IntentAll      Intent = "all"      // also keep what expires or overflows
	IntentNever    Intent = "never"    // keep nothing
)

// Intents lists the words for all intents.
var Intents = []string{string(IntentFailures), string(IntentAll), string(IntentNever)}

// IntentOf is the intent for the queues that a glob matches.
type IntentOf struct {
	Glob   string
	Intent Intent
}

// intentFor returns the intent for a queue. The first glob that matches decides.
func intentFor(list []IntentOf, queue string) Intent {
	for _, i := range list {
		if deadletter.Glob(i.Glob, queue, false) {
			return i.Intent
		}
	}
	return IntentFailures
}

// Drop is a queue that drops messages by design: they expire, or the queue overflows. With a
// dead-letter exchange, all of these messages become letters.
type Drop struct {
	Queue  string `json:"queue"`
	Limit  string `json:"limit"`   // for example message-ttl 60000
	PerDay int64  `json:"per_day"` // expected number of messages, from the current rates; -1 = unknown
}

// dropOf returns the limits by which a queue drops messages by design. ok is false if it drops
// none.
func dropOf(v *view) (d Drop, ok bool) {
	var limits []string
	for _, limit := range v.drops() {
		if limit.Key == "message-ttl" || v.reaches(&limit) {
			limits = append(limits, fmt.Sprintf("%s %d", limit.Key, limit.N))
		}
	}
	d = Drop{Queue: v.Name, Limit: strings.Join(limits, ", "), PerDay: -1}
	if surplus := v.Rates.Publish.PerSecond - v.Rates.Done(); v.Rates.Publish.PerSecond > 0 && surplus >= 0 {
		d.PerDay = int64(math.Round(surplus * 24 * 60 * 60))
	}
	return d, len(limits) > 0
}

// reaches reports whether a queue seems to reach a length limit in normal operation. A limit far
// above the number of messages in the queue is only a safeguard. If this number is unknown, a limit
// that is an argument of the queue counts, and a limit of a policy does not.
func (v *view) reaches(limit *Limit) bool {
	if limit.Key == "max-length" && v.Ready.Known {
		return v.Ready.N >= limit.N/2
	}
	return limit.From == FromArgument
}

// Rule returns a rule, as YAML for dlo's configuration. The rule discards the messages that queues
// of the plan drop by design. Rule returns "" if they drop none.
func (p *Plan) Rule() string {
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
	return fmt.Sprintf("rules:\n  - name: dropped by design\n    match: {%squeue: [%s], reason: [expired, maxlen]}\n    discard: true\n", place, strings.Join(names, ", "))
}
