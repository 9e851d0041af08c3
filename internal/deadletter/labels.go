package deadletter

import "sync"

// Labels keeps hostile names from flooding the metrics. It turns names into label values, which are
// safe text of at most 120 bytes. After the maximum number of distinct values, it turns every
// further name into "other".
type Labels struct {
	mu   sync.Mutex
	seen map[string]bool
}

const maxLabels = 200 // distinct values

// Of returns the label value for a name. It is safe for concurrent use.
func (l *Labels) Of(name string) string {
	name = Cut(Visible(Cut(name, 120)), 120)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen[name] {
		return name
	}
	if len(l.seen) >= maxLabels {
		return "other"
	}
	if l.seen == nil {
		l.seen = map[string]bool{}
	}
	l.seen[name] = true
	return name
}
