package api

// Comparison is the response to GET /letters/compare: two letters, field by field. Values that are
// masked in the letters are masked here too.
type Comparison struct {
	A      Row             `json:"a"`
	B      Row             `json:"b"`
	Fields []ComparedField `json:"fields"` // facts, properties, headers, then the body
	Same   int             `json:"same"`   // number of equal fields
}

// ComparedField is a field compared between two letters.
type ComparedField struct {
	Part    string  `json:"part"` // fact, property, header or body
	Path    string  `json:"path"` // "" = the whole body
	A       *string `json:"a"`    // null if only b has it
	B       *string `json:"b"`
	Outcome string  `json:"outcome"` // same, different, only_a, only_b, hidden or unfinished
}
