// Package deadletter is the domain of Dead Letter Office. It defines letters, their origins, their
// states and the deaths that produced them. It also contains the rules about who may act on
// letters, and about what can safely be published again. It imports only the standard library and
// does no input or output. The packages rabbitmq and store fill in its values, and other packages
// work with them.
package deadletter

import (
	"errors"
	"fmt"
)

// These are the errors that the packages of dlo return to each other. A package wraps such an error
// in another one that says what was attempted. The package web maps the errors to status codes.
var (
	ErrNotFound  = errors.New("not found")
	ErrConflict  = errors.New("conflict")      // the present state does not permit the action
	ErrInvalid   = errors.New("invalid")       // the request itself is not valid
	ErrForbidden = errors.New("forbidden")     // the principal does not have the right
	ErrSignIn    = errors.New("not signed in") // it is unknown who sent the request
	ErrChanged   = errors.New("changed")       // the object is no longer in the state that the request names
	ErrTooMany   = errors.New("too many requests")
	// the request can be sent again later, because dlo is stopping or the store has no room
	ErrUnavailable = errors.New("unavailable")
)

// ErrDenied is an ErrForbidden. It means that the grants of a principal do not include the
// requested action.
var ErrDenied = fmt.Errorf("%w", ErrForbidden)

// ErrCredentials is an ErrSignIn. It means that dlo does not accept the token or the name in a
// request.
var ErrCredentials = fmt.Errorf("%w", ErrSignIn)

// NoSuch returns ErrNotFound with a text that names the missing object, such as "letter %s".
func NoSuch(format string, args ...any) error {
	return fmt.Errorf("%w: there is no "+format, append([]any{ErrNotFound}, args...)...)
}
