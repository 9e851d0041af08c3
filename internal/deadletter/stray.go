package deadletter

// Stray holds the counts of letters whose broker and vhost are missing from the configuration. dlo
// does not send these letters.
type Stray struct {
	Broker, VHost string
	Called        string        // name that the broker had at the last start; "" = the same name
	Counts        map[State]int // unfinished letters
}

// Waiting returns the number of letters that wait to be sent. They are never sent.
func (s *Stray) Waiting() int { return s.Counts[StateScheduled] + s.Counts[StatePublishing] }

// Needy returns the number of letters that need people but cannot be requeued.
func (s *Stray) Needy() int { return s.Counts[StateDead] + s.Counts[StateHeld] }

// Watched returns the number of letters that were sent and that nobody watches.
func (s *Stray) Watched() int { return s.Counts[StateRequeued] }
