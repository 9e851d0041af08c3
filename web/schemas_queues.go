package web

import (
	"cmp"
	"slices"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/web/view"
)

// typedQueues returns the queues in which letters died. For each queue, it lists the types of the
// letters, and how dlo chose each type. The queue with the most letters that no type matches comes
// first, then the one with the most letters.
func typedQueues(readings []deadletter.ReadCount) []view.TypedQueue {
	at := map[deadletter.Origin]int{}
	var list []view.TypedQueue
	for _, r := range readings {
		place := deadletter.Origin{Broker: r.Broker, VHost: r.VHost, Queue: r.Queue}
		i, known := at[place]
		if !known {
			i = len(list)
			at[place] = i
			list = append(list, view.TypedQueue{Origin: place})
		}
		q := &list[i]
		q.Letters += r.Letters
		switch {
		case r.Reading == "":
			q.Unread += r.Letters
			continue
		case r.Reading == deadletter.ReadUnknown || r.Reading == deadletter.ReadAmbiguous:
			q.Unmatched += r.Letters
		case r.Type != "" && r.Reading.Typed():
			if t := slices.IndexFunc(q.Types, func(t view.TypeCount) bool { return t.Type == r.Type }); t >= 0 {
				q.Types[t].Letters += r.Letters
			} else {
				q.Types = append(q.Types, view.TypeCount{Type: r.Type, Letters: r.Letters})
			}
		}
		q.By = append(q.By, r)
	}
	for _, q := range list {
		slices.SortFunc(q.By, func(a, b deadletter.ReadCount) int {
			return cmp.Or(
				cmp.Compare(b.Letters, a.Letters), cmp.Compare(a.Type, b.Type), cmp.Compare(a.Reading, b.Reading),
			)
		})
		slices.SortFunc(q.Types, func(a, b view.TypeCount) int {
			return cmp.Or(cmp.Compare(b.Letters, a.Letters), cmp.Compare(a.Type, b.Type))
		})
	}
	slices.SortFunc(list, func(a, b view.TypedQueue) int {
		return cmp.Or(
			cmp.Compare(b.Unmatched, a.Unmatched), cmp.Compare(b.Letters, a.Letters), cmp.Compare(a.Queue, b.Queue),
			cmp.Compare(a.Broker, b.Broker), cmp.Compare(a.VHost, b.VHost),
		)
	})
	return list
}

// boundTo adds to a queue the first binding that applies to it. Bindings made by people take
// precedence over configured bindings.
func boundTo(q *view.TypedQueue, picks []deadletter.Pick, bindings []deadletter.Binding) {
	applies := func(b deadletter.Binding) bool { return b.Path == "" && deadletter.Glob(b.Queue, q.Queue, true) }
	for i, p := range picks {
		if p.Letter == "" && p.Group == 0 && applies(p.Binding) {
			q.Bound, q.Exact = &picks[i], p.Queue == q.Queue
			return
		}
	}
	if i := slices.IndexFunc(bindings, applies); i >= 0 {
		q.Configured = &bindings[i]
	}
}
