package api

// Comparison is the answer of GET /letters/compare: two letters, field by field. What is masked in
// them is masked here.
type Comparison struct {
	A      Row             `json:"a"`
	B      Row             `json:"b"`
	Fields []ComparedField `json:"fields"` // facts, properties, headers, then the body
	Same   int             `json:"same"`   // of them
}

// ComparedField is a field of two letters.
type ComparedField struct {
	Part    string  `json:"part"` // fact, property, header or body
	Path    string  `json:"path"` // "" = the whole body
	A       *string `json:"a"`    // null where only b has it
	B       *string `json:"b"`
	Outcome string  `json:"outcome"` // same, different, only_a, only_b, hidden or unfinished
}
