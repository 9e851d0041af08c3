package deadletter

// Imported is a letter that another dlo exported and that is to be imported. It keeps its id, so
// that it cannot be imported twice. The state and the number of attempts are those in the other
// dlo. Here, the letter is never scheduled, because the other dlo may still send it, and the count
// of attempts starts again. The other dlo has masked the error text.
type Imported struct {
	Row
	Inbox      string
	ArrivedBy  Route
	Properties Properties
	Body       []byte
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
