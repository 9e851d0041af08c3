package web

import (
	"context"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Channels are the channels through which people are notified.
type Channels interface {
	Channels() []deadletter.Channel // sorted by name, each with its last test
	Test(ctx context.Context, channel string, by deadletter.Principal) (deadletter.Channel, error)
}

// testChannel sends a test notice to a channel. It sends one notice that says that it is a test,
// waits for the answer of the receiver, and records both in the audit. If the receiver does not
// accept it, the answer is 200 with accepted false.
func (w *Web) testChannel(
	ctx context.Context, in *struct{ Body api.ChannelTest },
) (*reply[deadletter.Channel], error) {
	if err := deadletter.Allow(principal(ctx), deadletter.VerbTell, deadletter.Origin{}); err != nil {
		return nil, err
	}
	return answer(w.Channels.Test(ctx, in.Body.Channel, principal(ctx)))
}
