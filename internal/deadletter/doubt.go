package deadletter

// Doubt is why a letter may be one that is stored already.
type Doubt string

const (
	DoubtCutOff  Doubt = "cut-off" // dlo was cut off between the ack of a window and its record
	DoubtRestart Doubt = "restart" // the broker was restarted, and may have brought back what was acknowledged
)

// Doubts lists all of them, in the order in which they are counted from 1 in the store.
var Doubts = []Doubt{DoubtCutOff, DoubtRestart}
