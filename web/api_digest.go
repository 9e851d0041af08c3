package web

import (
	"net/http"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// apiDigest is a digest.
type apiDigest struct {
	From      time.Time       `json:"from"`
	To        time.Time       `json:"to"`
	Groups    int             `json:"groups"`
	Letters   int             `json:"letters"`
	New       int             `json:"new"`
	CameBack  int             `json:"came_back"`
	Recovered int             `json:"recovered"`
	Paged     int             `json:"paged"`
	Before    apiBefore       `json:"before"` // the time before, of the same length
	Lines     []apiDigestLine `json:"lines"`
	More      int             `json:"more"` // groups that are not in lines
}

type apiBefore struct {
	Groups    int `json:"groups"`
	Letters   int `json:"letters"`
	Recovered int `json:"recovered"`
}

type apiDigestLine struct {
	Letters    int         `json:"letters"` // that died in the time
	Suggestion string      `json:"suggestion,omitempty"`
	Group      apiGroupRow `json:"group"`
}

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

// apiShowDigest is GET /digest: as it would be sent now.
func (w *Web) apiShowDigest(r *http.Request) (any, error) {
	if _, err := parameters(r); err != nil {
		return nil, err
	}
	d, err := w.digestNow(r)
	if err != nil {
		return nil, err
	}
	out := apiDigest{
		From: d.From, To: d.To, Groups: d.Groups, Letters: d.Letters, New: d.New, CameBack: d.CameBack, Recovered: d.Recovered, Paged: d.Paged, Before: apiBefore(d.Before), More: d.More, Lines: []apiDigestLine{},
	}
	for _, l := range d.Lines {
		out.Lines = append(out.Lines, apiDigestLine{l.Letters, l.Suggestion, apiGroupOf(l.Group)})
	}
	return out, nil
}

// apiSendDigest is POST /digest/send: now, whatever the clock says.
func (w *Web) apiSendDigest(r *http.Request) (any, error) {
	channels, err := w.sendDigest(r)
	return struct {
		Channels []string `json:"channels"`
	}{channels}, err
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
	return w.Digests.Send(r.Context())
}
