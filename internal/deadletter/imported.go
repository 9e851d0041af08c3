package deadletter

import "time"

// Imported is a letter that another dlo exported.
type Imported struct {
	ID         ID    // kept: the same letter is never taken in twice
	State      State // where it came from; never scheduled here, as the other dlo may still hold it
	Origin     Origin
	Inbox      string
	ArrivedBy  Route
	Properties Properties
	Body       []byte
	ReceivedAt time.Time
	DiedAt     time.Time
	Reason     string
	Error      string // masked there
	Attempts   int    // used there; here it begins anew
}

// Arrives is the state that classify gives the letter.
func (i *Imported) Arrives() State {
	if i.State == StateDiscarded || i.State == StateHeld {
		return i.State
	}
	return StateDead
}

// ImportResult is what became of an imported letter.
type ImportResult string

const (
	ImportNew   ImportResult = "imported"
	ImportKnown ImportResult = "already there"
	ImportTaken ImportResult = "another letter has its place" // received elsewhere in the same millisecond, with the same count within it
	ImportAhead ImportResult = "its id is of a time that is yet to come"
)
