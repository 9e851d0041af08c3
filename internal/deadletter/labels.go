package deadletter

import "sync"

// Labels turns names into label values for metrics. A label value is safe text of at most 120
// bytes. When the maximum number of different values is reached, every further name becomes
// "other". Hostile names can therefore not flood the metrics.
type Labels struct {
	mu   sync.Mutex
	seen map[string]bool
}

const maxLabels = 200 // maximum number of different label values

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
