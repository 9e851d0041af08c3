package deadletter

// Stray holds the letters of a broker and vhost that are missing from the configuration. Nobody
// sends these letters.
type Stray struct {
	Broker, VHost string
	Called        string        // name of the broker at the last start with another name; "" = no other name
	Counts        map[State]int // unfinished letters
}

// Waiting returns the number of letters that wait to be sent. They are never sent.
func (s *Stray) Waiting() int { return s.Counts[StateScheduled] + s.Counts[StatePublishing] }

// Needy returns the number of letters that need people but cannot be requeued.
func (s *Stray) Needy() int { return s.Counts[StateDead] + s.Counts[StateHeld] }

// Watched returns the number of letters that were sent and that nobody watches.
func (s *Stray) Watched() int { return s.Counts[StateRequeued] }
