package web

import (
	"context"

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

// newestTrial returns the trial that was started last. If there is none, it returns an empty trial.
func (w *Web) newestTrial() deadletter.Trial {
	if t := w.Trials.Newest(); t != nil {
		return *t
	}
	return deadletter.Trial{}
}

// getTrial returns the newest trial since dlo was started or reloaded. 404 before the first.
func (w *Web) getTrial(context.Context, *struct{}) (*reply[api.Trial], error) {
	if t := w.newestTrial(); t.State != "" {
		return &reply[api.Trial]{api.NewTrial(t)}, nil
	}
	return nil, deadletter.NoSuch("trial since dlo was started or loaded another configuration")
}

// startTrial sends a letter of dlo's own the whole way. dlo declares the queue dlo.try and consumes
// it, sends one message there, rejects it once, takes it in as a letter, decodes it, sends it back,
// and accepts it then. No other queue is touched, nobody is told, and after an hour nothing but a
// line of history is left. 409 while a trial is under way, or where none can be.
func (w *Web) startTrial(ctx context.Context, in *struct{ Body api.TrialRequest }) (*accepted[api.Trial], error) {
	t, err := w.Trials.Start(ctx, principal(ctx), in.Body.Broker)
	return &accepted[api.Trial]{"/api/v1/trial", api.NewTrial(t)}, err
}
