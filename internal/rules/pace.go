package rules

// Rate limits the automatic retries per second of each queue that matches a pattern. A rate of 0
// means no limit.
type Rate struct {
	Queue     string // a glob
	PerSecond float64
}

// Paced returns the names of rules that have their own rate.
func (s *Set) Paced() []string {
	var names []string
	for _, r := range s.Rules {
		if r.Rate != nil {
			names = append(names, r.Name)
		}
	}
	if s.Default.Rate != nil {
		names = append(names, s.Default.Name)
	}
	return names
}
