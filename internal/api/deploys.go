package api

import (
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Deploys is the response to GET /deploys.
type Deploys struct {
	Deploys []deadletter.Deploy `json:"deploys"`
}

// DeployRequest is the body of POST /deploys.
type DeployRequest struct {
	Service string    `json:"service"`
	Version string    `json:"version,omitzero"`
	Link    string    `json:"link,omitzero"`
	At      time.Time `json:"at,omitzero"` // absent = now
}
