package web

import (
	"net/http"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

func apiDeployOf(d deadletter.Deploy) api.Deploy {
	return api.Deploy{ID: d.ID, At: api.At(d.At), Service: d.Service, Version: d.Version, Link: d.Link, By: d.By}
}

// apiDeploys handles GET /deploys. It returns the deploys of the last 90 days, newest first, at
// most 200.
func (w *Web) apiDeploys(r *http.Request) (any, error) {
	now := w.Now()
	list, err := w.Store.Deploys(r.Context(), now.Add(-90*24*time.Hour), now.Add(time.Hour), 200)
	return api.Deploys{Deploys: each(list, apiDeployOf)}, err
}

const (
	maxService = 100 // maximum number of bytes of the name or version of a service
	maxLink    = 500
)

// apiAddDeploy handles POST /deploys {service, version, link, at}.
func (w *Web) apiAddDeploy(r *http.Request, in api.DeployRequest) (any, error) {
	by := principal(r)
	if err := deadletter.Allow(by, deadletter.VerbDeploy, deadletter.Origin{}); err != nil {
		return nil, err
	}
	switch now := w.Now(); {
	case w.draining():
		return nil, errStopping
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
	d, err := w.Store.Deploy(r.Context(), deadletter.Deploy{
		At:      in.At.Time,
		Service: in.Service,
		Version: in.Version,
		Link:    in.Link,
		By:      by.Name,
	})
	if err != nil {
		return nil, err
	}
	return created{apiDeployOf(d), "/api/v1/deploys"}, nil
}
