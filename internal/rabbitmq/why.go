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

// closeError returns the error for a connection or a channel that ended. If the broker gave no
// reason, the parameter "err" is nil, and the result is amqp.ErrClosed.
func closeError(err *amqp.Error) error {
	if err == nil {
		return amqp.ErrClosed
	}
	return &ended{err}
}

// ended is the reason why a connection or channel ended. Its text is written by dlo and replaces
// the text of the AMQP client library.
type ended struct{ err *amqp.Error }

func (e *ended) Error() string { return reasonText(e.err) }
func (e *ended) Unwrap() error { return e.err }

// errorText returns the text of an error. If a part of the text comes from the AMQP client library,
// dlo's own words replace this part.
func errorText(err error) string {
	var e *amqp.Error
	if !errors.As(err, &e) {
		return err.Error()
	}
	return strings.Replace(err.Error(), e.Error(), reasonText(e), 1)
}

// unreadable lists the reasons with which the AMQP client library reports a frame that it cannot
// read. Since dlo began to keep message headers away from the client library, no such report has
// been seen.
var unreadable = []string{amqp.ErrSyntax.Reason, amqp.ErrFrame.Reason, amqp.ErrFrameTooLarge.Reason}

// reasonText returns the reason why a connection or channel ended, without repetitions. The AMQP
// client library nests the text of one error in another, as in "Exception (501) Reason: \"Exception
// (502) Reason: ...".
func reasonText(e *amqp.Error) string {
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
		return "the client cannot read what the broker sends (" + text +
			"): take the first message out of the queue by hand, for example with Get messages of the management page, and report it to the makers of dlo"
	}
	return deadletter.Visible(text)
}

// unquoted removes the quotes around a text. The result "ok" is false if there are none.
func unquoted(quoted string) (text string, ok bool) {
	text, err := strconv.Unquote(quoted)
	if err != nil {
		return quoted, false
	}
	return text, true
}
