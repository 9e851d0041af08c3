package deadletter

import "time"

// AddedField is a field on the wire that the body's type does not declare.
type AddedField struct {
	Number int32
	Wire   string // its wire type: "varint", "length-delimited"
}

// MaxAdded is the maximum number of added fields that are recorded for one letter.
const MaxAdded = 8

// AddedCount is the number of letters in a queue that have a given added field.
type AddedCount struct {
	Broker, VHost, Queue string
	Type                 string
	AddedField
	Since   time.Time // when the oldest letter with the field was received
	Letters int
}
