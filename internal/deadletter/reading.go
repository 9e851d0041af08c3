package deadletter

import "time"

// Reading is how a letter's body was read: what its type was known by, or what else the body is.
type Reading string

const (
	ReadByContentType Reading = "content type"
	ReadByEnvelope    Reading = "envelope"
	ReadByProperty    Reading = "type property"
	ReadByBinding     Reading = "binding" // of the configuration, or of a person
	ReadByPick        Reading = "picked"  // by a person, for the letter or its group
	ReadByMatch       Reading = "matched"
	ReadAsJSON        Reading = "json"
	ReadAsText        Reading = "text"
	ReadEmpty         Reading = "empty"
	ReadAmbiguous     Reading = "ambiguous" // several types read it equally well
	ReadUnknown       Reading = "unknown"   // no type, no JSON, no text
	ReadTooLarge      Reading = "too large" // to be decoded safely
	ReadCrashed       Reading = "undecodable"
)

// Readings lists all readings.
var Readings = []Reading{
	ReadByContentType, ReadByEnvelope, ReadByProperty, ReadByBinding, ReadByPick, ReadByMatch, ReadAsJSON, ReadAsText, ReadEmpty, ReadAmbiguous, ReadUnknown, ReadTooLarge, ReadCrashed,
}

// Typed says that the body was decoded as a registered type.
func (r Reading) Typed() bool {
	switch r {
	case ReadByContentType, ReadByEnvelope, ReadByProperty, ReadByBinding, ReadByPick, ReadByMatch:
		return true
	}
	return false
}

// Readable says that people can read the body.
func (r Reading) Readable() bool {
	return r.Typed() || r == ReadAsJSON || r == ReadAsText || r == ReadEmpty
}

// Reread is a reason to read letters again, and which: those with one of the types and those
// without one, those of the queues, one letter or one group. None of them set is all.
type Reread struct {
	Why    string // "set notify 1f2e3d4c"
	Types  []string
	Queues func(queue string) bool
	Letter ID
	Group  GroupID
}

// Read is one letter that was read again. Of the verdict count Letter, Type, Reading, Summary,
// Error and the group.
type Read struct {
	Classified
	AsOf time.Time // when the letter had changed last as it was read
	Late bool      // it is only known now what it died of: to its group it has just died
}

// ReadCount is how many letters of a queue were read one way.
type ReadCount struct {
	Broker, VHost, Queue string
	Type                 string
	Reading              Reading
	Letters              int
}

// ReadingAnew is how far the reading of stored letters is, after what is known of types has
// changed.
type ReadingAnew struct {
	Why     string // what has changed, "" = nothing is read anew
	Total   int    // letters; grows until all are listed
	Left    int
	Changed int // letters that turned out to be something else
}
