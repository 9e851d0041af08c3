// Package deadletter is the domain of Dead Letter Office. It defines letters and the deaths that
// produced them, their origins and their states. It also contains the rules on who may act on
// letters, and on what is safe to publish again. It imports only the standard library and does no
// input or output. Adapters (rabbitmq, store) fill its values, and rooms act on them.
package deadletter

import (
	"errors"
	"fmt"
)

// These are the only errors that cross rooms. A room wraps them with a text that says what was
// attempted. web maps them to status codes.
var (
	ErrNotFound    = errors.New("not found")
	ErrConflict    = errors.New("conflict")      // the current state does not allow it
	ErrInvalid     = errors.New("invalid")       // the request itself is wrong
	ErrForbidden   = errors.New("forbidden")     // the principal lacks permission
	ErrSignIn      = errors.New("not signed in") // the sender of the request is unknown
	ErrChanged     = errors.New("changed")       // the thing is not in the state that the request names
	ErrTooMany     = errors.New("too many requests")
	ErrUnavailable = errors.New("unavailable") // try again later: shutting down, or the store has no room
)

// ErrDenied is an ErrForbidden for a principal whose grants do not include the requested act.
var ErrDenied = fmt.Errorf("%w", ErrForbidden)

// ErrCredentials is an ErrSignIn for a request with a token or a name that dlo does not accept.
var ErrCredentials = fmt.Errorf("%w", ErrSignIn)

// NoSuch returns ErrNotFound for the thing that was looked up, such as "letter %s".
func NoSuch(format string, args ...any) error {
	return fmt.Errorf("%w: there is no "+format, append([]any{ErrNotFound}, args...)...)
}
