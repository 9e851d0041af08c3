package notify

import (
	"errors"
	"fmt"
	"time"
)

// ErrPermanent is an error that trying again does not mend.
var ErrPermanent = errors.New("refused for good")

// LaterError is an error of a receiver that says when to come back.
type LaterError struct {
	After time.Duration
	Err   error
}

func (e *LaterError) Error() string { return e.Err.Error() }
func (e *LaterError) Unwrap() error { return e.Err }

// PartlyError says that a message got through to some of its receivers, and never will to the
// others.
type PartlyError struct{ Text string }

func (e *PartlyError) Error() string { return e.Text }

// refusal is an ErrPermanent in its own words.
type refusal string

func (r refusal) Error() string        { return string(r) }
func (r refusal) Is(target error) bool { return target == ErrPermanent }

// refused returns an error that ends the trying.
func refused(format string, args ...any) error { return refusal(fmt.Sprintf(format, args...)) }
