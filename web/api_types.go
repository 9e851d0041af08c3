package web

import (
	"context"
	"errors"
	"net/http"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/descriptor"
)

// Typed counts letters by message type, and lists the descriptor sets that were removed.
type Typed interface {
	TypeCounts(ctx context.Context, types []string) (map[string]int, error) // nil = all types
	RemovedSchemas(ctx context.Context) ([]deadletter.SchemaVersion, error) // sorted by time of removal, newest first
}

// Schemas manages descriptor sets. Upload and Remove check the permission with deadletter.Allow.
type Schemas interface {
	Status() deadletter.SchemaStatus
	Upload(
		ctx context.Context, by deadletter.Principal, name string, file []byte, fileName string, dryRun bool,
	) (descriptor.Change, deadletter.SchemaEffect, error)
	Remove(ctx context.Context, by deadletter.Principal, name string, dryRun bool) (deadletter.SchemaEffect, error)
}

// schemas returns the field Schemas, which gives access to the message types. If it is nil, schemas
// returns ErrUnavailable.
func (w *Web) schemas() (Schemas, error) {
	if w.Schemas == nil {
		return nil, deadletter.ErrUnavailable
	}
	return w.Schemas, nil
}

const (
	namedTypes = 1000 // maximum number of types of a set in a response; a search finds the others
	maxSearch  = 200  // maximum number of bytes of a search word
)

// apiTypes handles GET /types?q=. It returns the sets with their versions, the problems with sets,
// and the number of letters of each type. If q is given, it also returns the types and fields whose
// names contain q, and the paths of bodies that q may mean.
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
	out := api.Types{
		Sets:      []api.SchemaSet{},
		Directory: status.Directory,
		Problems:  append([]string{}, status.Problems...),
	}
	types := w.Decoder().Types
	for _, s := range types.Sets() {
		v := api.SchemaSet{
			Name:      s.Name,
			Version:   s.Version,
			Current:   s.Current,
			Source:    s.Source,
			Detail:    s.Detail,
			By:        s.By,
			At:        api.At(s.At),
			CurrentAt: api.At(s.CurrentAt),
			Files:     s.Files,
			TypeCount: len(s.Types),
			Types:     []string{},
		}
		if s.Current {
			v.Types = append(v.Types, s.Types[:min(namedTypes, len(s.Types))]...)
		}
		out.Sets = append(out.Sets, v)
	}
	out.Servers = each(status.Servers, func(s deadletter.SchemaServer) api.SchemaServer {
		return api.SchemaServer{Address: s.Address, AskedAt: api.At(s.At), Problem: s.Problem}
	})
	removed, err := w.Store.RemovedSchemas(r.Context())
	if err != nil {
		return nil, err
	}
	out.Removed = each(removed, func(v deadletter.SchemaVersion) api.RemovedSet {
		return api.RemovedSet{
			Name:      v.Name,
			Version:   v.Version,
			Source:    v.Source,
			Detail:    v.Detail,
			By:        v.By,
			At:        api.At(v.At),
			RemovedAt: api.At(v.RemovedAt),
		}
	})
	if out.Letters, err = w.Store.TypeCounts(r.Context(), nil); err != nil {
		return nil, err
	}
	hits, more := types.Find(word)
	out.Hits, out.More = each(hits, func(h descriptor.Hit) api.TypeHit { return api.TypeHit(h) }), more
	out.Paths = append([]string{}, types.Paths(word)...)
	return out, nil
}

// apiTypeSource handles GET /types/proto?type=. It returns a type in .proto syntax with its
// comments, and the sets that define the type.
func (w *Web) apiTypeSource(r *http.Request) (any, error) {
	form, err := parameters(r, "type")
	if err != nil {
		return nil, err
	}
	name := form.Get("type")
	if name == "" {
		return nil, invalid("type must be the name of a message type, for example acme.notify.v1.EmailRequested")
	}
	done, err := w.waitForPlace(r.Context())
	if err != nil {
		return nil, err
	}
	defer done()
	source, err := w.Decoder().Types.Source(name)
	switch {
	case errors.Is(err, descriptor.ErrNoType):
		return nil, invalid("%s: %v; GET /types?q= finds types", deadletter.Visible(deadletter.Cut(name, 200)), err)
	case errors.Is(err, descriptor.ErrSchemaTooLarge):
		return nil, invalid("%v", err)
	case err != nil:
		return nil, err
	}
	counts, err := w.Store.TypeCounts(r.Context(), []string{source.Type})
	if err != nil {
		return nil, err
	}
	definition := func(d descriptor.Definition) api.TypeDefinition { return api.TypeDefinition(d) }
	return api.TypeSource{
		Type:        source.Type,
		Text:        source.Text,
		Cut:         source.Cut,
		Letters:     counts[source.Type],
		Definitions: each(source.Definitions, definition),
	}, nil
}
