package store

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Receive stores a window of deliveries in one fsynced transaction. Each delivery becomes a new
// letter in the state "received". There is one exception: a letter that dlo sent back may have died
// again. If its attempt is still open, the delivery joins the letter that is already stored. The
// window stays open until SettleWindow is called.
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

// receive stores the window w. If the parameter "twins" is not nil, it contains one stored letter
// for each arrival, in the same order. The arrival may then be a copy of that letter.
func (t *tx) receive(w deadletter.Window, twins []int64) (deadletter.Receipt, error) {
	var receipt deadletter.Receipt
	inbox, err := t.inboxID(w.Broker, w.VHost, w.Inbox)
	if err != nil {
		return receipt, err
	}
	var undone map[deadletter.Fingerprint][]delivered
	switch {
	case twins != nil:
	case w.Restarted:
		undone, err = t.twins(w)
	default:
		undone, err = t.late(inbox)
	}
	if err != nil {
		return receipt, err
	}
	random := deadletter.RandomBits(len(w.Arrivals))
	entries := make([]entry, len(w.Arrivals))
	for i := range w.Arrivals {
		a := &w.Arrivals[i]
		e := entry{
			fingerprint:   a.Fingerprint,
			tag:           a.Tag,
			deliveryCount: a.DeliveryCount(),
			redelivered:   a.Redelivered,
			verdict:       verdictNew,
		}
		row := arrival{keys: keys{inbox: inbox, random: random[i]}}
		if w.Origin != "" {
			deaths, o := deadletter.ReadDeaths(a.Properties.Headers, w.Ours)
			if _, mayDelay := deadletter.Newest(a.Properties.Headers, deaths, w.Ours); o.Queue == "" || mayDelay {
				if row.origin, err = t.originID(deadletter.Origin{
					Broker: w.Broker,
					VHost:  w.VHost,
					Queue:  w.Origin,
				}); err != nil {
					return receipt, err
				}
			}
		}
		switch {
		case twins != nil && w.Restarted && a.Properties.MessageID != "":
			if err := t.sameLetter(&e, twins[i]); err != nil {
				return receipt, err
			}
		case twins != nil:
			row.suspect(twins[i], w.Uncertain, deadletter.DoubtCutOff)
		default:
			if e.letter, e.verdict, err = t.matchAttempt(w, a, &row); err != nil {
				return receipt, err
			}
		}
		if e.verdict == verdictNew && twins == nil && a.Redelivered {
			same := undone[a.Fingerprint]
			n := slices.IndexFunc(same, func(d delivered) bool {
				return !w.EveryReturnCounted || a.DeliveryCount() > d.count
			})
			if n >= 0 {
				d := same[n]
				undone[a.Fingerprint] = slices.Delete(same, n, n+1)
				doubt := deadletter.DoubtRestart
				if d.window > 0 {
					doubt = deadletter.DoubtCutOff
					err = t.cameLate(d)
				}
				switch {
				case err != nil:
				case a.Properties.MessageID != "" || w.Uncertain == deadletter.UncertainMerge:
					err = t.sameLetter(&e, d.letter)
				default:
					row.suspect(d.letter, w.Uncertain, doubt)
				}
				if err != nil {
					return receipt, err
				}
			}
		}
		switch e.verdict {
		case verdictReturn:
			receipt.CameBack++
			receipt.Returned = append(receipt.Returned, row.returned)
		case verdictCopy:
			receipt.Copies++
		case verdictMerged:
			receipt.Merged++
		case verdictNew:
			if row.doubt != "" {
				e.verdict = verdictSuspect
				receipt.Suspects++
			}
			if err := t.receiveNew(a, &row); err != nil {
				return receipt, err
			}
			if err := t.addRow(row); err != nil {
				return receipt, err
			}
			e.letter = row.serial
			receipt.New = append(receipt.New, row.id())
		}
		entries[i] = e
	}
	if err := t.storeRows(); err != nil {
		return receipt, err
	}
	if w.Number%64 == 0 {
		if err := t.pruneJournal(inbox, w.Horizon); err != nil {
			return receipt, err
		}
	}
	if _, err := t.exec(`UPDATE inboxes SET prefetch = $2, at_stake = 0 WHERE id = $1 AND (prefetch <> $2
		OR at_stake > 0)`, inbox, w.Prefetch); err != nil {
		return receipt, err
	}
	looks := 0
	if w.GivesBack {
		looks = 1
	}
	err = t.row(`INSERT INTO windows (inbox, session, number, committed_at, letters, entries, looks)
		VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING id`,
		[]any{inbox, w.Session, w.Number, t.now, len(entries), encodeEntries(entries), looks}, &receipt.Window)
	return receipt, err
}

// sameLetter merges a delivery into the letter of which it is a copy.
func (t *tx) sameLetter(e *entry, letter int64) error {
	e.letter, e.verdict = letter, verdictMerged
	return t.addEvent(
		letter, 0, "merged", deadletter.Service.Name,
		"the broker delivered it again: same bytes, and the same message id if it has one",
	)
}

// suspect links a new letter with the letter that it may be a copy of.
func (r *arrival) suspect(twin int64, uncertain deadletter.Uncertain, doubt deadletter.Doubt) {
	r.twin = orNull(twin)
	r.Why = "probably the same as its twin, delivered again after dlo was cut off between ack and record"
	if doubt == deadletter.DoubtRestart {
		r.Why = "probably the same as its twin, which the broker delivered again after its restart"
	}
	if uncertain != deadletter.UncertainKeep {
		r.doubt = doubt
	}
}

// receiveNew makes the row of a new letter. Its serial is higher than all earlier ones, even if the
// clock was set back.
func (t *tx) receiveNew(a *deadletter.Arrival, row *arrival) error {
	t.s.serial = max(t.s.serial+1, t.now<<12)
	row.serial, row.ReceivedAt = t.s.serial, time.UnixMilli(t.now)
	t.step.newest = row.id()
	return t.prepare(row, deadletter.Route{Exchange: a.Exchange, RoutingKey: a.RoutingKey}, a.Properties, a.Body)
}

// sameBody reports whether an attempt of a letter had a body.
func (t *tx) sameBody(letter int64, attempt int, body []byte) (bool, error) {
	var in sql.NullInt64
	var revised sql.Null[[]byte]
	if err := t.row(`SELECT l.segment, v.body FROM attempts a JOIN letters l ON l.id = a.letter
		LEFT JOIN revisions v ON v.letter = a.letter AND v.n = a.revision
		WHERE a.letter = $1 AND a.n = $2`, []any{letter, attempt}, &in, &revised); err != nil {
		return false, err
	}
	if revised.Valid {
		return bytes.Equal(revised.V, body), nil
	}
	m, ok, err := t.messages.of(t.ctx, letter, in)
	return ok && bytes.Equal(m.Body, body), err
}

func nonNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// matchAttempt checks whether a delivery is one of our attempts that died. Such a delivery names a
// letter and contains a token that was issued for that letter. Both are either in the delivery
// itself or inside an EasyNetQ error. If the attempt is open, the letter is received again. If the
// attempt is closed, and the body and the queue are equal, the delivery counts as one more copy. If
// the body or the queue differs, or if the letter was purged, the delivery becomes a separate
// letter that is linked to the first.
func (t *tx) matchAttempt(w deadletter.Window, a *deadletter.Arrival, row *arrival) (int64, verdict, error) {
	sent := a.Inside()
	id, token, ok := sent.Identity()
	if !ok {
		return 0, verdictNew, nil
	}
	serial, random, ok := id.Split()
	if !ok {
		return 0, verdictNew, nil
	}
	letter := serial
	var attempt int
	var probe bool
	var outcome deadletter.OutcomeKind
	var queue string
	var operation, closed sql.NullInt64
	var at int64
	var backQueue sql.NullString
	deaths, origin := deadletter.ReadDeaths(a.Properties.Headers, w.Ours)
	find := func() error {
		return t.row(`SELECT a.n, a.outcome, a.queue, a.operation, a.back_queue, a.at, a.closed_at, a.probe
			FROM attempts a JOIN letters l ON l.id = a.letter
			WHERE a.letter = $1 AND a.token = $2 AND l.random = $3
			ORDER BY a.outcome IN ('returned', 'nacked', 'refused', 'unsent'), a.n DESC
			LIMIT 1`, []any{serial, token.Bytes(), random},
			&attempt, &outcome, &queue, &operation, &backQueue, &at, &closed, &probe)
	}
	err := find()
	if errors.Is(err, sql.ErrNoRows) {
		var recalled bool
		if recalled, err = t.recall(serial, random, token, origin.Queue); err == nil && recalled {
			err = find()
		} else if err == nil {
			err = sql.ErrNoRows
		}
	}
	if errors.Is(err, sql.ErrNoRows) {
		// this store did not issue the token, so the dlo- headers are shown but have no effect
		return 0, verdictNew, nil
	}
	if err != nil {
		return 0, verdictNew, err
	}
	r, err := t.record(letter)
	if err != nil {
		return 0, verdictNew, err
	}
	if home := t.s.names.origin(r.origin); !unknownOrigin(r.origin) &&
		(home.VHost != w.VHost || home.Broker != w.Broker && !slices.Contains(w.Same, home.Broker)) {
		// the letter was moved to another broker or vhost, where the queue of its origin means
		// nothing
		row.twin = orNull(letter)
		return 0, verdictNew, nil
	}
	same, err := t.sameBody(letter, attempt, sent.Body)
	if err != nil {
		return 0, verdictNew, err
	}
	if r.state == deadletter.StatePurged || !same {
		row.twin = orNull(letter)
		return 0, verdictNew, nil
	}
	var reason string
	if origin.Queue != "" {
		reason, _ = deadletter.LastDeath(a.Properties.Headers, deaths, origin.Queue)
	}
	if !outcome.Open() {
		if backQueue.Valid {
			queue = backQueue.String
		}
		if origin.Queue != queue {
			row.twin = orNull(letter)
			return 0, verdictNew, nil
		}
		if _, err := t.exec(`UPDATE attempts SET copies = copies + 1 WHERE letter = $1
			AND n = $2`, letter, attempt); err != nil {
			return 0, verdictNew, err
		}
		return letter, verdictCopy, t.addEvent(
			letter, 0, "copy", deadletter.Service.Name,
			"another copy of an attempt that was already closed came out of "+w.Inbox,
		)
	}
	properties, err := a.Properties.Encode()
	if err != nil {
		return 0, verdictNew, err
	}
	var wrapped []byte
	if sent != a {
		wrapped = a.Body
	}
	if _, err := t.exec(`UPDATE attempts SET outcome = $3, back_at = $4,
		back_queue = $5, back_reason = $6, returned = $7, returned_body = $8 WHERE letter = $1 AND n = $2`,
		letter, attempt, string(deadletter.OutcomeCameBack), t.now, origin.Queue, reason, properties, wrapped,
	); err != nil {
		return 0, verdictNew, err
	}
	if operation.Valid {
		if closed.Valid {
			at = closed.Int64
		}
		if err := t.cameBack(
			deadletter.OperationID(operation.Int64), letter, reason, outcome == deadletter.OutcomeConfirmed, at,
		); err != nil {
			return 0, verdictNew, err
		}
	}
	used := 0
	if !outcome.Used() { // the letter came back before its confirm, so the attempt must have reached its queue
		used++
	}
	detail := diedIn(origin.Queue, reason)
	if probe {
		used--
		detail += "; it was a probe of its queue, so the attempt is not counted"
	}
	if used != 0 {
		if _, err := t.exec(`UPDATE letters SET attempts = max(0, attempts + $2)
			WHERE id = $1`, letter, used); err != nil {
			return 0, verdictNew, err
		}
	}
	row.returned = id
	newer := r.outsideStore() && r.publishes != attempt // only the return of the newest copy counts
	if to, ok := r.state.On(deadletter.CameBack); ok && !newer {
		// an operation released the letter while it was in doubt whether an older attempt was sent
		if r.operation.Valid && r.operation != operation {
			if err := t.recordResult(
				deadletter.OperationID(r.operation.Int64), letter, deadletter.ResultSkipped,
				"an earlier attempt came back first",
			); err != nil {
				return 0, verdictNew, err
			}
		}
		t.changeRecord(r, func() { r.state = to })
		if err := t.removeExplanation(letter); err != nil { // the annotation describes the previous death
			return 0, verdictNew, err
		}
		if _, err := t.exec(`UPDATE letters SET state = $2, due_at = NULL,
			changed_at = $3, operation = NULL, target = NULL,
			why = '', unverified = 0, suspect = 0, waiter = '', waits_in = NULL, epoch = NULL, resend_at = NULL
			WHERE id = $1`,
			letter, to, t.now); err != nil {
			return 0, verdictNew, err
		}
	}
	return letter, verdictReturn, t.addEvent(letter, 0, "came back", deadletter.Service.Name, detail)
}

func diedIn(queue, reason string) string {
	if queue == "" {
		return "its headers do not say where it died"
	}
	return fmt.Sprintf("died in %s: %s", deadletter.Visible(queue), deadletter.Visible(reason))
}
