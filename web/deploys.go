package web

import (
	"context"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// listDeploys returns the deploys of the last 90 days, newest first, at most 200. Groups that began
// after a deploy name it.
func (w *Web) listDeploys(ctx context.Context, _ *struct{}) (*reply[api.Deploys], error) {
	now := w.Now()
	list, err := w.Store.Deploys(ctx, now.Add(-90*24*time.Hour), now.Add(time.Hour), 200)
	return answer(api.Deploys{Deploys: list}, err)
}

const (
	maxService = 100 // maximum number of bytes of the name or version of a service
	maxLink    = 500
)

// addDeploy marks that a version of a service went live. Charts show it, and a group that begins
// within two hours after it names it. The same mark within a minute is one.
func (w *Web) addDeploy(ctx context.Context, r *struct{ Body api.DeployRequest }) (*created[deadletter.Deploy], error) {
	in, by := &r.Body, principal(ctx)
	if err := deadletter.Allow(by, deadletter.VerbDeploy, deadletter.Origin{}); err != nil {
		return nil, err
	}
	switch now := w.Now(); {
	case in.Service == "":
		return nil, invalid("service is missing: the name of what was deployed")
	case len(in.Service) > maxService || len(in.Version) > maxService ||
		deadletter.Visible(in.Service+in.Version) != in.Service+in.Version:
		return nil, invalid("service and version have at most %d visible characters", maxService)
	case len(in.Link) > maxLink || in.Link != "" && !strings.HasPrefix(in.Link, "https://") &&
		!strings.HasPrefix(in.Link, "http://") || deadletter.Visible(in.Link) != in.Link:
		return nil, invalid("link is a URL with http or https of at most %d characters", maxLink)
	case in.At.After(now.Add(time.Hour)):
		return nil, invalid("at is in the future")
	}
	d, err := w.Store.Deploy(ctx, deadletter.Deploy{
		At:      in.At,
		Service: in.Service,
		Version: in.Version,
		Link:    in.Link,
		By:      by.Name,
	})
	return &created[deadletter.Deploy]{"/api/v1/deploys", d}, err
}
