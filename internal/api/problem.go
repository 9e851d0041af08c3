package api

// Problem is the response of every failed call, in the format of RFC 9457.
type Problem struct {
	Type     string `json:"type"`
	Title    string `json:"title"`
	Status   int    `json:"status"`
	Detail   string `json:"detail,omitempty"`
	Instance string `json:"instance,omitempty"` // identifies the request in the log
	Position *int   `json:"position,omitempty"` // byte offset of a query error, from 0

	Line   int          `json:"line,omitempty"`   // line of an edit error, from 1
	Column int          `json:"column,omitempty"` // characters, from 1
	Path   string       `json:"path,omitempty"`   // path of the invalid value, or a patch pointer
	Fields []FieldError `json:"fields,omitempty"` // rejected fields of an edit or annotation

	Mistakes []Mistake `json:"mistakes,omitempty"` // mistakes in the rules, in text order
}

// Mistake is a part of a Problem: an error in the text of rules.
type Mistake struct {
	Line   int    `json:"line,omitempty"`   // from 1; missing = the whole text
	Column int    `json:"column,omitempty"` // characters, from 1
	Text   string `json:"text"`
}

// FieldError is a part of a Problem: a rejected property, header or member.
type FieldError struct {
	Field string `json:"field"`
	Why   string `json:"why"`
}
