package deadletter

// Doubt is the reason why a letter may be a copy of a stored letter, or may already have been sent.
type Doubt string

const (
	// dlo or the broker died after dlo had acknowledged a window and before it recorded this
	DoubtCutOff  Doubt = "cut-off"
	DoubtRestart Doubt = "restart" // the broker was restarted and may have delivered acknowledged messages again
)

// DoubtRestored marks a letter that may have been sent after the backup from which the store was
// restored. The letter may be in any state from which people can send it.
const DoubtRestored Doubt = "restored"

// WhyRestored is the reason that an operation records when it skips a letter with DoubtRestored.
const WhyRestored = "it may have been sent since the copy that this store was restored from"

// Doubts lists all doubts. The store encodes a doubt as its position in this list, counted from 1.
var Doubts = []Doubt{DoubtCutOff, DoubtRestart, DoubtRestored}
