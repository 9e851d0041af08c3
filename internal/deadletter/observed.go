package deadletter

// ObservedRule is the name of the rule for letters of queues that dlo only observes. No configured
// rule can have this name, so that rule:observed finds exactly these letters.
const ObservedRule = "observed"

// Observed reports whether dlo only observed the queue of the letter when it received the letter.
func (l *Letter) Observed() bool { return l.Rule == ObservedRule }
