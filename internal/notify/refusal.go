package notify

import (
	"errors"
	"fmt"
	"time"
)

// ErrPermanent marks errors that a retry cannot fix.
var ErrPermanent = errors.New("refused for good")

// LaterError is the error for a receiver that asks for a retry after some time.
type LaterError struct {
	After time.Duration
	Err   error
}

func (e *LaterError) Error() string { return e.Err.Error() }
func (e *LaterError) Unwrap() error { return e.Err }

// PartlyError means that a message reached some of its receivers and will never reach the others.
type PartlyError struct{ Text string }

func (e *PartlyError) Error() string { return e.Text }

// refusal is an ErrPermanent with its own text.
type refusal string

func (r refusal) Error() string        { return string(r) }
func (r refusal) Is(target error) bool { return target == ErrPermanent }

// refused returns an error that prevents further attempts.
func refused(format string, args ...any) error { return refusal(fmt.Sprintf(format, args...)) }
