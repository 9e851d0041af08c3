package deadletter

// Stray contains the numbers of letters whose broker and vhost are not in the configuration. dlo
// does not send these letters.
type Stray struct {
	Broker, VHost string
	Counts        map[State]int // number of unfinished letters by state
}

// Waiting returns the number of letters that are scheduled or being published. They stay in these
// states, because their broker is not configured and dlo therefore cannot send them.
func (s *Stray) Waiting() int { return s.Counts[StateScheduled] + s.Counts[StatePublishing] }

// Needy returns the number of letters that need people. They cannot be requeued, because their
// broker is not configured.
func (s *Stray) Needy() int { return s.Counts[StateDead] + s.Counts[StateHeld] }

// Watched returns the number of letters that were sent and may still come back. Nobody sees whether
// they do, because their broker is not configured.
func (s *Stray) Watched() int { return s.Counts[StateRequeued] }
