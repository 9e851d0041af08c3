package deadletter

// Doubt is why a letter may be one that is stored already.
type Doubt string

const (
	DoubtCutOff  Doubt = "cut-off" // dlo was cut off between the ack of a window and its record
	DoubtRestart Doubt = "restart" // the broker was restarted, and may have brought back what was acknowledged
)

// DoubtRestored is of a letter that may have been sent since the copy was made that the store was
// restored from. It may be in any state that people can send from.
const DoubtRestored Doubt = "restored"

// WhyRestored is why an operation leaves such a letter alone.
const WhyRestored = "it may have been sent since the copy that this store was restored from"

// Doubts lists all of them, in the order in which they are counted from 1 in the store.
var Doubts = []Doubt{DoubtCutOff, DoubtRestart, DoubtRestored}
