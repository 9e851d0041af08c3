// Package budget bounds what the reading of one letter, or of one descriptor set, may cost: bytes,
// fields, levels and memory. It measures nothing itself: whoever reads takes from the budget first.
package budget

import (
	"fmt"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Defaults of NewBudget. A legitimate body of 16 MiB, the largest that RabbitMQ takes by default,
// fits when it is text, JSON or a message with few large fields; 16 MB of empty sub-messages (2.4
// GB in dynamicpb) or of packed varints (1.3 GB) do not.
const (
	defaultBytes  = 16 << 20
	defaultFields = 1_000_000
	DefaultDepth  = 100 // the default of the C++ and Java decoders
	defaultMemory = 64 << 20
)

// Budget is what the reading of one letter may cost. It is shared by all attempts to read that
// letter, and not safe for concurrent use. The limits are set before the first use; the counters
// only grow.
type Budget struct {
	Bytes  int64 // most bytes of a body, and most bytes that all peeled layers may have together
	Fields int64 // most wire fields and packed elements that are looked at, over all scans
	Depth  int   // most levels of messages in messages
	Memory int64 // most bytes that decoders may allocate, by an estimate that is above what was measured

	used Used
}

// Used is what has been spent.
type Used struct {
	Bytes, Fields, Memory int64
	Depth                 int // the deepest level seen
}

// NewBudget returns a budget with the default limits: 16 MiB, 1,000,000 fields, 100 levels, 64 MiB
// of memory.
func NewBudget() *Budget {
	return &Budget{Bytes: defaultBytes, Fields: defaultFields, Depth: DefaultDepth, Memory: defaultMemory}
}

// Used returns the counters. They never exceed the limits.
func (b *Budget) Used() Used { return b.used }

// TooLargeError says which limit a body exceeds. Text: "more than 1,000,000 fields".
type TooLargeError struct{ What string }

func (e *TooLargeError) Error() string { return e.What }

func (b *Budget) TakeField() error {
	if b.used.Fields >= b.Fields {
		return &TooLargeError{"more than " + deadletter.Count(b.Fields) + " fields"}
	}
	b.used.Fields++
	return nil
}

func (b *Budget) Enter(depth int) error {
	if depth > b.Depth {
		return &TooLargeError{fmt.Sprintf("messages nested deeper than %d levels", b.Depth)}
	}
	b.used.Depth = max(b.used.Depth, depth)
	return nil
}

// TakeMemory reserves n bytes, or nothing.
func (b *Budget) TakeMemory(n int64) error {
	if n > b.Memory-b.used.Memory {
		return &TooLargeError{"it would take more than " + deadletter.Bytes(int(b.Memory)) + " of memory"}
	}
	b.used.Memory += n
	return nil
}

// TakeBytes counts n bytes of peeled output. Their memory is taken before they are made.
func (b *Budget) TakeBytes(n int64) error {
	if n > b.Bytes-b.used.Bytes {
		return b.TooLargeUnpacked()
	}
	b.used.Bytes += n
	return nil
}

func (b *Budget) TooLargeUnpacked() error {
	return &TooLargeError{"more than " + deadletter.Bytes(int(b.Bytes)) + " when unpacked"}
}

// SpareBytes is how large one more peeled layer may be.
func (b *Budget) SpareBytes() int64 { return b.Bytes - b.used.Bytes }

// Left is a budget of its own with what is left of the fields and the memory of b. The readings of
// an edit follow each other, and none keeps what another took.
func (b *Budget) Left() *Budget {
	return &Budget{Bytes: b.Bytes, Fields: b.Fields - b.used.Fields, Depth: b.Depth, Memory: b.Memory - b.used.Memory}
}

// Spend counts n fields, which the caller has made sure are left.
func (b *Budget) Spend(n int64) { b.used.Fields += n }
