package api

// Problem is the response of every failed call, in the format of RFC 9457.
type Problem struct {
	Type     string `json:"type"`
	Title    string `json:"title"`
	Status   int    `json:"status"`
	Detail   string `json:"detail,omitempty"`
	Instance string `json:"instance,omitempty"` // the id of the request, which is also in the log
	Position *int   `json:"position,omitempty"` // byte offset of an error in a query, counted from 0

	Line   int          `json:"line,omitempty"`   // line of an error in an edit, counted from 1
	Column int          `json:"column,omitempty"` // column in characters, counted from 1
	Path   string       `json:"path,omitempty"`   // path of the value that is not valid, or the pointer in a patch
	Fields []FieldError `json:"fields,omitempty"` // rejected fields of an edit or annotation

	Mistakes []Mistake `json:"mistakes,omitempty"` // mistakes in rules, in the order of the text
}

// Mistake is one error in the text of rules. It is a part of a Problem.
type Mistake struct {
	Line   int    `json:"line,omitempty"`   // counted from 1; missing = the mistake concerns the whole text
	Column int    `json:"column,omitempty"` // column in characters, counted from 1
	Text   string `json:"text"`
}

// FieldError is a property, a header or a member that was rejected. It is a part of a Problem.
type FieldError struct {
	Field string `json:"field"`
	Why   string `json:"why"`
}
