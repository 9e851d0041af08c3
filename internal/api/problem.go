package api

// Problem is the response of every failed call, in the format of RFC 9457.
type Problem struct {
	Type     string `json:"type"`
	Title    string `json:"title"`
	Status   int    `json:"status"`
	Detail   string `json:"detail,omitzero"`
	Instance string `json:"instance,omitzero"` // the id of the request, which is also in the log
	Position *int   `json:"position,omitzero"` // byte offset of an error in a query, counted from 0

	Line   int          `json:"line,omitzero"`   // line of an error in an edit, counted from 1
	Column int          `json:"column,omitzero"` // column in characters, counted from 1
	Path   string       `json:"path,omitzero"`   // path of the value that is not valid, or the pointer in a patch
	Fields []FieldError `json:"fields,omitzero"` // rejected fields of an edit or annotation

	Mistakes []Mistake `json:"mistakes,omitzero"` // mistakes in rules, in the order of the text
}

// Mistake is one error in the text of rules. It is a part of a Problem.
type Mistake struct {
	Line   int    `json:"line,omitzero"`   // counted from 1; missing = the mistake concerns the whole text
	Column int    `json:"column,omitzero"` // column in characters, counted from 1
	Text   string `json:"text"`
}

// FieldError is a property, a header or a member that was rejected. It is a part of a Problem.
type FieldError struct {
	Field string `json:"field"`
	Why   string `json:"why"`
}
