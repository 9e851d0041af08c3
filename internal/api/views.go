package api

import (
	"time"
)

type View struct {
	ID    int64     `json:"id"`
	Name  string    `json:"name"`
	Query string    `json:"query"`
	By    string    `json:"by"`
	At    time.Time `json:"at"`
}

type Views struct {
	Views []View `json:"views"`
}

type ViewRequest struct {
	Name  string `json:"name"`
	Query string `json:"query"`
}
