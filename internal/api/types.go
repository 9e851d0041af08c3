package api

import (
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

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
	Types     []string                `json:"types"` // of a current version, at most namedTypes
}

type RemovedSet struct {
	Name      string                  `json:"name"`
	Version   string                  `json:"version"`
	Source    deadletter.SchemaSource `json:"source"`
	Detail    string                  `json:"detail"`
	By        string                  `json:"by"`
	At        time.Time               `json:"at"`
	RemovedAt time.Time               `json:"removed_at"`
}

type SchemaServer struct {
	Address string    `json:"address"`
	AskedAt time.Time `json:"asked_at,omitzero"`
	Problem string    `json:"problem"`
}

type TypeHit struct {
	Type  string `json:"type"`
	Set   string `json:"set"`
	Field string `json:"field,omitempty"`
	Is    string `json:"is,omitempty"`
}

type TypeDefinition struct {
	Set     string `json:"set"`
	Version string `json:"version"`
	Current bool   `json:"current"`
	File    string `json:"file"`
	Fields  int    `json:"fields"`
}

type Types struct {
	Sets      []SchemaSet    `json:"sets"` // by name, newest version first
	Removed   []RemovedSet   `json:"removed"`
	Directory string         `json:"directory"`
	Servers   []SchemaServer `json:"servers"`
	Problems  []string       `json:"problems"`
	Letters   map[string]int `json:"letters"` // by type
	Hits      []TypeHit      `json:"hits"`
	More      bool           `json:"more"` // hits that are left out
}

type TypeSource struct {
	Type        string           `json:"type"`
	Text        string           `json:"text"`
	Cut         bool             `json:"cut"`
	Letters     int              `json:"letters"`
	Definitions []TypeDefinition `json:"definitions"` // the first is shown
}

type TypeChange struct {
	Type        string   `json:"type"`
	Set         string   `json:"set,omitempty"` // the other one, of a conflict
	Differences []string `json:"differences"`
	More        int      `json:"more"`
}

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
	Letters       int          `json:"letters"`
	Sampled       int          `json:"sampled"`
	Readable      int          `json:"readable"`
}

type Removal struct {
	Set       string `json:"set"`
	DryRun    bool   `json:"dry_run"`
	TypeCount int    `json:"type_count"`
	Letters   int    `json:"letters"`
}

type Match struct {
	Type    string   `json:"type"`
	Score   float64  `json:"score"`
	Reasons []string `json:"reasons"`
}

type ReadStep struct {
	OK   bool   `json:"ok"`
	Text string `json:"text"`
}

type MatchRequest struct {
	Body            []byte `json:"body"`
	ContentType     string `json:"content_type"`
	ContentEncoding string `json:"content_encoding"`
	Type            string `json:"type"`
	Queue           string `json:"queue"`
	Key             string `json:"key"`
	As              string `json:"as"`
}

type MatchAnswer struct {
	Verdict string     `json:"verdict"`
	Why     string     `json:"why"`
	Types   int        `json:"types"`
	Matches []Match    `json:"matches"`
	Steps   []ReadStep `json:"steps"`
	Text    string     `json:"text"`
	Decoded Decoded    `json:"decoded"`
}
