package api

import (
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

type Drain struct {
	ID        string                `json:"id"`
	Broker    string                `json:"broker"`
	VHost     string                `json:"vhost"`
	Queue     string                `json:"queue"`
	Origin    string                `json:"origin"`
	Count     int                   `json:"count"`
	Taken     int                   `json:"taken"`
	State     deadletter.DrainState `json:"state"`
	Why       string                `json:"why"`
	By        string                `json:"by"`
	StartedAt time.Time             `json:"started_at"`
	EndedAt   time.Time             `json:"ended_at,omitzero"`
}

type Drains struct {
	Drains []Drain `json:"drains"`
}

type DrainRequest struct {
	Broker string `json:"broker"`
	VHost  string `json:"vhost"`
	Queue  string `json:"queue"`
	Origin string `json:"origin"`
	Count  int    `json:"count"`
}
