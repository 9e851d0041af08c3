package deadletter

// ObservedRule is the rule name of letters from queues that dlo only observes. No configured rule
// can have this name, so rule:observed finds exactly these letters.
const ObservedRule = "observed"

// Observed reports whether dlo only observed the letter when the letter arrived.
func (l *Letter) Observed() bool { return l.Rule == ObservedRule }
