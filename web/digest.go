package web

import (
	"context"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

func (w *Web) digestNow(ctx context.Context) (deadletter.Digest, error) {
	d, err := w.Digests.Now(ctx)
	for i := range d.Lines {
		w.hideGroup(&d.Lines[i].Group)
	}
	return d, err
}

// getDigest returns the morning digest, as it would be sent now. It is what the next digest would
// say now. Nothing is sent.
func (w *Web) getDigest(ctx context.Context, _ *struct{}) (*reply[deadletter.Digest], error) {
	return answer(w.digestNow(ctx))
}

// sendDigest sends that digest now. It goes to the channels of the configuration, whether or not it
// is due.
func (w *Web) sendDigest(ctx context.Context, _ *struct{}) (*reply[api.DigestSent], error) {
	if err := deadletter.Allow(principal(ctx), deadletter.VerbTell, deadletter.Origin{}); err != nil {
		return nil, err
	}
	channels, err := w.Digests.Send(ctx, principal(ctx))
	return answer(api.DigestSent{Channels: channels}, err)
}
