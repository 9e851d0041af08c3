package deadletter

import "time"

// Imported is a letter that another dlo exported.
type Imported struct {
	ID         ID    // the letter keeps its id, so that it is never imported twice
	State      State // state in the other dlo; the letter is never scheduled here, because the other dlo may still send it
	Origin     Origin
	Inbox      string
	ArrivedBy  Route
	Properties Properties
	Body       []byte
	ReceivedAt time.Time
	DiedAt     time.Time
	Reason     string
	Error      string // masked by the other dlo
	Attempts   int    // attempts used in the other dlo; here the count starts again
}

// Arrives returns the state that the classifier gives the letter.
func (i *Imported) Arrives() State {
	if i.State == StateDiscarded || i.State == StateHeld {
		return i.State
	}
	return StateDead
}

// ImportResult is the result of importing one letter.
type ImportResult string

const (
	ImportNew   ImportResult = "imported"
	ImportKnown ImportResult = "already there"
	ImportTaken ImportResult = "another letter has its place" // its serial is taken by a letter with the same millisecond and counter
	ImportAhead ImportResult = "its id is of a time that is yet to come"
)
