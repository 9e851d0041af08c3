package api

// Import is the answer of POST /letters/import: numbers of lines.
type Import struct {
	Imported     int           `json:"imported"`
	AlreadyThere int           `json:"already_there"`
	SkippedCount int           `json:"skipped_count"`
	Skipped      []SkippedLine `json:"skipped"`
}

// SkippedLine is a line that was left out, in the answer of POST /letters/import.
type SkippedLine struct {
	Line   int    `json:"line"`             // from 1
	Letter string `json:"letter,omitempty"` // its id, where it can be read
	Reason string `json:"reason"`
}
