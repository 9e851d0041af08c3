package deadletter

import "time"

// AddedField is a field that an encoded body contains, but that the type of the body does not
// declare.
type AddedField struct {
	Number int32
	Wire   string // wire type of the field, e.g. "varint" or "length-delimited"
}

// MaxAdded is the maximum number of undeclared fields that are recorded for one letter.
const MaxAdded = 8

// AddedCount is the number of letters in a queue that contain the same undeclared field.
type AddedCount struct {
	Broker, VHost, Queue string
	Type                 string
	AddedField
	Since   time.Time // time at which the first of these letters was received
	Letters int
}
