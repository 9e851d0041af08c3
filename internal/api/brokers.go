package api

import "github.com/deadletteroffice/dlo/internal/deadletter"

// Brokers is the response to GET /brokers.
type Brokers struct {
	Brokers []deadletter.BrokerStatus `json:"brokers"`
}

// Doctor is the response to GET /doctor.
type Doctor struct {
	Checks []deadletter.Checkup `json:"checks"`
}
