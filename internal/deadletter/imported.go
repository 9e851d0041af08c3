package deadletter

import "time"

// Imported is a letter that another dlo exported and that is to be imported.
type Imported struct {
	ID ID // the letter keeps its id, so that it cannot be imported twice
	// state in the other dlo; here, the letter is never scheduled, because the other dlo may still
	// send it
	State      State
	Origin     Origin
	Inbox      string
	ArrivedBy  Route
	Properties Properties
	Body       []byte
	ReceivedAt time.Time
	DiedAt     time.Time
	Reason     string
	Error      string // error text, which the other dlo has masked
	Attempts   int    // number of attempts in the other dlo; here, the count starts again
}

// Arrives returns the state that the classifier must give the letter. A letter that was held or
// discarded in the other dlo keeps this state. Any other letter becomes dead.
func (i *Imported) Arrives() State {
	if i.State == StateDiscarded || i.State == StateHeld {
		return i.State
	}
	return StateDead
}

// ImportResult says what happened to one letter of an import.
type ImportResult string

const (
	ImportNew   ImportResult = "imported"
	ImportKnown ImportResult = "already there"
	ImportTaken ImportResult = "another letter has its place" // another letter already has the same serial
	ImportAhead ImportResult = "its id is of a time that is yet to come"
)
