package notify

import (
	"errors"
	"fmt"
	"time"
)

// ErrPermanent marks an error after which a message is not sent again.
var ErrPermanent = errors.New("refused for good")

// LaterError is the error if a receiver asks the sender to try again after some time.
type LaterError struct {
	After time.Duration
	Err   error
}

func (e *LaterError) Error() string { return e.Err.Error() }
func (e *LaterError) Unwrap() error { return e.Err }

// PartlyError means that some receivers have the message and the others never get it.
type PartlyError struct{ Text string }

func (e *PartlyError) Error() string { return e.Text }

// refusal is an ErrPermanent that has its own text.
type refusal string

func (r refusal) Error() string        { return string(r) }
func (r refusal) Is(target error) bool { return target == ErrPermanent }

// permanentError returns an error after which a message is not sent again.
func permanentError(format string, args ...any) error { return refusal(fmt.Sprintf(format, args...)) }
