package api

import (
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Drain is one run that takes letters out of a queue that is not an inbox. The response to GET
// /queues/drains contains it.
type Drain struct {
	ID        string                `json:"id"`
	Broker    string                `json:"broker"`
	VHost     string                `json:"vhost"`
	Queue     string                `json:"queue"`
	Origin    string                `json:"origin"`
	Count     int                   `json:"count"` // number of letters to take; 0 = all, until the queue is empty
	Taken     int                   `json:"taken"` // number of letters taken so far
	State     deadletter.DrainState `json:"state"`
	Why       string                `json:"why"`
	By        string                `json:"by"`
	StartedAt Time                  `json:"started_at"`
	EndedAt   Time                  `json:"ended_at,omitzero"`
}

// Drains is the response to GET /queues/drains.
type Drains struct {
	Drains []Drain `json:"drains"`
}

// DrainRequest is the body of POST /queues/drain.
type DrainRequest struct {
	Broker string `json:"broker,omitzero"`
	VHost  string `json:"vhost,omitzero"`
	Queue  string `json:"queue"`
	Origin string `json:"origin,omitzero"` // the origin queue of letters whose headers name none
	Count  int    `json:"count,omitzero"`  // number of letters to take; 0 = all, until the queue is empty
}
