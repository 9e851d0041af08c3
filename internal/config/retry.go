package config

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/rules"
	"go.yaml.in/yaml/v3"
)

const (
	maxAttempts   = 10_000
	maxFactor     = 1000
	defaultFactor = 2
	maxWaitQueues = 20 // maximum number of wait queues for one back-off
)

// backOff is a back-off as it is written in the file.
type backOff struct {
	at     map[string]*yaml.Node // positions of the keys that are in the file
	delays []delayAt             // all delays that are in the file
	grown  rules.Retry           // back-off that results from first, attempts, factor and max
	wrong  bool                  // the back-off contains a mistake, so that its delays cannot be checked
}

type delayAt struct {
	node  *yaml.Node
	delay time.Duration
}

// retry reads a back-off into r. It reports whether the file contains the delays of the back-off.
// The file can list the delays, or it can contain a first delay, from which each later delay is
// computed.
func (d *decoder) retry(n *yaml.Node, path string, r *rules.Retry) bool {
	b := backOff{at: map[string]*yaml.Node{}, grown: rules.Retry{Factor: defaultFactor}}
	before := len(d.mistakes)
	keep := func(key string, read func(n *yaml.Node)) func(n *yaml.Node) {
		return func(n *yaml.Node) { b.at[key] = n; read(n) }
	}
	delay := func(n *yaml.Node, into *time.Duration, low time.Duration) {
		d.duration(n, into, low, rules.MaxDelay)
		b.delays = append(b.delays, delayAt{n, *into})
	}
	d.mapping(n, path, keys{
		"delays": keep("delays", func(n *yaml.Node) {
			r.Delays = nil
			if n.Tag == "!!null" {
				d.mistake(n, "give a list, for example [10s, 1m]; [] means no retry")
			}
			d.list(n, func(n *yaml.Node) {
				var one time.Duration
				delay(n, &one, 0)
				r.Delays = append(r.Delays, one)
			})
		}),
		"attempts": keep("attempts", func(n *yaml.Node) { d.integer(n, &b.grown.Attempts, 0, maxAttempts) }),
		"first":    keep("first", func(n *yaml.Node) { delay(n, &b.grown.First, 0) }),
		"factor":   keep("factor", func(n *yaml.Node) { d.number(n, &b.grown.Factor, 1, maxFactor) }),
		"max":      keep("max", func(n *yaml.Node) { delay(n, &b.grown.Max, time.Millisecond) }),
		"jitter":   keep("jitter", func(n *yaml.Node) { d.number(n, &r.Jitter, 0, 1) }),
		"waiter":   func(n *yaml.Node) { d.waiter(n, &r.Waiter) },
	})
	own := d.delays(n, &b, r)
	b.wrong = len(d.mistakes) > before
	if r.Waiter.Broker() { // checked after all keys are read, because waiter may be below the delays
		d.checkWaits(&b, r)
	}
	return own
}

// delays adds the delays to the back-off. It reports whether the file contains them.
func (d *decoder) delays(n *yaml.Node, b *backOff, r *rules.Retry) bool {
	var growing []string // keys in the file that describe growing delays
	for _, key := range []string{"attempts", "first", "factor", "max"} {
		if b.at[key] != nil {
			growing = append(growing, key)
		}
	}
	switch {
	case len(growing) == 0:
		return b.at["delays"] != nil
	case b.at["delays"] != nil:
		d.mistake(
			b.at[growing[0]], "%s cannot be used together with delays, which already set how often and when to retry",
			growing[0],
		)
		return true
	}
	if !slices.Contains(growing, "first") || !slices.Contains(growing, "attempts") {
		d.mistake(n, "a delay that grows needs first and attempts, for example {first: 10s, attempts: 5}")
	}
	if b.grown.Max > 0 && b.grown.Max < b.grown.First {
		d.mistake(b.at["max"], "max %s is below first %s", b.grown.Max, b.grown.First)
	}
	r.Delays, r.Attempts, r.First, r.Factor, r.Max = nil, b.grown.Attempts, b.grown.First, b.grown.Factor, b.grown.Max
	return true
}

func (d *decoder) waiter(n *yaml.Node, into *rules.Waiter) {
	v, ok := d.scalar(n, "a waiter such as store")
	switch {
	case !ok:
	case slices.Contains(rules.Waiters, rules.Waiter(v)):
		*into = rules.Waiter(v)
	default:
		names := make([]string, len(rules.Waiters))
		for i, w := range rules.Waiters {
			names[i] = string(w)
		}
		d.mistake(n, "unknown waiter %q; it is one of %s", v, strings.Join(names, ", "))
	}
}

// checkWaits checks the delays of a back-off whose letters wait in a queue of the broker and not in
// dlo's store. It reports delays that are longer than the broker permits. In some wait queues, all
// letters must wait equally long. If the back-off uses such a queue, checkWaits also reports
// jitter.
func (d *decoder) checkWaits(b *backOff, r *rules.Retry) {
	for _, one := range b.delays {
		if one.delay > rules.MaxWait {
			d.mistake(
				one.node, "waiter %s: a delay is at most %dd; use a shorter one, or waiter: store", r.Waiter,
				rules.MaxWait/day,
			)
			b.wrong = true
		}
	}
	if r.Waiter == rules.WaiterQueue && r.Jitter > 0 {
		d.mistake(
			b.at["jitter"], "a wait queue has one delay for all its letters; use waiter: message-ttl, or jitter: 0",
		)
	}
	if b.wrong {
		return
	}
	d.checkGrowth(b, r)
	if r.Waiter == rules.WaiterQueue {
		d.checkWaitQueues(b, r)
	}
}

// checkGrowth reports the first retry whose delay is longer than the broker permits.
func (d *decoder) checkGrowth(b *backOff, r *rules.Retry) {
	for n := range b.grown.Count() {
		if delay := b.grown.Delay(n); delay > rules.MaxWait {
			d.mistake(
				b.at["attempts"],
				"waiter %s: a delay is at most %dd, and retry %d waits %s; set max, or use waiter: store", r.Waiter,
				rules.MaxWait/day, n+1, delay.Round(time.Second),
			)
			return
		}
	}
}

// checkWaitQueues reports a back-off that needs too many wait queues.
func (d *decoder) checkWaitQueues(b *backOff, r *rules.Retry) {
	delays := slices.Clone(r.Delays)
	for n := range b.grown.Count() {
		delays = append(delays, r.Delay(n))
	}
	slices.Sort(delays)
	if different := len(slices.Compact(delays)); different > maxWaitQueues {
		d.mistake(
			cmp.Or(b.at["delays"], b.at["attempts"]),
			"%d different delays need %[1]d queues on the broker, and at most %d are allowed; use fewer delays, or waiter: message-ttl",
			different, maxWaitQueues,
		)
	}
}

// mirror is a rule with the key mirror_x_death, together with the position of this key in the file.
type mirror struct {
	node *yaml.Node
	rule *rules.Rule
}

// checkMirrors reports a rule that has the key mirror_x_death, if the letters of the rule wait in
// the broker. With this key, dlo sends letters back with an x-death header of its own. A letter
// that waits in the broker dies in the wait queue. From RabbitMQ 4.0 on, this death replaces the
// whole x-death header, so dlo's header would not reach the worker.
func (d *decoder) checkMirrors(rest *rules.Rule) {
	for _, m := range d.mirrors {
		if w := cmp.Or(m.rule.Retry, rest.Retry).Waiter; m.rule.MirrorXDeath && w.Broker() {
			d.mistake(
				m.node,
				"waiter %s: the broker replaces the mirrored x-death with its own; use waiter: store, or no mirror_x_death",
				w,
			)
		}
	}
}
