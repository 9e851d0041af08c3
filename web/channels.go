package web

import (
	"context"
	"net/http"

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
) (*reply[api.ChannelTested], error) {
	c, err := w.sendTest(ctx, in.Body.Channel)
	return answer(api.ChannelTested{Channel: c.Name, Accepted: c.Accepted, Answer: c.Answer}, err)
}

// testChannelForm handles POST /channels/test of the Overview page, which then shows the answer.
func (w *Web) testChannelForm(r *http.Request) (string, error) {
	_, err := w.sendTest(r.Context(), r.PostFormValue("channel"))
	return "/#health", err
}

func (w *Web) sendTest(ctx context.Context, channel string) (deadletter.Channel, error) {
	switch err := deadletter.Allow(principal(ctx), deadletter.VerbTell, deadletter.Origin{}); {
	case err != nil:
		return deadletter.Channel{}, err
	case w.Channels == nil:
		return deadletter.Channel{}, deadletter.ErrNotFound
	}
	return w.Channels.Test(ctx, channel, principal(ctx))
}
