package rules

// Rate limits how many automatic retries per second are sent to each queue that matches a pattern.
// A rate of 0 means no limit.
type Rate struct {
	Queue     string // glob for the name of a queue
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
