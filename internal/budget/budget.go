// Package budget limits the cost of reading one letter or one descriptor set: bytes, fields,
// nesting levels and memory. It does not measure anything. Readers take from the budget before they
// work.
package budget

import (
	"fmt"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Defaults of NewBudget. A legitimate body of 16 MiB, the largest that RabbitMQ accepts by default,
// fits if it is text, JSON or a message with a few large fields. 16 MB of empty sub-messages (2.4
// GB in dynamicpb) or of packed varints (1.3 GB) do not fit.
const (
	defaultBytes  = 16 << 20
	defaultFields = 1_000_000
	DefaultDepth  = 100 // the default of the C++ and Java decoders
	defaultMemory = 64 << 20
)

// Budget limits the cost of reading one letter. All attempts to read that letter share it. It is
// not safe for concurrent use. Set the limits before the first use; the counters only grow.
type Budget struct {
	Bytes  int64 // maximum bytes of a body, and of all peeled layers together
	Fields int64 // maximum wire fields and packed elements examined, over all scans
	Depth  int   // maximum nesting of messages
	Memory int64 // maximum bytes that decoders may allocate, by an estimate above the measured values

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

// TooLargeError reports which limit a body exceeds. Text: "more than 1,000,000 fields".
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

// TakeMemory reserves n bytes. If n bytes would exceed the limit, it reserves nothing.
func (b *Budget) TakeMemory(n int64) error {
	if n > b.Memory-b.used.Memory {
		return &TooLargeError{"it would take more than " + deadletter.Bytes(int(b.Memory)) + " of memory"}
	}
	b.used.Memory += n
	return nil
}

// TakeBytes counts n bytes of peeled output. The caller reserves their memory before allocating it.
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

// SpareBytes returns the maximum size of one more peeled layer.
func (b *Budget) SpareBytes() int64 { return b.Bytes - b.used.Bytes }

// Left returns a new budget with the fields and the memory that b has left. An edit decodes several
// times in a row, and no decoding keeps the memory that an earlier one used.
func (b *Budget) Left() *Budget {
	return &Budget{Bytes: b.Bytes, Fields: b.Fields - b.used.Fields, Depth: b.Depth, Memory: b.Memory - b.used.Memory}
}

// Spend counts n fields. The caller has checked that they are left.
func (b *Budget) Spend(n int64) { b.used.Fields += n }
