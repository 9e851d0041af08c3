package api

import (
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// View is a query that a person saved. The response to GET /views contains it.
type View struct {
	ID    int64     `json:"id"`
	Name  string    `json:"name"`
	Query string    `json:"query"`
	Mine  bool      `json:"mine"` // only the person who saved the view can see it
	By    string    `json:"by"`
	At    time.Time `json:"at"`
}

// NewView converts a view to the JSON form of the API.
func NewView(v deadletter.View) View {
	return View{ID: v.ID, Name: v.Name, Query: v.Query, Mine: v.Owner != "", By: v.By, At: v.At}
}

// Views is the response to GET /views.
type Views struct {
	Views []View `json:"views"`
}

// ViewRequest is the body of POST /views.
type ViewRequest struct {
	Name  string `json:"name"`
	Query string `json:"query"`
	Mine  bool   `json:"mine,omitzero"` // only the person who saves the view can see it
}
