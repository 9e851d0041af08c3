package web

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/payload"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/web/view"
)

const (
	unmatchedShown = 20              // the maximum number of queues on the page; one letter of each is decoded
	unmatchedRows  = 50              // the number of newest letters per queue whose sizes are reported
	unmatchedTime  = 2 * time.Second // the time limit for all queues; the page names the queues that it did not reach
)

// unmatched returns the queues with letters for which no message type was found. It describes the
// newest letters of each queue.
func (w *Web) unmatched(
	ctx context.Context, readings []deadletter.ReadCount, several bool,
) (view.UnmatchedQueues, error) {
	var all view.UnmatchedQueues
	at := map[deadletter.Origin]int{}
	for _, r := range readings {
		if r.Reading != deadletter.ReadUnknown && r.Reading != deadletter.ReadAmbiguous {
			continue
		}
		place := deadletter.Origin{Broker: r.Broker, VHost: r.VHost, Queue: r.Queue}
		i, known := at[place]
		if !known {
			i = len(all.Rows)
			at[place] = i
			all.Rows = append(all.Rows, view.UnmatchedQueue{Broker: r.Broker, VHost: r.VHost, Queue: r.Queue})
		}
		all.Rows[i].Letters += r.Letters
		all.Letters += r.Letters
	}
	slices.SortFunc(all.Rows, func(a, b view.UnmatchedQueue) int {
		return cmp.Or(
			cmp.Compare(b.Letters, a.Letters), cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.Broker, b.Broker),
			cmp.Compare(a.VHost, b.VHost),
		)
	})
	if all.More = len(all.Rows) - unmatchedShown; all.More > 0 {
		all.Rows = all.Rows[:unmatchedShown]
	}
	all.More = max(all.More, 0)
	looking, cancel := context.WithTimeout(ctx, unmatchedTime)
	defer cancel()
	for i := range all.Rows {
		err := w.lookAt(looking, &all.Rows[i], several)
		if looking.Err() != nil && ctx.Err() == nil {
			all.Rows[i].Late = all.Rows[i].Shape == ""
			continue
		}
		if err != nil {
			return all, err
		}
	}
	return all, nil
}

// lookAt adds to a row of the page what is known about the newest letters of its queue: their
// number, their sizes, and the shape of the newest body.
func (w *Web) lookAt(ctx context.Context, u *view.UnmatchedQueue, several bool) error {
	q := queueLetters(u.Broker, u.VHost, u.Queue, several).With(
		query.Read, string(deadletter.ReadUnknown), string(deadletter.ReadAmbiguous),
	)
	u.Link = view.LettersURL(q.String(), "", "")
	rows, _, _, err := w.Store.Letters(ctx, q, deadletter.Page{Limit: unmatchedRows})
	if err != nil || len(rows) == 0 {
		return err
	}
	u.Sampled, u.Smallest, u.Largest = len(rows), rows[0].Size, rows[0].Size
	for _, r := range rows {
		u.Smallest, u.Largest = min(u.Smallest, r.Size), max(u.Largest, r.Size)
	}
	if u.Since, err = w.Store.Oldest(ctx, q); err != nil {
		return err
	}
	s, err := w.shapeOf(ctx, rows[0].ID)
	if errors.Is(err, deadletter.ErrNotFound) { // the letter was removed in the meantime
		return nil
	}
	u.Letter, u.Shape, u.Masked, u.Why, u.Closest = rows[0].ID, s.text, s.masked, s.why, s.closest
	return err
}

// shape describes the body of a letter for which no message type was found.
type shape struct {
	text    string
	masked  bool
	why     string
	closest []payload.Match
}

// shapes is a cache for descriptions of letters, because an open page requests the same
// descriptions again and again. It is emptied when types or bindings change.
type shapes struct {
	mu      sync.Mutex
	decoder *payload.Decoder
	changes int64
	at      time.Time
	known   map[deadletter.ID]shape
}

const (
	shapesHold  = time.Minute // the time is limited because letters can be edited
	shapesKnown = 500
)

// find returns the description of a letter if it is in the cache. If types or bindings may have
// changed, find first empties the cache.
func (s *shapes) find(id deadletter.ID, d *payload.Decoder) (shape, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.decoder != d || s.changes != d.Types.Changes() || time.Since(s.at) > shapesHold ||
		len(s.known) >= shapesKnown {
		s.decoder, s.changes, s.at, s.known = d, d.Types.Changes(), time.Now(), map[deadletter.ID]shape{}
	}
	found, ok := s.known[id]
	return found, ok
}

func (s *shapes) store(id deadletter.ID, is shape) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known[id] = is
}

// shapeOf describes the body of a letter. It decodes the body only if the cache lacks the
// description.
func (w *Web) shapeOf(ctx context.Context, id deadletter.ID) (shape, error) {
	if known, ok := w.shapes.find(id, w.Decoder()); ok {
		return known, nil
	}
	l, err := w.Store.Letter(ctx, id)
	if err != nil {
		return shape{}, err
	}
	doc, err := w.decode(ctx, &l)
	if err != nil {
		return shape{}, err
	}
	s := shape{text: doc.Shape(), masked: doc.Masked, why: doc.Ranking.Why, closest: doc.Ranking.Matches}
	if doc.Problem != "" {
		s.why = doc.Problem
	}
	w.shapes.store(id, s)
	return s, nil
}
