package api

import (
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// SchemaSet is a version of a descriptor set. The response to GET /types contains it.
type SchemaSet struct {
	Name      string                  `json:"name"`
	Version   string                  `json:"version"`
	Current   bool                    `json:"current"`
	Source    deadletter.SchemaSource `json:"source"`
	Detail    string                  `json:"detail"`
	By        string                  `json:"by"`
	At        time.Time               `json:"at,omitzero"`
	CurrentAt time.Time               `json:"current_at,omitzero"`
	Files     int                     `json:"files"`
	TypeCount int                     `json:"type_count"`
	Types     []string                `json:"types"` // set only for the current version; the first 1,000 types
}

// RemovedSet is a version of a descriptor set that is no longer in use. The response to GET /types
// contains it.
type RemovedSet struct {
	Name      string                  `json:"name"`
	Version   string                  `json:"version"`
	Source    deadletter.SchemaSource `json:"source"`
	Detail    string                  `json:"detail"`
	By        string                  `json:"by"`
	At        time.Time               `json:"at"`
	RemovedAt time.Time               `json:"removed_at"`
}

// SchemaServer is a gRPC server that dlo asks for types. The response to GET /types contains it.
type SchemaServer struct {
	Address string    `json:"address"`
	AskedAt time.Time `json:"asked_at,omitzero"`
	Problem string    `json:"problem"`
}

// TypeHit is a type or a field whose name contains the word that was searched for. The response to
// GET /types contains it.
type TypeHit struct {
	Type  string `json:"type"`
	Set   string `json:"set"`
	Field string `json:"field,omitzero"`
	Is    string `json:"is,omitzero"`
}

// TypeDefinition is one definition of a type, and the set that contains it. The response to GET
// /types/proto contains it.
type TypeDefinition struct {
	Set     string `json:"set"`
	Version string `json:"version"`
	Current bool   `json:"current"`
	File    string `json:"file"`
	Fields  int    `json:"fields"` // number of fields
}

// Types is the response to GET /types.
type Types struct {
	Sets      []SchemaSet    `json:"sets"` // sorted by name; of each set, the newest version first
	Removed   []RemovedSet   `json:"removed"`
	Directory string         `json:"directory"`
	Servers   []SchemaServer `json:"servers"`
	Problems  []string       `json:"problems"`
	Letters   map[string]int `json:"letters"` // number of letters of each type
	Hits      []TypeHit      `json:"hits"`
	More      bool           `json:"more"`  // there are hits that are omitted
	Paths     []string       `json:"paths"` // the word as a path of bodies, with the names in the schemas
}

// TypeSource is the response to GET /types/proto.
type TypeSource struct {
	Type        string           `json:"type"`
	Text        string           `json:"text"`
	Cut         bool             `json:"cut"`
	Letters     int              `json:"letters"`     // number of letters of this type
	Definitions []TypeDefinition `json:"definitions"` // all definitions; pages show the first one
}

// TypeChange is a type that a descriptor set changes. The response to POST /types contains it.
type TypeChange struct {
	Type        string   `json:"type"`
	Set         string   `json:"set,omitzero"` // for a conflict, the name of the other set
	Differences []string `json:"differences"`
	More        int      `json:"more"` // number of differences that are omitted
}

// Upload is the response to POST /types. It contains the changes that a descriptor set makes, or
// would make.
type Upload struct {
	Set           string       `json:"set"`
	Version       string       `json:"version"`
	DryRun        bool         `json:"dry_run"`
	Known         string       `json:"known"`
	TypeCount     int          `json:"type_count"`
	Files         int          `json:"files"`
	AddedCount    int          `json:"added_count"`
	ChangedCount  int          `json:"changed_count"`
	RemovedCount  int          `json:"removed_count"`
	ConflictCount int          `json:"conflict_count"`
	Added         []string     `json:"added"`
	Changed       []TypeChange `json:"changed"`
	Removed       []string     `json:"removed"`
	Conflicts     []TypeChange `json:"conflicts"`
	Letters       int          `json:"letters"` // number of letters whose type changes
	// number of letters without a type that were decoded with the set as a test
	Sampled  int `json:"sampled"`
	Readable int `json:"readable"` // number of these letters that the set can decode
}

// Removal is the response to DELETE /types/{set}.
type Removal struct {
	Set       string `json:"set"`
	DryRun    bool   `json:"dry_run"`
	TypeCount int    `json:"type_count"`
	Letters   int    `json:"letters"` // number of letters that have one of the types
}

// Match is a type that can decode a body. The responses to POST /types/match and GET /letters/{id}
// contain it.
type Match struct {
	Type    string   `json:"type"`
	Score   float64  `json:"score"` // from 0 to 1; above 0.9 only if there is more evidence than the shape of the body
	Reasons []string `json:"reasons"`
}

// Matching counts message types that may fit a body. The responses to POST /types/match and GET
// /letters/{id} contain it.
type Matching struct {
	Tied int `json:"tied,omitzero"` // number of types that can decode the body equally well
	// number of types that were not compared because the body is too large
	NotCompared int `json:"not_compared,omitzero"`
}

// ReadStep is one step in decoding a body. The response to POST /types/match contains it.
type ReadStep struct {
	OK   bool   `json:"ok"`
	Text string `json:"text"`
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
	Verdict string `json:"verdict"`
	Why     string `json:"why"`
	Types   int    `json:"types"` // number of registered types
	Matching
	Matches []Match    `json:"matches"`
	Steps   []ReadStep `json:"steps"`
	Text    string     `json:"text"`
	Decoded Decoded    `json:"decoded"`
}
