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

// Read is one letter that was read anew.
type Read struct {
	Letter   ID
	AsOf     time.Time // when the letter had changed last as it was read
	Type     string
	Reading  Reading
	Summary  string // masked, at most 200 bytes
	GroupKey [32]byte
	Title    string // of the group, where it has to be made
	Error    string // of the group
}

// ReadCount is how many letters of a queue were read one way.
type ReadCount struct {
	Broker, VHost, Queue string
	Type                 string
	Reading              Reading
	Letters              int
}

// ReadingAnew is how far the reading of stored letters is, after what is known of types has changed.
type ReadingAnew struct {
	Why   string // what has changed: "set notify 1f2e3d4c"
	Total int
	Left  int // 0 = nothing is read anew
}
