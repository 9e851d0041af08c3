package web

import (
	"context"
	"net/http"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Trials send letters of dlo's own the whole way.
type Trials interface {
	// Start begins, and goes on without the caller. The error wraps ErrForbidden, ErrNotFound or
	// ErrConflict.
	Start(ctx context.Context, by deadletter.Principal, broker string) (deadletter.Trial, error)
	Newest() *deadletter.Trial   // that was started last since dlo was; nil = none was
	Unable(broker string) string // why there can be none with this configuration; "" = there can
}

// TrialCounter is what the first run needs of the store.
type TrialCounter interface {
	Trials(ctx context.Context) (int, error) // letters that dlo has made for trials, whatever became of them
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

// newestTrial is the trial that was started last; an empty one where none was.
func (w *Web) newestTrial() deadletter.Trial {
	if w.Trials != nil {
		if t := w.Trials.Newest(); t != nil {
			return *t
		}
	}
	return deadletter.Trial{}
}

// tryForm is POST /trial, the button of the first run.
func (w *Web) tryForm(r *http.Request) (string, error) {
	if err := r.ParseForm(); err != nil {
		return "", formError(err)
	}
	_, err := w.try(r, r.PostFormValue("broker"))
	return "/", err // without a fragment: with one, no browser loads the page again by itself
}

func apiTrialOf(t deadletter.Trial) api.Trial {
	return api.Trial{
		Broker: t.Broker, VHost: t.VHost, Queue: deadletter.TrialQueue, By: t.By, State: t.State, Problem: t.Problem, Cure: t.Cure, Letter: t.Letter, Type: deadletter.TrialType, Summary: t.Summary,
		StartedAt: t.StartedAt.UTC(), RejectedAt: utc(t.RejectedAt), ArrivedAt: utc(t.ArrivedAt), DecodedAt: utc(t.DecodedAt), RequeuedAt: utc(t.RequeuedAt), AcceptedAt: utc(t.AcceptedAt), SettledAt: utc(t.SettledAt),
	}
}

// apiTrial is GET /trial: the newest since dlo was started.
func (w *Web) apiTrial(*http.Request) (any, error) {
	if t := w.newestTrial(); t.State != "" {
		return apiTrialOf(t), nil
	}
	return nil, deadletter.NoSuch("trial since dlo was started")
}

// apiTry is POST /trial {broker}.
func (w *Web) apiTry(r *http.Request, in api.TrialRequest) (any, error) {
	t, err := w.try(r, in.Broker)
	return accepted{apiTrialOf(t), "/api/v1/trial"}, err
}
