package rabbitmq

import (
	"errors"
	"fmt"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
)

// TestTheEndOfASessionIsSaidOnce checks the text about the end of a session. The AMQP client
// library wraps the cause in several errors. dlo must show the cause once, in a text that fits on a
// page.
func TestTheEndOfASessionIsSaidOnce(t *testing.T) {
	t.Parallel()
	const byHand = "): take the first message out of the queue by hand, for example with Get messages of the management page, and report it to the makers of dlo"
	nested := func(e *amqp.Error) *amqp.Error { return &amqp.Error{Code: amqp.FrameError, Reason: e.Error()} }
	for _, c := range []struct {
		err  *amqp.Error
		want string
	}{
		{
			&amqp.Error{Code: 403, Reason: "ACCESS_REFUSED - read access to queue 'a\n' refused", Server: true},
			`the broker says 403 ACCESS_REFUSED - read access to queue 'a\n' refused`,
		},
		{
			nested(amqp.ErrFrameTooLarge),
			"the client cannot read what the broker sends (frame size exceeds negotiated frame_max" + byHand,
		},
		{
			nested(nested(amqp.ErrSyntax)),
			"the client cannot read what the broker sends (invalid field or value inside of a frame" + byHand,
		},
		{
			&amqp.Error{Code: amqp.FrameError, Reason: "read tcp 127.0.0.1:1->127.0.0.1:2: connection reset by peer"},
			"read tcp 127.0.0.1:1->127.0.0.1:2: connection reset by peer",
		},
		{&amqp.Error{Code: amqp.FrameError, Reason: "EOF"}, "EOF"},
		{&amqp.Error{Code: amqp.FrameError, Reason: `Exception (1) Reason: odd`}, "odd"},
	} {
		err := closeError(c.err)
		if err.Error() != c.want || !isCode(err, c.err.Code) {
			t.Errorf("%s\n got %s\nwant %s", c.err, err, c.want)
		}
		if got := errorText(fmt.Errorf("inbox a: %w", c.err)); got != "inbox a: "+c.want {
			t.Errorf("wrapped: %s", got)
		}
	}
	if closeError(nil) != amqp.ErrClosed || errorText(errors.New("plain")) != "plain" {
		t.Error("other errors have other words")
	}
}
