package deadletter

// Doubt is the reason why a letter may be a copy of a stored letter.
type Doubt string

const (
	DoubtCutOff  Doubt = "cut-off" // dlo was cut off between the ack of a window and its record
	DoubtRestart Doubt = "restart" // the broker was restarted and may have redelivered acknowledged messages
)

// DoubtRestored marks a letter that may have been sent after the backup from which the store was
// restored. It may be in any state from which people can send it.
const DoubtRestored Doubt = "restored"

// WhyRestored is the reason given when an operation skips a letter with DoubtRestored.
const WhyRestored = "it may have been sent since the copy that this store was restored from"

// Doubts lists all doubts. The store encodes each by its position, counted from 1.
var Doubts = []Doubt{DoubtCutOff, DoubtRestart, DoubtRestored}
