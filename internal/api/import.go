package api

type Import struct {
	Imported     int           `json:"imported"`
	AlreadyThere int           `json:"already_there"`
	SkippedCount int           `json:"skipped_count"`
	Skipped      []SkippedLine `json:"skipped"`
}

type SkippedLine struct {
	Line   int    `json:"line"`
	Letter string `json:"letter,omitempty"` // its id, where it can be read
	Reason string `json:"reason"`
}
