package api

import "github.com/deadletteroffice/dlo/internal/deadletter"

// GroupDetail is the response to GET /groups/{id}. It contains everything that is known about a
// group.
type GroupDetail struct {
	deadletter.Group
	deadletter.GroupValues
	Operations []Operation `json:"operations"`
}

// Groups is a page of GET /groups.
type Groups struct {
	Groups []deadletter.GroupRow `json:"groups"`
	Next   string                `json:"next"` // cursor of the next page; "" = this is the last page
}
