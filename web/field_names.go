package web

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/payload"
	"github.com/deadletteroffice/dlo/internal/query"
)

const (
	// maximum number of newest letters, and of types, that are read for the names of fields
	namedLetters = 20
	namedBytes   = 1 << 20          // maximum size of the bodies of these letters together, in bytes
	namesHold    = 30 * time.Second // how long a result is used again; requests repeat while a person types
	namedValues  = 20               // maximum number of values for each field
)

// fieldNames caches the names of headers and body fields that letters have. It also caches some of
// their values, masked.
type fieldNames struct {
	mu      sync.Mutex
	at      time.Time
	decoder *payload.Decoder // with this decoder, and after this many changes of the types, the letters were read
	changes int64
	known   map[string][]string // distinct values by header.NAME or body.PATH
}

// fieldNamesNow returns the names of the headers and body fields of letters, with some of their
// values. For this, it reads the newest letters, and the newest letter of each of the most frequent
// types.
func (w *Web) fieldNamesNow(ctx context.Context, counted deadletter.Facets) (map[string][]string, error) {
	w.names.mu.Lock()
	defer w.names.mu.Unlock()
	whole := deadletter.ScopeOf(ctx).Everywhere()
	d := w.Decoder()
	changes := d.Types.Changes()
	if whole && w.names.known != nil && time.Since(w.names.at) < namesHold &&
		w.names.decoder == d && w.names.changes == changes { // other types may hide other values
		return w.names.known, nil
	}
	done, err := w.waitForPlace(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	ids, err := w.sampledLetters(ctx, counted)
	if err != nil {
		return nil, err
	}
	known := map[string][]string{}
	for _, id := range ids {
		values, err := w.valuesOf(ctx, id)
		if err != nil {
			return nil, err
		}
		for name, value := range values {
			if !strings.HasPrefix(name, "header.") {
				if slices.Contains(propertyNames, name) {
					continue
				}
				name = "body." + name
			}
			if !slices.Contains(known[name], value) && len(known[name]) < namedValues {
				known[name] = append(known[name], value)
			}
		}
	}
	if whole {
		w.names.known, w.names.at, w.names.decoder, w.names.changes = known, time.Now(), d, changes
	}
	return known, nil
}

// sampledLetters returns the letters whose fields are offered as completions.
func (w *Web) sampledLetters(ctx context.Context, counted deadletter.Facets) ([]deadletter.ID, error) {
	queries := []query.Query{{}}
	for _, f := range counted.Fields {
		if query.Field(f.Field) == query.Type {
			for _, v := range f.Values[:min(len(f.Values), namedLetters)] {
				queries = append(queries, (query.Query{}).With(query.Type, v.Value))
			}
		}
	}
	var ids []deadletter.ID
	bytes := 0
	for i, q := range queries {
		limit := 1
		if i == 0 {
			limit = namedLetters
		}
		rows, _, _, err := w.Store.Letters(ctx, q, deadletter.Page{Limit: limit})
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			if bytes += r.Size; bytes <= namedBytes && !slices.Contains(ids, r.ID) {
				ids = append(ids, r.ID)
			}
		}
	}
	return ids, nil
}
