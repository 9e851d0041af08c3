package api

// Import is the response to POST /letters/import. Each line of the request contains one letter, and
// the response says how many lines were imported, were already there or were skipped.
type Import struct {
	Imported     int           `json:"imported"`
	AlreadyThere int           `json:"already_there"`
	SkippedCount int           `json:"skipped_count"`
	Skipped      []SkippedLine `json:"skipped"`
}

// SkippedLine is a line that an import skipped. The response to POST /letters/import contains it.
type SkippedLine struct {
	Line   int    `json:"line"`            // counted from 1
	Letter string `json:"letter,omitzero"` // id of the letter, if dlo could read it
	Reason string `json:"reason"`
}
