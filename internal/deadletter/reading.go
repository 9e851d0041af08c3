package deadletter

import "time"

// Reading says how the body of a letter was read. It says how dlo found the type or, for a body
// without a type, what the body is.
type Reading string

const (
	ReadByContentType Reading = "content type"
	ReadByEnvelope    Reading = "envelope"
	ReadByProperty    Reading = "type property"
	ReadByHeader      Reading = "header"
	ReadByBinding     Reading = "binding" // a binding in the configuration or by a person
	ReadByPick        Reading = "picked"  // a person picked the type for the letter or its group
	ReadByMatch       Reading = "matched"
	ReadAsJSON        Reading = "json"
	ReadAsText        Reading = "text"
	ReadEmpty         Reading = "empty"
	ReadAmbiguous     Reading = "ambiguous" // several types match the body equally well
	ReadUnknown       Reading = "unknown"   // the body has no type and is neither JSON nor text
	ReadTooLarge      Reading = "too large" // the body is too large to be decoded safely
	ReadCrashed       Reading = "undecodable"
)

// Readings lists all readings.
var Readings = []Reading{
	ReadByContentType, ReadByEnvelope, ReadByProperty, ReadByHeader, ReadByBinding, ReadByPick, ReadByMatch, ReadAsJSON,
	ReadAsText, ReadEmpty, ReadAmbiguous, ReadUnknown, ReadTooLarge, ReadCrashed,
}

// Typed reports whether the body was decoded as a type that dlo knows.
func (r Reading) Typed() bool {
	switch r {
	case ReadByContentType, ReadByEnvelope, ReadByProperty, ReadByHeader, ReadByBinding, ReadByPick, ReadByMatch:
		return true
	}
	return false
}

// Readable reports whether people can read the body.
func (r Reading) Readable() bool {
	return r.Typed() || r == ReadAsJSON || r == ReadAsText || r == ReadEmpty
}

// Reread requests that letters be read again. If Types is set, these are the letters with one of
// the types and the letters without a type. Queues, Letter and Group select the letters of some
// queues, one letter, and the letters of one group. If none of these fields is set, all letters are
// read again.
type Reread struct {
	Why    string // reason, e.g. "set notify 1f2e3d4c"
	Types  []string
	Queues func(queue string) bool
	Letter ID
	Group  GroupID
	// the letters may have to hide more than before: what the search index and the lists show of them
	// is removed before they are read; with Types, these are also the letters whose type is a guess
	Hides bool
}

// Read is the result of reading a letter again. Only some fields of the verdict are used: Letter,
// Type, Reading, Summary, Error and the fields about the group.
type Read struct {
	Classified
	AsOf time.Time // time of the last change to the letter, when the letter was read
	Late bool      // the cause of the death has become known only now, so that the group counts a new death
}

// ReadCount is the number of letters of a queue that were read in the same way.
type ReadCount struct {
	Broker, VHost, Queue string
	Type                 string
	Reading              Reading
	Letters              int
}

// RereadProgress says how far dlo has got with reading stored letters again after a change to the
// known types.
type RereadProgress struct {
	Why     string // what has changed; "" = no letters are being read again
	Total   int    // number of letters; it grows until all letters are listed
	Left    int
	Changed int // number of letters that were read differently than before
}
