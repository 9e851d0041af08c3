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

// apiTestChannel handles POST /channels/test.
func (w *Web) apiTestChannel(r *http.Request) (any, error) {
	var in api.ChannelTest
	if err := readJSON(r, &in); err != nil {
		return nil, err
	}
	c, err := w.testChannel(r, in.Channel)
	return api.ChannelTested{Channel: c.Name, Accepted: c.Accepted, Answer: c.Answer}, err
}

// testChannelForm handles POST /channels/test of the Overview page, which then shows the answer.
func (w *Web) testChannelForm(r *http.Request) (string, error) {
	_, err := w.testChannel(r, r.PostFormValue("channel"))
	return "/#health", err
}

func (w *Web) testChannel(r *http.Request, channel string) (deadletter.Channel, error) {
	switch err := deadletter.Allow(principal(r), deadletter.VerbTell, deadletter.Origin{}); {
	case err != nil:
		return deadletter.Channel{}, err
	case w.draining():
		return deadletter.Channel{}, errStopping
	case w.Channels == nil:
		return deadletter.Channel{}, deadletter.ErrNotFound
	}
	return w.Channels.Test(r.Context(), channel, principal(r))
}
