package web

import (
	"cmp"
	"context"
	"net/http"
	"slices"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/payload"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/web/view"
)

const (
	sharedOf     = 60      // newest letters that are read
	sharedBytes  = 1 << 20 // of their bodies together
	sharedFields = 400     // fields of one letter
	sharedShown  = 12
	sharedValue  = 80 // bytes of a value; longer ones are not compared
)

// shared reads the newest letters of a group and says what they have in common: fields of the body,
// headers and properties, under their masks. sampled is how many letters that were. Bodies that
// make it too much are left out.
func (w *Web) shared(r *http.Request, id deadletter.GroupID) (list []view.Shared, sampled int, err error) {
	ctx := r.Context()
	done, err := w.turn(ctx)
	if err != nil {
		return nil, 0, err
	}
	defer done()
	q := (query.Query{}).With(query.Group, id.String()).With(query.State, string(deadletter.StateDead), string(deadletter.StateHeld))
	rows, _, _, err := w.Store.Letters(ctx, q, deadletter.Page{Limit: sharedOf})
	if err != nil {
		return nil, 0, err
	}
	counts := map[string]map[string]int{}
	bytes := 0
	for i := range rows {
		if bytes += rows[i].Size; bytes > sharedBytes && sampled > 0 {
			break
		}
		values, err := w.valuesOf(ctx, rows[i].ID)
		if err != nil {
			return nil, sampled, err
		}
		sampled++
		for field, value := range values {
			if counts[field] == nil {
				counts[field] = map[string]int{}
			}
			counts[field][value]++
		}
	}
	return commonest(counts, sampled), sampled, nil
}

// commonest are the fields whose most frequent value at least half of the letters have, most first.
func commonest(counts map[string]map[string]int, of int) []view.Shared {
	var list []view.Shared
	for field, values := range counts {
		best := view.Shared{Field: field, Values: len(values)}
		for value, n := range values {
			if n > best.Letters || n == best.Letters && value < best.Value {
				best.Value, best.Letters = value, n
			}
		}
		if of > 1 && 2*best.Letters >= of {
			list = append(list, best)
		}
	}
	slices.SortFunc(list, func(a, b view.Shared) int {
		return cmp.Or(b.Letters-a.Letters, cmp.Compare(a.Field, b.Field))
	})
	return list[:min(len(list), sharedShown)]
}

// valuesOf reads the fields of a letter: of the body as search has them, headers as header.NAME,
// and the properties that people choose.
func (w *Web) valuesOf(ctx context.Context, id deadletter.ID) (map[string]string, error) {
	l, err := w.Store.Letter(ctx, id)
	if err != nil {
		return nil, err
	}
	values := map[string]string{}
	doc := w.Decoder().Letter(&l)
	leaves(doc.Fields, "", values)
	w.hide(&l)
	for i, value := range []string{l.Properties.AppID, l.Properties.Type, l.Properties.ContentType, l.Origin.RoutingKey, l.Origin.Exchange} {
		put(values, propertyNames[i], value)
	}
	for name, value := range l.Arrived.Headers {
		if text, ok := value.(string); ok && !deadletter.BrokerOwned(name) {
			put(values, "header."+name, text)
		}
	}
	return values, nil
}

// propertyNames are the names of the properties that valuesOf reads.
var propertyNames = []string{"app", "type", "content-type", "key", "exchange"}

func put(values map[string]string, name, value string) {
	if value != "" && value != payload.Masked && len(value) <= sharedValue && len(values) < sharedFields {
		values[name] = value
	}
}

// leaves are the single values of a tree, by their paths. Lists are passed over: what they hold
// varies from letter to letter.
func leaves(nodes []payload.Node, prefix string, into map[string]string) {
	for i := range nodes {
		n := &nodes[i]
		if n.Unknown || n.Masked || n.Kind == payload.List || n.Kind == payload.More {
			continue
		}
		if len(n.Children) > 0 {
			leaves(n.Children, prefix+n.Key()+".", into)
		} else if value, ok := n.Scalar(); ok {
			put(into, prefix+n.Key(), value)
		}
	}
}
