package api

import "time"

// View is a saved query, in GET /views.
type View struct {
	ID    int64     `json:"id"`
	Name  string    `json:"name"`
	Query string    `json:"query"`
	By    string    `json:"by"`
	At    time.Time `json:"at"`
}

// Views is the response to GET /views.
type Views struct {
	Views []View `json:"views"`
}

// ViewRequest is the body of POST /views.
type ViewRequest struct {
	Name  string `json:"name"`
	Query string `json:"query"`
}
