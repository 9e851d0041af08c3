package rules

// Rate is how many automatic retries leave per second for the queues of a pattern; 0 = no limit.
type Rate struct {
	Queue     string // a glob
	PerSecond float64
}

// Paced returns the names of the rules that have a rate of their own.
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
