package api

// Problem is the answer of every call that fails, as RFC 9457 has it.
type Problem struct {
	Type     string `json:"type"`
	Title    string `json:"title"`
	Status   int    `json:"status"`
	Detail   string `json:"detail,omitempty"`
	Instance string `json:"instance,omitempty"` // names the request in the log
	Position *int   `json:"position,omitempty"` // of a mistake in a query: its first byte, from 0

	Line   int          `json:"line,omitempty"`   // of a mistake in an edit, from 1
	Column int          `json:"column,omitempty"` // characters, from 1
	Path   string       `json:"path,omitempty"`   // of its value, or the pointer of a patch
	Fields []FieldError `json:"fields,omitempty"` // of an edit or an annotation that are refused

	Mistakes []Mistake `json:"mistakes,omitempty"` // in the text of rules, in its order
}

// Mistake is one thing that is wrong in a text of rules, in a Problem.
type Mistake struct {
	Line   int    `json:"line,omitempty"`   // from 1; absent: it is of the whole text
	Column int    `json:"column,omitempty"` // characters, from 1
	Text   string `json:"text"`
}

// FieldError is a property, a header or a member that is refused, in a Problem.
type FieldError struct {
	Field string `json:"field"`
	Why   string `json:"why"`
}
