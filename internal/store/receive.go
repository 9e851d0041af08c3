package store

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Receive stores a window in one fsynced commit: each delivery becomes a letter of its own, in state received, or joins the letter whose open attempt it is.
// The window stays open until Settle.
func (s *Store) Receive(ctx context.Context, w deadletter.Window) (deadletter.Receipt, error) {
	var receipt deadletter.Receipt
	err := s.tx(ctx, urgent, func(t *tx) (err error) {
		receipt, err = t.receive(w, nil)
		return err
	})
	if err != nil {
		return deadletter.Receipt{}, fmt.Errorf("receive %d letters of %s: %w", len(w.Arrivals), w.Inbox, err)
	}
	return receipt, nil
}

// receive stores w; where twins are given, each arrival is a doubtful copy of the letter in its place.
func (t *tx) receive(w deadletter.Window, twins []int64) (deadletter.Receipt, error) {
	var receipt deadletter.Receipt
	inbox, err := t.inboxID(w.Broker, w.VHost, w.Inbox)
	if err != nil {
		return receipt, err
	}
	var undone map[deadletter.Fingerprint][]int64
	if w.Restarted && twins == nil {
		if undone, err = t.twins(w); err != nil {
			return receipt, err
		}
	}
	random := deadletter.RandomBits(len(w.Arrivals))
	entries := make([]entry, len(w.Arrivals))
	for i := range w.Arrivals {
		a := &w.Arrivals[i]
		e := entry{fingerprint: a.Fingerprint, tag: a.Tag, deliveryCount: a.DeliveryCount(), redelivered: a.Redelivered, verdict: verdictNew}
		row := arrival{inbox: inbox, random: random[i]}
		if twins != nil {
			row.twin, row.suspect = twins[i], w.Uncertain != deadletter.UncertainKeep
			row.why = "probably the same as its twin, delivered again after dlo was cut off between ack and record"
		} else if e.letter, e.verdict, err = t.returned(w, a, &row); err != nil {
			return receipt, err
		}
		if e.verdict == verdictNew && twins == nil && a.Redelivered {
			if same := undone[a.Fingerprint]; len(same) > 0 {
				undone[a.Fingerprint] = same[1:]
				if a.Properties.MessageID != "" || w.Uncertain == deadletter.UncertainMerge {
					e.letter, e.verdict = same[0], verdictMerged
					if err := t.event(same[0], 0, "merged", deadletter.Service.Name, "the broker delivered it again after its restart: same bytes, same message id"); err != nil {
						return receipt, err
					}
				} else {
					row.twin, row.suspect = same[0], w.Uncertain == deadletter.UncertainHold
					row.why = "probably the same as its twin, which the broker delivered again after its restart"
				}
			}
		}
		switch e.verdict {
		case verdictReturn:
			receipt.CameBack++
		case verdictCopy:
			receipt.Copies++
		case verdictMerged:
			receipt.Merged++
		case verdictNew:
			if row.suspect {
				e.verdict = verdictSuspect
				receipt.Suspects++
			}
			id, err := t.insert(a, row)
			if err != nil {
				return receipt, err
			}
			e.letter = id
			receipt.New = append(receipt.New, deadletter.NewID(id, uint64(row.random)))
		}
		entries[i] = e
	}
	if w.Number%64 == 0 {
		if err := t.pruneJournal(inbox, w.Horizon); err != nil {
			return receipt, err
		}
	}
	err = t.row(`INSERT INTO windows (inbox, session, number, committed_at, letters, entries) VALUES ($1, $2, $3, $4, $5, $6) RETURNING id`,
		[]any{inbox, w.Session, w.Number, t.now, len(entries), encodeEntries(entries)}, &receipt.Window)
	return receipt, err
}

// arrival is what a new row needs beside the delivery.
type arrival struct {
	inbox   int64
	random  int64
	twin    int64
	suspect bool
	why     string
}

// insert makes the row of a new letter and returns its serial: after all others, whatever the clock says.
func (t *tx) insert(a *deadletter.Arrival, row arrival) (int64, error) {
	properties, err := a.Properties.Encode()
	if err != nil {
		return 0, err
	}
	t.s.serial = max(t.s.serial+1, t.now<<12)
	id := t.s.serial
	suspect := 0
	if row.suspect {
		suspect = 1
	}
	if _, err := t.exec(`INSERT INTO letters (id, random, state, inbox, received_at, changed_at, size, twin, suspect, why)
		VALUES ($1, $2, 'received', $3, $4, $4, $5, $6, $7, $8)`, id, row.random, row.inbox, t.now, len(a.Body), positive(row.twin), suspect, row.why); err != nil {
		return 0, err
	}
	if _, err := t.exec(`INSERT INTO bodies (letter, exchange, routing_key, properties, body) VALUES ($1, $2, $3, $4, $5)`,
		id, a.Exchange, a.RoutingKey, properties, nonNil(a.Body)); err != nil {
		return 0, err
	}
	t.moves.letter(&record{state: deadletter.StateReceived, receivedAt: t.now}, 1)
	return id, nil
}

func nonNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// returned looks whether a delivery is an attempt of ours that died: it names a letter and carries a token that was issued for it. Open attempt: the letter
// is received again. Closed, with equal body and queue: one more copy. With another body or queue, or of a purged letter: a letter of its own, linked.
func (t *tx) returned(w deadletter.Window, a *deadletter.Arrival, row *arrival) (int64, verdict, error) {
	id, token, ok := a.Identity()
	if !ok {
		return 0, verdictNew, nil
	}
	serial, random, ok := id.Split()
	if !ok {
		return 0, verdictNew, nil
	}
	letter := serial
	var attempt int
	var outcome deadletter.OutcomeKind
	var queue string
	var operation sql.NullInt64
	var backQueue sql.NullString
	err := t.row(`SELECT a.n, a.outcome, a.queue, a.operation, a.back_queue FROM attempts a JOIN letters l ON l.id = a.letter
		WHERE a.letter = $1 AND a.token = $2 AND l.random = $3`, []any{serial, token.Bytes(), random}, &attempt, &outcome, &queue, &operation, &backQueue)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, verdictNew, nil // not ours: its dlo- headers are shown and ignored
	}
	if err != nil {
		return 0, verdictNew, err
	}
	r, err := t.record(letter)
	if err != nil {
		return 0, verdictNew, err
	}
	var body []byte
	if err := t.row(`SELECT body FROM bodies WHERE letter = $1`, []any{letter}, &body); err != nil && !errors.Is(err, sql.ErrNoRows) {
		return 0, verdictNew, err
	}
	if r.state == deadletter.StatePurged || !bytes.Equal(body, a.Body) {
		row.twin = letter
		return 0, verdictNew, nil
	}
	deaths, origin := deadletter.ReadDeaths(a.Properties.Headers, func(q string) bool { return q == w.Inbox || deadletter.OwnQueue(q) })
	reason, _ := deadletter.LastDeath(a.Properties.Headers, deaths, origin.Queue)
	if !outcome.Open() {
		if backQueue.Valid {
			queue = backQueue.String
		}
		if origin.Queue != queue {
			row.twin = letter
			return 0, verdictNew, nil
		}
		if _, err := t.exec(`UPDATE attempts SET copies = copies + 1 WHERE letter = $1 AND n = $2`, letter, attempt); err != nil {
			return 0, verdictNew, err
		}
		return letter, verdictCopy, t.event(letter, 0, "copy", deadletter.Service.Name, "one more copy of an attempt that was closed already came out of "+w.Inbox)
	}
	properties, err := a.Properties.Encode()
	if err != nil {
		return 0, verdictNew, err
	}
	if _, err := t.exec(`UPDATE attempts SET outcome = $3, back_at = $4, back_queue = $5, back_reason = $6, returned = $7 WHERE letter = $1 AND n = $2`,
		letter, attempt, string(deadletter.OutcomeCameBack), t.now, origin.Queue, reason, properties); err != nil {
		return 0, verdictNew, err
	}
	if operation.Valid {
		if err := t.result(deadletter.OperationID(operation.Int64), letter, deadletter.ResultCameBack, reason); err != nil {
			return 0, verdictNew, err
		}
	}
	if !outcome.Used() { // the worker was faster than the confirm: the attempt is used all the same
		if _, err := t.exec(`UPDATE letters SET attempts = attempts + 1 WHERE id = $1`, letter); err != nil {
			return 0, verdictNew, err
		}
	}
	if to, ok := r.state.On(deadletter.CameBack); ok && (r.state != deadletter.StatePublishing || r.tries == attempt) {
		if r.operation.Valid && r.operation != operation { // released by an operation while an older attempt was in doubt
			if err := t.result(deadletter.OperationID(r.operation.Int64), letter, deadletter.ResultSkipped, "an earlier attempt came back first"); err != nil {
				return 0, verdictNew, err
			}
		}
		t.moved(r, func() { r.state = to })
		if _, err := t.exec(`UPDATE letters SET state = $2, due_at = NULL, changed_at = $3, operation = NULL, why = '', unverified = 0, epoch = NULL, lease_until = NULL WHERE id = $1`,
			letter, string(to), t.now); err != nil {
			return 0, verdictNew, err
		}
	}
	return letter, verdictReturn, t.event(letter, 0, "came back", deadletter.Service.Name, fmt.Sprintf("died in %s: %s", deadletter.Visible(origin.Queue), deadletter.Visible(reason)))
}
