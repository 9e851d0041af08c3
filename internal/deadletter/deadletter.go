// Package deadletter is the domain of Dead Letter Office: letters and the deaths that made them,
// where they came from, what state they are in, who may do what to them, and what is safe to
// publish again. It imports the standard library only and does no input or output: adapters fill
// its values (rabbitmq, store) and rooms act on them.
package deadletter

import (
	"errors"
	"fmt"
)

// The only errors that cross rooms. Wrap them with what was attempted; web turns them into status
// codes.
var (
	ErrNotFound    = errors.New("not found")
	ErrConflict    = errors.New("conflict")    // the state of the thing does not allow it
	ErrInvalid     = errors.New("invalid")     // the request itself is wrong
	ErrForbidden   = errors.New("forbidden")   // the principal may not
	ErrUnavailable = errors.New("unavailable") // try again later: shutting down, or the store has no room
)

// NoSuch is ErrNotFound of what was looked for, such as "letter %s".
func NoSuch(format string, args ...any) error {
	return fmt.Errorf("%w: there is no "+format, append([]any{ErrNotFound}, args...)...)
}
