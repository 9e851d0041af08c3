package web

import (
	"context"
	"net/http"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Trials sends test letters through the broker and back to dlo.
type Trials interface {
	// Start starts a trial and returns before the trial ends. Its error wraps ErrForbidden,
	// ErrNotFound or ErrConflict.
	Start(ctx context.Context, by deadletter.Principal, broker string) (deadletter.Trial, error)
	Newest() *deadletter.Trial   // the trial that this process started last, or nil
	Unable(broker string) string // why the configuration allows no trial, or "" if it allows one
}

// TrialCounter counts the letters of trials. With it, the first page after the installation shows
// whether there has been a trial.
type TrialCounter interface {
	// the number of letters that trials created, including letters that no longer exist
	Trials(ctx context.Context) (int, error)
}

func (w *Web) try(r *http.Request, broker string) (deadletter.Trial, error) {
	switch {
	case w.Trials == nil:
		return deadletter.Trial{}, deadletter.ErrUnavailable
	case w.draining():
		return deadletter.Trial{}, errStopping
	}
	return w.Trials.Start(r.Context(), principal(r), broker)
}

// newestTrial returns the trial that was started last. If there is none, it returns an empty trial.
func (w *Web) newestTrial() deadletter.Trial {
	if w.Trials != nil {
		if t := w.Trials.Newest(); t != nil {
			return *t
		}
	}
	return deadletter.Trial{}
}

// tryForm handles POST /trial, which a button on the first page after the installation sends.
func (w *Web) tryForm(r *http.Request) (string, error) {
	if err := r.ParseForm(); err != nil {
		return "", formError(err)
	}
	_, err := w.try(r, r.PostFormValue("broker"))
	return "/", err // the path has no fragment, because a redirect to a fragment would not reload the page
}

func apiTrialOf(t deadletter.Trial) api.Trial {
	return api.Trial{
		Broker:     t.Broker,
		VHost:      t.VHost,
		Queue:      deadletter.TrialQueue,
		By:         t.By,
		State:      t.State,
		Problem:    t.Problem,
		Cure:       t.Cure,
		Letter:     t.Letter,
		Type:       deadletter.TrialType,
		Summary:    t.Summary,
		StartedAt:  api.At(t.StartedAt),
		RejectedAt: api.At(t.RejectedAt),
		ArrivedAt:  api.At(t.ArrivedAt),
		DecodedAt:  api.At(t.DecodedAt),
		RequeuedAt: api.At(t.RequeuedAt),
		AcceptedAt: api.At(t.AcceptedAt),
		SettledAt:  api.At(t.SettledAt),
	}
}

// apiTrial handles GET /trial. It returns the newest trial since dlo started.
func (w *Web) apiTrial(*http.Request) (any, error) {
	if t := w.newestTrial(); t.State != "" {
		return apiTrialOf(t), nil
	}
	return nil, deadletter.NoSuch("trial since dlo was started")
}

// apiTry handles POST /trial {broker}.
func (w *Web) apiTry(r *http.Request, in api.TrialRequest) (any, error) {
	t, err := w.try(r, in.Broker)
	return accepted{apiTrialOf(t), "/api/v1/trial"}, err
}
