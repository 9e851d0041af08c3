package api

import (
	"time"
)

type Override struct {
	ID     int64     `json:"id"`
	Broker string    `json:"broker"`
	VHost  string    `json:"vhost"`
	Queue  string    `json:"queue"`
	To     string    `json:"to"`
	By     string    `json:"by"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
}

type Overrides struct {
	Overrides []Override `json:"overrides"`
}

type OverrideRequest struct {
	Broker string `json:"broker"`
	VHost  string `json:"vhost"`
	Queue  string `json:"queue"`
	To     string `json:"to"`
	Reason string `json:"reason"`
}
