package web

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/a-h/templ"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/web/view"
)

const (
	lookBatch   = 25 // number of letters that are read at once
	lookLetters = 20_000
	lookTime    = 2 * time.Second
)

var errLooking = fmt.Errorf(
	"%w: another search is looking through letters; try again in a few seconds", deadletter.ErrUnavailable,
)

func errLookOrder(t query.Term) error {
	return invalid(
		"body.%s is not indexed, so dlo searches from the newest letter on: leave out the order",
		deadletter.Visible(deadletter.Cut(t.Name, 100)),
	)
}

// look searches the letters that a query selects, newest first, from the given cursor on. It
// returns the letters whose decoded body matches the terms, with masks applied. It stops when it
// has limit letters, at the end of the list, or when it reaches its bounds. It also returns the
// cursor from which the next search continues, or "" at the end of the list.
//
// Only one look runs at a time. Between two batches, look pauses for as long as the last batch has
// taken, but at most 50 ms.
func (w *Web) look(
	ctx context.Context, q query.Query, terms []query.Term, cursor string, limit int,
) (rows []deadletter.Row, how deadletter.Looked, next string, err error) {
	if order := q.Order(); order != "" && order != deadletter.OrderReceived {
		return nil, how, "", errLookOrder(terms[0])
	}
	select {
	case w.looks <- struct{}{}:
		defer func() { <-w.looks }()
	default:
		return nil, how, "", errLooking
	}
	for begun := time.Now(); ; {
		started := time.Now()
		batch, _, older, err := w.Store.Letters(ctx, q, deadletter.Page{
			After: cursor,
			Limit: lookBatch,
			Order: deadletter.OrderReceived,
		})
		if err != nil {
			return nil, how, "", err
		}
		found, err := w.matchingRows(ctx, batch, terms)
		if err != nil {
			return nil, how, "", err
		}
		if room := limit - len(rows); len(found) > room { // the next search begins after the last letter returned
			found = found[:room]
			last := found[room-1]
			batch = batch[:1+slices.IndexFunc(batch, func(r deadletter.Row) bool { return r.ID == last.ID })]
			older = w.Store.CursorAfter(last, deadletter.OrderReceived)
		}
		rows, how.Letters = append(rows, found...), how.Letters+len(batch)
		if len(batch) > 0 {
			how.Back = batch[len(batch)-1].ReceivedAt
		}
		how.All = older == ""
		if cursor = older; how.All || len(rows) >= limit || how.Letters >= lookLetters ||
			time.Since(begun) >= lookTime {
			return rows, how, cursor, nil
		}
		select {
		case <-ctx.Done():
			return nil, how, "", ctx.Err()
		case <-time.After(min(time.Since(started), 50*time.Millisecond)):
		}
	}
}

// matchingRows returns the rows whose letters match the terms. It does not change the given rows.
func (w *Web) matchingRows(ctx context.Context, rows []deadletter.Row, terms []query.Term) ([]deadletter.Row, error) {
	ids := each(rows, func(r deadletter.Row) deadletter.ID { return r.ID })
	letters, err := w.Store.Whole(ctx, ids)
	if err != nil {
		return nil, err
	}
	done, err := w.waitForPlace(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	has := map[deadletter.ID]bool{}
	for i := range letters {
		doc := w.Decoder().Letter(&letters[i])
		has[letters[i].ID] = !slices.ContainsFunc(terms, func(t query.Term) bool {
			value, masked, ok := doc.Value(t.Name)
			return !t.Holds(value, ok && !masked)
		})
	}
	return slices.DeleteFunc(slices.Clone(rows), func(r deadletter.Row) bool { return !has[r.ID] }), nil
}

// lookedFor returns the page with the results of a query that searches fields without an index. The
// page offers no action that could affect more letters than it shows. It also has no facets and no
// histogram, because these would have to count all matching letters.
func (w *Web) lookedFor(
	ctx context.Context, p view.LettersPage, q query.Query, terms []query.Term, after string,
) (templ.Component, error) {
	rows, how, next, err := w.look(ctx, q, terms, after, pageRows)
	if err != nil {
		return nil, err
	}
	for _, t := range terms {
		how.Paths = append(how.Paths, t.Name)
	}
	p.Rows, p.Older, p.Looked, p.Total, p.Exact, p.States = w.hideRows(
		rows,
	), next, &how, len(rows), how.All && after == "", states(q)
	p.Order = deadletter.OrderReceived
	p.Live = false // a live page would repeat this search for each new letter, and the search takes seconds
	return view.Letters(p), nil
}
