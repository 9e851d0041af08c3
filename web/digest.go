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
func (w *Web) getDigest(ctx context.Context, _ *struct{}) (*reply[api.Digest], error) {
	d, err := w.digestNow(ctx)
	return answer(api.Digest{
		From:      d.From,
		To:        d.To,
		Groups:    d.Groups,
		Letters:   d.Letters,
		New:       d.New,
		CameBack:  d.CameBack,
		Recovered: d.Recovered,
		Paged:     d.Paged,
		Before:    api.DigestBefore(d.Before),
		More:      d.More,
		Lines: each(d.Lines, func(l deadletter.DigestLine) api.DigestLine {
			return api.DigestLine{Letters: l.Letters, Suggestion: l.Suggestion, Group: apiGroupOf(l.Group)}
		}),
		Pauses: each(d.Pauses, func(f deadletter.Forgotten) api.Pause {
			p := api.Pause{
				Broker:  f.Origin.Broker,
				VHost:   f.Origin.VHost,
				Queue:   f.Origin.Queue,
				Reason:  f.Why,
				By:      f.By,
				Since:   f.Since,
				Letters: f.Letters,
			}
			p.Group = f.Group
			return p
		}),
	}, err)
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
