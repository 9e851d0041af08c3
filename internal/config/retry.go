package config

import (
	"slices"
	"time"

	"github.com/deadletteroffice/dlo/internal/rules"
	"go.yaml.in/yaml/v3"
)

const (
	maxAttempts   = 10_000
	maxFactor     = 1000
	defaultFactor = 2
)

// laterWaiters are the waiters that are not in this version.
var laterWaiters = []string{"wait-queue", "message-ttl", "delayed-exchange"}

// retry reads a back-off into r and says whether the file has one: delays, or a first one that grows.
func (d *decoder) retry(n *yaml.Node, path string, r *rules.Retry) bool {
	at := map[string]*yaml.Node{}
	keep := func(key string, read func(n *yaml.Node)) func(n *yaml.Node) {
		return func(n *yaml.Node) { at[key] = n; read(n) }
	}
	grown := rules.Retry{Factor: defaultFactor}
	d.mapping(n, path, keys{
		"delays": keep("delays", func(n *yaml.Node) {
			r.Delays = nil
			if n.Tag == "!!null" {
				d.mistake(n, "a list is wanted here, such as [10s, 1m]; [] is no retry at all")
			}
			d.list(n, func(n *yaml.Node) {
				var delay time.Duration
				d.duration(n, &delay, 0, rules.MaxDelay)
				r.Delays = append(r.Delays, delay)
			})
		}),
		"attempts": keep("attempts", func(n *yaml.Node) { d.whole(n, &grown.Attempts, 0, maxAttempts) }),
		"first":    keep("first", func(n *yaml.Node) { d.duration(n, &grown.First, 0, rules.MaxDelay) }),
		"factor":   keep("factor", func(n *yaml.Node) { d.number(n, &grown.Factor, 1, maxFactor) }),
		"max":      keep("max", func(n *yaml.Node) { d.duration(n, &grown.Max, time.Millisecond, rules.MaxDelay) }),
		"jitter":   func(n *yaml.Node) { d.number(n, &r.Jitter, 0, 1) },
		"waiter":   func(n *yaml.Node) { d.waiter(n, &r.Waiter) },
	})
	var growing []string // the keys that are there
	for _, key := range []string{"attempts", "first", "factor", "max"} {
		if at[key] != nil {
			growing = append(growing, key)
		}
	}
	switch {
	case len(growing) == 0:
		return at["delays"] != nil
	case at["delays"] != nil:
		d.mistake(at[growing[0]], "%s has no place beside delays, which say how often and when", growing[0])
		return true
	}
	if !slices.Contains(growing, "first") || !slices.Contains(growing, "attempts") {
		d.mistake(n, "a delay that grows needs first and attempts, such as {first: 10s, attempts: 5}")
	}
	if grown.Max > 0 && grown.Max < grown.First {
		d.mistake(at["max"], "max %s is below first %s", grown.Max, grown.First)
	}
	r.Delays, r.Attempts, r.First, r.Factor, r.Max = nil, grown.Attempts, grown.First, grown.Factor, grown.Max
	return true
}

func (d *decoder) waiter(n *yaml.Node, into *rules.Waiter) {
	v, ok := d.scalar(n, "a waiter such as store")
	switch {
	case !ok:
	case v == string(rules.WaiterStore):
		*into = rules.WaiterStore
	case slices.Contains(laterWaiters, v):
		d.mistake(n, "waiter %s: not in this version; the waiter is store", v)
	default:
		d.mistake(n, "unknown waiter %q; the waiter is store", v)
	}
}
