package topology

import (
	"slices"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// GlobsFor distributes names and globs of queues among the plans of several snapshots. The result
// has one list for each snapshot. If a name or glob selects queues in some of the snapshots, it is
// only in the lists of these snapshots. If it selects no queue in any snapshot, it is in all lists,
// so that each plan refuses it.
func GlobsFor(all []*Snapshot, globs []string) [][]string {
	list := make([][]string, len(all))
	for _, g := range globs {
		selects := func(s *Snapshot) bool { return s.selects(g) }
		none := !slices.ContainsFunc(all, selects)
		for i, s := range all {
			if none || selects(s) {
				list[i] = append(list[i], g)
			}
		}
	}
	return list
}

// selects reports whether a name or glob selects a queue of the snapshot.
func (s *Snapshot) selects(glob string) bool {
	chosen := Choose(s, nil, []string{glob}, false)
	if len(chosen) != 1 || chosen[0] != glob {
		return true
	}
	return slices.ContainsFunc(s.Queues, func(q Queue) bool { return q.Name == glob })
}

// Chosen selects queues from a list by names or globs, and returns the selected ones. A queue may
// have a name that looks like a glob. If such a name is given, it selects only this queue.
func Chosen(queues, globs []string) []string {
	return slices.DeleteFunc(slices.Clone(queues), func(q string) bool {
		return !slices.ContainsFunc(globs, func(g string) bool {
			return g == q || !slices.Contains(queues, g) && deadletter.Glob(g, q, false)
		})
	})
}
