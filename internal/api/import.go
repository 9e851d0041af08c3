package api

// Import is the response to POST /letters/import. It counts lines.
type Import struct {
	Imported     int           `json:"imported"`
	AlreadyThere int           `json:"already_there"`
	SkippedCount int           `json:"skipped_count"`
	Skipped      []SkippedLine `json:"skipped"`
}

// SkippedLine is a line that an import skipped. The response to POST /letters/import contains it.
type SkippedLine struct {
	Line   int    `json:"line"`             // from 1
	Letter string `json:"letter,omitempty"` // the letter's id, if it could be read
	Reason string `json:"reason"`
}
