package topology

import (
	"maps"
	"slices"
	"strings"
)

// death is what dlo knows about the headers of a dead letter.
type death struct {
	queue  string
	reason string
	again  bool // the message may have died before in another queue
	latest bool // the broker also sets headers of the latest death (4.0.5, 4.3.6; not 3.10.8)
}

// deathsIn returns the ways in which messages may die in a queue. The first is a rejection. The
// parameter "again" is true if dead letters of other queues die in it as well.
func deathsIn(e *Effect, version string, again bool) []*death {
	reasons := []string{"rejected"}
	for _, limit := range e.droppingLimits() {
		if limit.Key == "message-ttl" {
			reasons = append(reasons, "expired")
		} else if !slices.Contains(reasons, "maxlen") {
			reasons = append(reasons, "maxlen")
		}
	}
	if _, limited := e.DeliveryLimit(version); limited {
		reasons = append(reasons, "delivery_limit")
	}
	var list []*death
	for _, reason := range reasons {
		list = append(list, &death{e.Queue.Name, reason, again, sinceVersion4(version)})
	}
	return list
}

// header compares a header of a dead letter with the value of a binding. The result "known" is
// false if dlo does not know the header.
func (d *death) header(name string, want any) (equal, known bool) {
	what, first := strings.CutPrefix(name, "x-first-death-")
	what, last := strings.CutPrefix(what, "x-last-death-")
	switch {
	case d == nil || !first && !(last && d.latest):
		return false, false
	case want == nil || want == "undefined": // as the API shows a void: is the header there at all?
		return true, true
	case first && d.again:
		return false, false
	case what == "reason":
		return want == d.reason, true
	case what == "queue":
		return want == d.queue, true
	}
	return false, false
}

// matchesHeaders reports whether a binding of a headers exchange matches a dead letter. With
// x-match "all" (the default) and "any", the exchange ignores the headers that begin with x-, so
// that "all" matches every message if there is no other header, and "any" matches none (3.10.8,
// 4.0.5, 4.3.6).
func (b *Binding) matchesHeaders(d *death) (matches, known bool) {
	how, _ := b.Arguments.Text("x-match")
	with, any, unknown := strings.HasSuffix(how, "-with-x"), strings.HasPrefix(how, "any"), false
	for _, name := range slices.Sorted(maps.Keys(b.Arguments)) {
		if name == "x-match" || strings.HasPrefix(name, "x-") && !with {
			continue
		}
		equal, known := d.header(name, b.Arguments[name])
		switch {
		case !known:
			unknown = true
		case equal == any: // one that is equal decides for "any", and one that differs decides for "all"
			return any, true
		}
	}
	return !any, !unknown
}
