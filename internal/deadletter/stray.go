package deadletter

// Stray are the letters of a broker and vhost that the configuration does not have: nobody sends
// them.
type Stray struct {
	Broker, VHost string
	Called        string        // what the broker was called at the last start with another name; "" = nothing else
	Counts        map[State]int // of letters that are not done with
}

// Waiting is how many letters wait for what nobody does: to be sent.
func (s *Stray) Waiting() int { return s.Counts[StateScheduled] + s.Counts[StatePublishing] }

// Needy is how many letters need people, and cannot be requeued.
func (s *Stray) Needy() int { return s.Counts[StateDead] + s.Counts[StateHeld] }

// Watched is how many letters were sent, and are watched by nobody.
func (s *Stray) Watched() int { return s.Counts[StateRequeued] }
