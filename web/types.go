package web

import (
	"context"
	"errors"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/descriptor"
)

const (
	namedTypes = 1000 // maximum number of types of a set in a response; a search finds the others
	maxSearch  = 200  // maximum number of bytes of a search word
)

// listTypes returns the registered sets with their versions, the problems with sets, and the number
// of letters of each type. With q, a word, it also returns the types and fields whose names contain
// it, and the paths of bodies that it may mean.
func (w *Web) listTypes(ctx context.Context, in *struct {
	Q string `query:"q" maxLength:"200"`
},
) (*reply[api.Types], error) {
	word := in.Q
	status := w.Schemas.Status()
	types := w.Decoder().Types
	out := api.Types{
		Sets:      types.Sets(),
		Directory: status.Directory,
		Problems:  status.Problems,
		Servers:   status.Servers,
		Paths:     types.Paths(word),
	}
	for i := range out.Sets {
		s := &out.Sets[i]
		if !s.Current {
			s.Types = nil
		}
		s.Types = s.Types[:min(namedTypes, len(s.Types))]
	}
	var err error
	if out.Removed, err = w.Store.RemovedSchemas(ctx); err != nil {
		return nil, err
	}
	if out.Letters, err = w.Store.TypeCounts(ctx, nil); err != nil {
		return nil, err
	}
	out.Hits, out.More = types.Find(word)
	return &reply[api.Types]{out}, nil
}

// getProto returns a message type as .proto, with comments and nested types, and the sets that
// define it. type is its full name, or the short one where only one type has it. The text is
// generated from the descriptors, so comments of the source may be missing.
func (w *Web) getProto(ctx context.Context, in *struct {
	Type string `query:"type"`
},
) (*reply[api.TypeSource], error) {
	name := in.Type
	if name == "" {
		return nil, invalid("type must be the name of a message type, for example acme.notify.v1.EmailRequested")
	}
	done, err := w.waitForPlace(ctx)
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
	counts, err := w.Store.TypeCounts(ctx, []string{source.Type})
	if err != nil {
		return nil, err
	}
	return &reply[api.TypeSource]{api.TypeSource{Source: source, Letters: counts[source.Type]}}, nil
}
