package web

import (
	"net/http"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/topology"
)

// reports returns the latest looks at the dead-letter paths.
func (w *Web) reports() []topology.Report {
	if w.Topology == nil {
		return nil
	}
	return w.Topology()
}

// apiFindings handles GET /topology/findings.
func (w *Web) apiFindings(*http.Request) (any, error) { return api.NewTopology(w.reports()), nil }
