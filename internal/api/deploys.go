package api

import (
	"time"
)

// Deploy is a mark of a deploy.
type Deploy struct {
	ID      int64     `json:"id"`
	At      time.Time `json:"at"`
	Service string    `json:"service"`
	Version string    `json:"version"`
	Link    string    `json:"link,omitempty"`
	By      string    `json:"by"`
}

type Deploys struct {
	Deploys []Deploy `json:"deploys"`
}

type DeployRequest struct {
	Service string    `json:"service"`
	Version string    `json:"version"`
	Link    string    `json:"link"`
	At      time.Time `json:"at"`
}
