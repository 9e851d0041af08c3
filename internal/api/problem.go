package api

import "github.com/deadletteroffice/dlo/internal/deadletter"

// Problem is the response of every failed call, in the format of RFC 9457.
type Problem struct {
	Type     string `json:"type"`
	Title    string `json:"title"`
	Status   int    `json:"status"`
	Detail   string `json:"detail,omitzero"`
	Instance string `json:"instance,omitzero"` // the id of the request, which is also in the log
	Position *int   `json:"position,omitzero"` // byte offset of an error in a query, counted from 0

	Line   int                     `json:"line,omitzero"`   // line of an error in an edit, counted from 1
	Column int                     `json:"column,omitzero"` // column in characters, counted from 1
	Path   string                  `json:"path,omitzero"`   // path of the value that is not valid, or the pointer in a patch
	Fields []deadletter.FieldError `json:"fields,omitzero"` // rejected fields of an edit or annotation

	Mistakes []deadletter.Mistake `json:"mistakes,omitzero"` // mistakes in rules, in the order of the text
}
