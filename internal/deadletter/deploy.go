package deadletter

import "time"

// Deploy records that a version of a service went live.
type Deploy struct {
	ID      int64     `json:"id"`
	At      time.Time `json:"at"` // zero = now
	Service string    `json:"service"`
	Version string    `json:"version"`
	Link    string    `json:"link,omitzero"` // address of a page about the deployed version; "" = none
	By      string    `json:"by"`            // name of the person or token that reported the deploy
}
