package topology

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Options holds facts that an inspection needs and that a snapshot of the broker does not contain.
type Options struct {
	Inboxes []string // the dead-letter queues that dlo drains
	// Idle contains the queues without a consumer. For each of them, it contains the time from
	// which the queue has had no consumer.
	Idle map[string]time.Time
	// IdleAfter is how long a queue may be without a consumer before dlo reports a finding. 0 means
	// 15 minutes, because a rolling deployment needs less time than that to bring the consumers
	// back.
	IdleAfter time.Duration
	Applied   []Planned // policies that dlo has set and nobody has undone
	Intents   []IntentOf
}

const defaultIdleAfter = 15 * time.Minute

// inspector collects the findings of one snapshot.
type inspector struct {
	s       *Snapshot
	o       Options
	net     *network
	views   map[string]*view
	all     []*view            // in the order of the snapshot
	sources map[string][]*view // for each queue, the other queues whose dead letters reach it
	found   []Finding
}

// view is a queue together with its settings and the path of its dead letters.
type view struct {
	*Queue
	Effect
	Path
}

// viewOf returns a queue with its settings, and with the path of the dead letters that do not come
// from other queues.
func (n *network) viewOf(q *Queue) *view {
	e := n.s.EffectOf(q)
	return &view{Queue: q, Effect: e, Path: n.path(&e, nil)}
}

// Inspect returns all faults of a vhost that lose dead letters or can lose them, the most urgent
// first. It omits findings that depend on a part of the vhost that could not be read.
func Inspect(s *Snapshot, o Options) []Finding { return inspect(s, o).found }

// inspect inspects a vhost. For a file of an unknown version, it returns what the latest version
// does, with the findings of all versions.
func inspect(s *Snapshot, o Options) *inspector {
	var all []*inspector
	for _, variant := range s.variants() {
		all = append(all, inspectAs(variant, o))
	}
	in := all[len(all)-1]
	if len(all) > 1 {
		in.found = s.inEach(all)
	}
	in.found = oneForEachCause(in.found)
	slices.SortStableFunc(in.found, func(a, b Finding) int {
		return cmp.Or(
			deadletter.LoudestFirst(a.Severity, b.Severity), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Queue, b.Queue),
		)
	})
	return in
}

func inspectAs(s *Snapshot, o Options) *inspector {
	o.IdleAfter = cmp.Or(o.IdleAfter, defaultIdleAfter)
	in := &inspector{s: s, o: o, net: newNetwork(s), views: map[string]*view{}, sources: map[string][]*view{}}
	in.findEffects()
	if s.complete() {
		in.policiesTwice()
		in.policiesChanged()
		in.policiesDiffer()
		in.takenTwice()
		in.checkCycles()
		in.exchangesFederated()
	}
	for _, v := range in.all {
		in.checkQueue(v)
	}
	return in
}

// oneForEachCause joins findings of one kind that have the same cause.
func oneForEachCause(found []Finding) []Finding {
	type key struct {
		kind     Kind
		cause    string
		severity deadletter.Severity
		sure     Sureness
	}
	at := map[key]int{}
	var causes [][]Finding
	for _, f := range found {
		k := key{f.Kind, f.cause, f.Severity, f.Sure}
		if _, known := at[k]; !known || k.cause == "" {
			at[k] = len(causes)
			causes = append(causes, nil)
		}
		f.cause = ""
		causes[at[k]] = append(causes[at[k]], f)
	}
	list := make([]Finding, len(causes))
	for i, parts := range causes {
		list[i] = joined(parts)
	}
	return list
}

// findEffects finds out which settings apply to each queue, and where its dead letters go.
func (in *inspector) findEffects() {
	for i := range in.s.Queues {
		q := &in.s.Queues[i]
		v := in.net.viewOf(q)
		in.views[q.Name], in.all = v, append(in.all, v)
	}
	in.followSecondDeaths()
	for _, v := range in.all {
		for _, target := range v.Queues {
			if target != v.Name {
				in.sources[target] = append(in.sources[target], v)
			}
		}
	}
}

// maxCarried is the maximum number of routing keys that dlo follows through one queue. These are
// the keys of dead letters that come from other queues. The limit is needed because many queues may
// share one queue in which their dead letters wait.
const maxCarried = 100

// followSecondDeaths finds out where dead letters go if they die again in the queue that they have
// reached. Such a letter keeps its routing key, unless a queue on its path sets another one.
func (in *inspector) followSecondDeaths() {
	carried := map[string][]publishedKey{}
	for next := in.all; len(next) > 0; {
		var changed []*view
		for _, v := range next {
			for _, h := range v.hops {
				to := in.views[h.to]
				if !to.Set || to.Fixed || len(carried[h.to]) == maxCarried ||
					slices.ContainsFunc(carried[h.to], func(k publishedKey) bool { return k.key == h.key }) {
					continue
				}
				carried[h.to] = append(carried[h.to], h.publishedKey)
				if !slices.Contains(changed, to) {
					changed = append(changed, to)
				}
			}
		}
		for _, v := range changed {
			v.Path = in.net.path(&v.Effect, carried[v.Name])
		}
		next = changed
	}
}

// checkQueue inspects one queue according to its role. An inbox or a dead-letter queue must keep
// letters. A work queue must route its dead letters to such a queue.
func (in *inspector) checkQueue(v *view) {
	inbox := in.isInbox(v.Name)
	if v.isFederation() {
		return
	}
	in.checkMoved(v)
	switch {
	case !in.s.complete(): // the role of a queue is unknown unless all parts were read
		if v.isDurableWork() {
			in.checkStorm(v)
		}
		if in.s.Passive && !deadletter.OwnQueue(v.Name) { // letters died in this queue, so consumers should read it
			in.checkIdle(v)
		}
	case inbox || in.isDeadLetterQueue(v):
		in.keepsLetters(v, inbox)
		if v.Set && !inbox {
			in.checkPath(v)
		}
	case deadletter.OwnQueue(v.Name) || !v.isDurableWork():
	case intentFor(in.o.Intents, v.Name) == IntentNever:
		in.checkConsumers(v)
	default:
		in.checkPath(v)
		in.checkPolicies(v)
		in.checkGuarantee(v)
		in.checkConsumers(v)
		in.checkRecipe(v)
	}
}

// add records a finding about a queue.
func (in *inspector) add(f Finding) {
	f.Broker, f.VHost = in.s.Broker, in.s.VHost
	if v := in.views[f.Queue]; v != nil && v.unknownPolicy() != "" {
		f.Plannable = false
	}
	f.Severity = cmp.Or(f.Severity, severities[f.Kind])
	f.Sure = cmp.Or(f.Sure, Certain)
	in.found = append(in.found, f)
}

// isInbox reports whether dlo drains a queue.
func (in *inspector) isInbox(name string) bool { return slices.Contains(in.o.Inboxes, name) }

// leadsToInbox reports whether the dead letters of a queue reach an inbox of dlo.
func (in *inspector) leadsToInbox(v *view) bool { return slices.ContainsFunc(v.Queues, in.isInbox) }

// isDeadLetterQueue reports whether dead letters stay in a queue. They do not stay if the queue
// sends them back to the queue that they came from. Messages that are only delayed on the way to
// their consumers do not count as dead letters.
func (in *inspector) isDeadLetterQueue(v *view) bool {
	ends := false
	for _, from := range in.sources[v.Name] {
		if slices.Contains(v.Queues, from.Name) {
			return false
		}
		ends = ends || !in.onlyDelays(from, v)
	}
	return ends
}

// onlyDelays reports whether the queue v only holds messages for a time and then passes them on to
// the queue "next". Such a queue has a time-to-live and no consumer. A definitions file does not
// show which queues have consumers. If the snapshot comes from such a file, onlyDelays returns true
// if v has a time-to-live and the queue "next" has a dead-letter exchange, because "next" is then a
// work queue.
func (in *inspector) onlyDelays(v, next *view) bool {
	if _, ok := v.Least("message-ttl"); !ok {
		return false
	}
	if !v.Consumers.Known {
		return next.Set
	}
	return v.Consumers.N == 0
}

// isDurableWork reports whether a queue outlives its connection, is classic or quorum, and does not
// belong to a federation link. Streams do not dead-letter.
func (q *Queue) isDurableWork() bool {
	return !q.Exclusive && !q.AutoDelete && !q.isFederation() && (q.Kind() == Classic || q.Kind() == Quorum)
}

// safeName returns a name in a form that is safe to show.
func safeName(name string) string { return deadletter.Visible(name) }

// textf is fmt.Sprintf for texts that people read. It makes names in the arguments safe to show.
func textf(format string, args ...any) string {
	for i, arg := range args {
		if name, ok := arg.(string); ok {
			args[i] = safeName(name)
		}
	}
	return fmt.Sprintf(format, args...)
}

// nameList joins the first five names of a list into a text.
func nameList(list []string) string {
	if len(list) > 5 {
		list = append(list[:5:5], "…")
	}
	return joinNames(list, ", ")
}

func joinNames(list []string, sep string) string {
	shown := make([]string, len(list))
	for i, n := range list {
		shown[i] = safeName(n)
	}
	return strings.Join(shown, sep)
}
