package payload

import (
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// wireShaped reports whether b reads as protobuf of some type: it ends where a field ends, and has
// only field numbers below 10,000. It does not allocate and looks at no more than limit fields.
func wireShaped(b []byte, limit int) bool {
	if len(b) == 0 {
		return false
	}
	for ; len(b) > 0 && limit > 0; limit-- {
		num, _, n := protowire.ConsumeField(b)
		if n < 0 || num >= 10_000 {
			return false
		}
		b = b[n:]
	}
	return true
}

// printable reports whether p is text without control characters other than tab and line ends.
func printable(p []byte) bool {
	return utf8.Valid(p) && withoutControls(p)
}
