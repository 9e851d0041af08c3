package web

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/payload"
)

// Typed counts letters by type, and lists what was known of types once.
type Typed interface {
	TypeCounts(ctx context.Context, types []string) (map[string]int, error) // nil: all
	RemovedSchemas(ctx context.Context) ([]deadletter.SchemaVersion, error) // last removed first
}

// Schemas is the life of descriptor sets. Upload and Remove pass the gate, deadletter.Allow.
type Schemas interface {
	Status() deadletter.SchemaStatus
	Upload(ctx context.Context, by deadletter.Principal, name string, file []byte, fileName string, dryRun bool) (payload.Change, deadletter.SchemaEffect, error)
	Remove(ctx context.Context, by deadletter.Principal, name string, dryRun bool) (deadletter.SchemaEffect, error)
}

// schemas is where descriptor sets are, if there are any.
func (w *Web) schemas() (Schemas, error) {
	if w.Schemas == nil {
		return nil, deadletter.ErrUnavailable
	}
	return w.Schemas, nil
}

type apiSet struct {
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

type apiRemovedSet struct {
	Name      string                  `json:"name"`
	Version   string                  `json:"version"`
	Source    deadletter.SchemaSource `json:"source"`
	Detail    string                  `json:"detail"`
	By        string                  `json:"by"`
	At        time.Time               `json:"at"`
	RemovedAt time.Time               `json:"removed_at"`
}

type apiSchemaServer struct {
	Address string    `json:"address"`
	AskedAt time.Time `json:"asked_at,omitzero"`
	Problem string    `json:"problem"`
}

type apiHit struct {
	Type  string `json:"type"`
	Set   string `json:"set"`
	Field string `json:"field,omitempty"`
	Is    string `json:"is,omitempty"`
}

const (
	namedTypes = 1000 // types of a set that an answer names; search finds the others
	maxSearch  = 200  // bytes of a word to search for
)

// apiTypes is GET /types?q=: the sets with their versions, what is wrong with them, how many letters there are by type, and with q the types and fields whose names hold that word.
func (w *Web) apiTypes(r *http.Request) (any, error) {
	form, err := parameters(r, "q")
	if err != nil {
		return nil, err
	}
	word := form.Get("q")
	if len(word) > maxSearch {
		return nil, invalid("q has at most %d bytes", maxSearch)
	}
	schemas, err := w.schemas()
	if err != nil {
		return nil, err
	}
	status := schemas.Status()
	out := struct {
		Sets      []apiSet          `json:"sets"` // by name, newest version first
		Removed   []apiRemovedSet   `json:"removed"`
		Directory string            `json:"directory"`
		Servers   []apiSchemaServer `json:"servers"`
		Problems  []string          `json:"problems"`
		Letters   map[string]int    `json:"letters"` // by type
		Hits      []apiHit          `json:"hits"`
		More      bool              `json:"more"` // hits that are left out
	}{[]apiSet{}, []apiRemovedSet{}, status.Directory, []apiSchemaServer{}, append([]string{}, status.Problems...), nil, []apiHit{}, false}
	types := w.Decoder().Types
	for _, s := range types.Sets() {
		v := apiSet{s.Name, s.Version, s.Current, s.Source, s.Detail, s.By, utc(s.At), utc(s.CurrentAt), s.Files, len(s.Types), []string{}}
		if s.Current {
			v.Types = append(v.Types, s.Types[:min(namedTypes, len(s.Types))]...)
		}
		out.Sets = append(out.Sets, v)
	}
	for _, s := range status.Servers {
		out.Servers = append(out.Servers, apiSchemaServer{s.Address, utc(s.At), s.Problem})
	}
	removed, err := w.Store.RemovedSchemas(r.Context())
	if err != nil {
		return nil, err
	}
	for _, v := range removed {
		out.Removed = append(out.Removed, apiRemovedSet{v.Name, v.Version, v.Source, v.Detail, v.By, v.At, v.RemovedAt})
	}
	if out.Letters, err = w.Store.TypeCounts(r.Context(), nil); err != nil {
		return nil, err
	}
	hits, more := types.Find(word)
	for _, h := range hits {
		out.Hits = append(out.Hits, apiHit(h))
	}
	out.More = more
	return out, nil
}

type apiDefinition struct {
	Set     string `json:"set"`
	Version string `json:"version"`
	Current bool   `json:"current"`
	File    string `json:"file"`
	Fields  int    `json:"fields"`
}

// apiTypeSource is GET /types/proto?type=: a type as .proto, with its comments, and the sets that define it.
func (w *Web) apiTypeSource(r *http.Request) (any, error) {
	form, err := parameters(r, "type")
	if err != nil {
		return nil, err
	}
	name := form.Get("type")
	if name == "" {
		return nil, invalid("type is the name of a message type, such as acme.notify.v1.EmailRequested")
	}
	done, err := w.turn(r.Context())
	if err != nil {
		return nil, err
	}
	defer done()
	source, err := w.Decoder().Types.Source(name)
	switch {
	case errors.Is(err, payload.ErrNoType):
		return nil, invalid("%s: %v; GET /types?q= finds types", deadletter.Visible(deadletter.Cut(name, 200)), err)
	case errors.Is(err, payload.ErrSchemaTooLarge):
		return nil, invalid("%v", err)
	case err != nil:
		return nil, err
	}
	counts, err := w.Store.TypeCounts(r.Context(), []string{source.Type})
	if err != nil {
		return nil, err
	}
	out := struct {
		Type        string          `json:"type"`
		Text        string          `json:"text"`
		Cut         bool            `json:"cut"`
		Letters     int             `json:"letters"`
		Definitions []apiDefinition `json:"definitions"` // the first is shown
	}{source.Type, source.Text, source.Cut, counts[source.Type], []apiDefinition{}}
	for _, d := range source.Definitions {
		out.Definitions = append(out.Definitions, apiDefinition(d))
	}
	return out, nil
}
