package api

import (
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/descriptor"
	"github.com/deadletteroffice/dlo/internal/payload"
)

// Types is the response to GET /types.
type Types struct {
	// sorted by name; of each set, the newest version first, and of this one the first 1,000 types
	Sets      []descriptor.Set           `json:"sets"`
	Removed   []deadletter.SchemaVersion `json:"removed"`
	Directory string                     `json:"directory"`
	Servers   []deadletter.SchemaServer  `json:"servers"`
	Problems  []string                   `json:"problems"`
	Letters   map[string]int             `json:"letters"` // number of letters of each type
	Hits      []descriptor.Hit           `json:"hits"`
	More      bool                       `json:"more"`  // there are hits that are omitted
	Paths     []string                   `json:"paths"` // the word as a path of bodies, with the names in the schemas
}

// TypeSource is the response to GET /types/proto.
type TypeSource struct {
	descriptor.Source
	Letters int `json:"letters"` // number of letters of this type
}

// Upload is the response to POST /types. It contains the changes that a descriptor set makes, or
// would make.
type Upload struct {
	descriptor.Change
	deadletter.SchemaEffect
	DryRun        bool `json:"dry_run"`
	AddedCount    int  `json:"added_count"`
	ChangedCount  int  `json:"changed_count"`
	RemovedCount  int  `json:"removed_count"`
	ConflictCount int  `json:"conflict_count"`
}

// Removal is the response to DELETE /types/{set}.
type Removal struct {
	Set    string `json:"set"`
	DryRun bool   `json:"dry_run"`
	deadletter.SchemaEffect
}

// MatchRequest is the body of POST /types/match.
type MatchRequest struct {
	Body            []byte `json:"body"`
	ContentType     string `json:"content_type,omitzero"`
	ContentEncoding string `json:"content_encoding,omitzero"`
	Type            string `json:"type,omitzero"` // the type property
	Queue           string `json:"queue,omitzero"`
	Key             string `json:"key,omitzero"`
	As              string `json:"as,omitzero"` // decode the body as this type
}

// MatchAnswer is the response to POST /types/match.
type MatchAnswer struct {
	payload.Ranking
	Steps   []payload.Step `json:"steps"`
	Text    string         `json:"text"`
	Decoded Decoded        `json:"decoded"`
}
