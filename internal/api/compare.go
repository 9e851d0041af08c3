package api

// Comparison is the response to GET /letters/compare. It compares two letters field by field.
// Values that are masked in the letters are masked here too.
type Comparison struct {
	A      Row             `json:"a"`
	B      Row             `json:"b"`
	Fields []ComparedField `json:"fields"` // facts first, then properties, headers and the body
	Same   int             `json:"same"`   // the number of equal fields
}

// ComparedField is the comparison of one field of two letters.
type ComparedField struct {
	Part    string  `json:"part"` // fact, property, header or body
	Path    string  `json:"path"` // "" = the whole body
	A       *string `json:"a"`    // null = only b has the field
	B       *string `json:"b"`
	Outcome string  `json:"outcome"` // same, different, only_a, only_b, hidden or unfinished
}
