package deadletter

import "time"

// Deploy records that a version of a service went live.
type Deploy struct {
	ID      int64
	At      time.Time // zero = now
	Service string
	Version string
	Link    string // address of a page about the deployed version; "" = none
	By      string // name of the person or token that reported the deploy
}
