// Package budget limits the cost of reading one letter or one descriptor set, in bytes, fields,
// levels of nesting and memory. The package does not measure these costs. The code that reads must
// take them from the budget before it does the work.
package budget

import (
	"fmt"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// These are the default limits of NewBudget. RabbitMQ accepts bodies of up to 16 MiB by default. If
// a body of that size is text, JSON or a message with a few large fields, the limits permit it.
//
// Two kinds of bodies of that size would take too much memory, and the limits do not permit them.
// One kind consists of empty sub-messages, which would take 2.4 GB of memory in dynamicpb. The
// other kind consists of packed varints, which would take 1.3 GB.
const (
	defaultBytes  = 16 << 20
	defaultFields = 1_000_000
	DefaultDepth  = 100 // default of the C++ and Java decoders
	defaultMemory = 64 << 20
)

// Budget limits the cost of reading one letter. All attempts to read this letter take from the same
// budget. The limits must be set before the first use, and the counters only grow. A Budget is not
// safe for concurrent use.
type Budget struct {
	Bytes  int64 // maximum number of bytes of a body, and of all its unpacked layers together
	Fields int64 // maximum number of wire fields and packed elements that are examined in all scans
	Depth  int   // maximum nesting of messages
	// maximum number of bytes that decoders may allocate; an estimate that is higher than the
	// measured values
	Memory int64

	used Used
}

// Used contains what was taken from a budget.
type Used struct {
	Bytes, Fields, Memory int64
	Depth                 int // deepest level of nesting so far
}

// NewBudget returns a budget with the default limits: 16 MiB, 1,000,000 fields, 100 levels of
// nesting, and 64 MiB of memory.
func NewBudget() *Budget {
	return &Budget{Bytes: defaultBytes, Fields: defaultFields, Depth: DefaultDepth, Memory: defaultMemory}
}

// Used returns what was taken from the budget so far. It is never more than the limits.
func (b *Budget) Used() Used { return b.used }

// TooLargeError says which limit a body exceeds, for example "more than 1,000,000 fields".
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

// TakeMemory takes n bytes of memory from the budget. If this would exceed the limit, it takes
// nothing and returns an error.
func (b *Budget) TakeMemory(n int64) error {
	if n > b.Memory-b.used.Memory {
		return &TooLargeError{"it would take more than " + deadletter.Bytes(int(b.Memory)) + " of memory"}
	}
	b.used.Memory += n
	return nil
}

// TakeBytes reduces the budget by n bytes. It is called before a layer of the body is unpacked, for
// example a gzip layer. Before the memory for this layer is allocated, the caller must also reduce
// the budget for memory.
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

// SpareBytes returns the maximum size in bytes that the next layer of the body may have after it is
// unpacked. An example of a layer is gzip.
func (b *Budget) SpareBytes() int64 { return b.Bytes - b.used.Bytes }

// Left returns a new budget with the fields and the memory that are left in this one. An edit
// decodes several times in a row, and takes such a new budget for each decoding. The memory that
// one decoding used is free again when the next one begins.
func (b *Budget) Left() *Budget {
	return &Budget{Bytes: b.Bytes, Fields: b.Fields - b.used.Fields, Depth: b.Depth, Memory: b.Memory - b.used.Memory}
}

// Spend takes n fields from the budget. The caller has checked that at least n fields are left.
func (b *Budget) Spend(n int64) { b.used.Fields += n }
