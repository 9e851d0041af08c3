package api

import "github.com/deadletteroffice/dlo/internal/deadletter"

// Views is the response to GET /views.
type Views struct {
	Views []deadletter.View `json:"views"`
}

// ViewRequest is the body of POST /views.
type ViewRequest struct {
	Name  string `json:"name"`
	Query string `json:"query"`
	Mine  bool   `json:"mine,omitzero"` // only the person who saves the view can see it
}
