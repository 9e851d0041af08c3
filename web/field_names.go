package web

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
)

const (
	namedLetters = 20               // maximum number of newest letters that are read for field names, and of types
	namedBytes   = 1 << 20          // maximum total size of the letters' bodies
	namesHold    = 30 * time.Second // how long a result is reused, because requests repeat while a person types
	namedValues  = 20               // per field
)

// fieldNames caches the names of the headers and body fields that letters have. It also caches some
// of their values, with masks applied.
type fieldNames struct {
	mu    sync.Mutex
	at    time.Time
	known map[string][]string // header.NAME, body.PATH -> distinct values
}

// fieldNamesNow returns the names of the headers and body fields of the newest letters, and some of
// their values. It also reads the newest letter of each of the most frequent types.
func (w *Web) fieldNamesNow(ctx context.Context, counted deadletter.Facets) (map[string][]string, error) {
	w.names.mu.Lock()
	defer w.names.mu.Unlock()
	whole := deadletter.ScopeOf(ctx).Everywhere()
	if whole && w.names.known != nil && time.Since(w.names.at) < namesHold {
		return w.names.known, nil
	}
	done, err := w.turn(ctx)
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
		w.names.known, w.names.at = known, time.Now()
	}
	return known, nil
}

// sampledLetters returns the letters whose fields completions offer.
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
