package deadletter

import "time"

// Reading says how a letter's body was read: how dlo found its type or, without a type, what the
// body is.
type Reading string

const (
	ReadByContentType Reading = "content type"
	ReadByEnvelope    Reading = "envelope"
	ReadByProperty    Reading = "type property"
	ReadByBinding     Reading = "binding" // from the configuration, or by a person
	ReadByPick        Reading = "picked"  // by a person, for the letter or its group
	ReadByMatch       Reading = "matched"
	ReadAsJSON        Reading = "json"
	ReadAsText        Reading = "text"
	ReadEmpty         Reading = "empty"
	ReadAmbiguous     Reading = "ambiguous" // several types match equally well
	ReadUnknown       Reading = "unknown"   // no type, no JSON, no text
	ReadTooLarge      Reading = "too large" // too large to decode safely
	ReadCrashed       Reading = "undecodable"
)

// Readings lists all readings.
var Readings = []Reading{
	ReadByContentType, ReadByEnvelope, ReadByProperty, ReadByBinding, ReadByPick, ReadByMatch, ReadAsJSON, ReadAsText, ReadEmpty, ReadAmbiguous, ReadUnknown, ReadTooLarge, ReadCrashed,
}

// Typed reports whether the body was decoded as a registered type.
func (r Reading) Typed() bool {
	switch r {
	case ReadByContentType, ReadByEnvelope, ReadByProperty, ReadByBinding, ReadByPick, ReadByMatch:
		return true
	}
	return false
}

// Readable reports whether people can read the body.
func (r Reading) Readable() bool {
	return r.Typed() || r == ReadAsJSON || r == ReadAsText || r == ReadEmpty
}

// Reread is a reason to read letters again. Its other fields say which letters are read: letters
// with one of the types, letters without a type, letters of the queues, one letter, or one group.
// If none of them is set, all letters are read.
type Reread struct {
	Why    string // "set notify 1f2e3d4c"
	Types  []string
	Queues func(queue string) bool
	Letter ID
	Group  GroupID
}

// Read is one letter that was read again. Of the verdict, only Letter, Type, Reading, Summary,
// Error and the group are used.
type Read struct {
	Classified
	AsOf time.Time // time of the letter's last change, as read
	Late bool      // the cause of its death has only now become known, so its group counts it as a new death
}

// ReadCount is the number of letters of a queue that were read in one way.
type ReadCount struct {
	Broker, VHost, Queue string
	Type                 string
	Reading              Reading
	Letters              int
}

// RereadProgress is the progress of rereading stored letters after a change of the known types.
type RereadProgress struct {
	Why     string // what has changed; "" = nothing is read again
	Total   int    // letters; grows until all have been listed
	Left    int
	Changed int // letters that were read differently
}
