package deadletter

// ObservedRule is the name of the rule for letters of queues that are only observed. No configured
// rule can have this name, so rule:observed finds these letters.
const ObservedRule = "observed"

// Observed reports whether dlo only observed the letter when it arrived.
func (l *Letter) Observed() bool { return l.Rule == ObservedRule }
