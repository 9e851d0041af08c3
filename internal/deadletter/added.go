package deadletter

import "time"

// AddedField is a field on the wire that the type of the body does not have, beside its own.
type AddedField struct {
	Number int32
	Wire   string // its wire type: "varint", "length-delimited"
}

// MaxAdded is how many such fields of one letter are counted.
const MaxAdded = 8

// AddedCount is how many letters of a queue have such a field.
type AddedCount struct {
	Broker, VHost, Queue string
	Type                 string
	AddedField
	Since   time.Time // when the oldest of the letters was received
	Letters int
}
