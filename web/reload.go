package web

import (
	"context"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5/middleware"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

type reloadIn struct{ Body api.ReloadRequest }

// reloadConfiguration reads the configuration file again and applies it, as SIGHUP does. It answers
// what has changed. If the file has a mistake, it changes nothing and answers 409. With dry_run it
// changes nothing either, and answers what would change.
func (w *Web) reloadConfiguration(ctx context.Context, in *reloadIn) (*reply[deadletter.Reload], error) {
	by := principal(ctx)
	if err := deadletter.Allow(by, deadletter.VerbSettings, deadletter.Origin{}); err != nil {
		return nil, err
	}
	return answer(w.Reload(context.WithoutCancel(ctx), by.Name, in.Body.DryRun))
}

// callerKey is the key of a *string in the context of a request that is logged: who made it.
type callerKey struct{}

// logRequest serves a request and logs it, without its query and its headers, which may contain
// data of letters and secrets.
func (w *Web) logRequest(rw http.ResponseWriter, r *http.Request) {
	began, caller := time.Now(), new(string)
	written := middleware.NewWrapResponseWriter(rw, r.ProtoMajor)
	defer func() {
		w.Logged.Info(
			"request", "method", r.Method, "path", r.URL.Path, "status", max(written.Status(), http.StatusOK),
			"duration", time.Since(began), "bytes", written.BytesWritten(), "by", *caller, "address", w.Address(r),
		)
	}()
	w.serve(written, r.WithContext(context.WithValue(r.Context(), callerKey{}, caller)))
}
