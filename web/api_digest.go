package web

import (
	"net/http"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

func (w *Web) digestNow(r *http.Request) (deadletter.Digest, error) {
	if w.Digests == nil {
		return deadletter.Digest{}, deadletter.ErrNotFound
	}
	d, err := w.Digests.Now(r.Context())
	for i := range d.Lines {
		w.hideGroup(&d.Lines[i].Group)
	}
	return d, err
}

// apiShowDigest handles GET /digest. It returns the digest that would be sent now.
func (w *Web) apiShowDigest(r *http.Request) (any, error) {
	d, err := w.digestNow(r)
	if err != nil {
		return nil, err
	}
	return api.Digest{
		From:      api.At(d.From),
		To:        api.At(d.To),
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
				Since:   api.At(f.Since),
				Letters: f.Letters,
			}
			if f.Group != 0 {
				p.Group = f.Group.String()
			}
			return p
		}),
	}, nil
}

// apiSendDigest handles POST /digest/send. It sends the digest at once, even if it is not due.
func (w *Web) apiSendDigest(r *http.Request) (any, error) {
	channels, err := w.sendDigest(r)
	return api.DigestSent{Channels: channels}, err
}

func (w *Web) sendDigest(r *http.Request) ([]string, error) {
	switch err := deadletter.Allow(principal(r), deadletter.VerbTell, deadletter.Origin{}); {
	case err != nil:
		return nil, err
	case w.draining():
		return nil, errStopping
	case w.Digests == nil:
		return nil, deadletter.ErrNotFound
	}
	return w.Digests.Send(r.Context(), principal(r))
}
