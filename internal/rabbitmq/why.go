package rabbitmq

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	amqp "github.com/rabbitmq/amqp091-go"
)

// closeError is why a connection or channel ended; nil stands for an end that nobody gave a reason
// for.
func closeError(err *amqp.Error) error {
	if err == nil {
		return amqp.ErrClosed
	}
	return &ended{err}
}

// ended is the end of a connection or channel, in words of ours.
type ended struct{ err *amqp.Error }

func (e *ended) Error() string { return words(e.err) }
func (e *ended) Unwrap() error { return e.err }

// why is the text of an error with the words of the client replaced.
func why(err error) string {
	var e *amqp.Error
	if !errors.As(err, &e) {
		return err.Error()
	}
	return strings.Replace(err.Error(), e.Error(), words(e), 1)
}

// unreadable are what the client says of a frame that it cannot read. None was seen since headers
// are kept from it.
var unreadable = []string{amqp.ErrSyntax.Reason, amqp.ErrFrame.Reason, amqp.ErrFrameTooLarge.Reason}

// words says what ended a connection or channel once: the client puts the text of one error into
// another, as "Exception (501) Reason: \"Exception (502) Reason: ...".
func words(e *amqp.Error) string {
	text := e.Reason
	for {
		_, inner, ok := strings.Cut(text, "Reason: ")
		if !ok || !strings.HasPrefix(text, "Exception (") {
			break
		}
		if text, ok = unquoted(inner); !ok {
			break
		}
	}
	switch {
	case e.Server:
		return fmt.Sprintf("the broker says %d %s", e.Code, deadletter.Visible(text))
	case slices.Contains(unreadable, text):
		return "the client cannot read what the broker sends (" + text + "): take the first message out of the queue by hand, for example with Get messages of the management page, and report it to the makers of dlo"
	}
	return deadletter.Visible(text)
}

// unquoted takes the quotes off a text, where there are any.
func unquoted(quoted string) (text string, ok bool) {
	text, err := strconv.Unquote(quoted)
	if err != nil {
		return quoted, false
	}
	return text, true
}
