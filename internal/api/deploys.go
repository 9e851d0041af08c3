package api

// Deploy is a recorded deploy of a service. The responses to GET /deploys and GET /groups/{id}
// contain it.
type Deploy struct {
	ID      int64  `json:"id"`
	At      Time   `json:"at"`
	Service string `json:"service"`
	Version string `json:"version"`
	Link    string `json:"link,omitzero"`
	By      string `json:"by"`
}

// Deploys is the response to GET /deploys.
type Deploys struct {
	Deploys []Deploy `json:"deploys"`
}

// DeployRequest is the body of POST /deploys.
type DeployRequest struct {
	Service string `json:"service"`
	Version string `json:"version,omitzero"`
	Link    string `json:"link,omitzero"`
	At      Time   `json:"at,omitzero"` // absent = now
}
