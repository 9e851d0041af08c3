package store

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// entry is one delivery in the journal of windows.
type entry struct {
	letter        int64
	fingerprint   deadletter.Fingerprint
	tag           uint64
	deliveryCount int64 // value of x-delivery-count; -1 = absent
	redelivered   bool
	verdict       verdict
}

// verdict says what the store did with a delivery.
type verdict byte

const (
	verdictNew     verdict = 'n'
	verdictReturn  verdict = 'r' // the delivery was an attempt of ours that came back
	verdictCopy    verdict = 'c' // the delivery was a copy of an attempt that was already closed
	verdictMerged  verdict = 'm' // the delivery was merged into its twin after a broker restart
	verdictSuspect verdict = 's'
	verdictLate    verdict = 'l' // the delivery was repeated after its window had been settled in doubt
)

const entrySize = 8 + 32 + 8 + 8 + 1 + 1

// encodeEntries encodes the deliveries of a window as one blob of the journal. One blob is enough,
// because the store always reads all deliveries of a window together. With one row for each
// delivery, dlo would drain queues a tenth more slowly.
func encodeEntries(entries []entry) []byte {
	b := make([]byte, 0, entrySize*len(entries))
	for _, e := range entries {
		b = binary.BigEndian.AppendUint64(b, uint64(e.letter))
		b = append(b, e.fingerprint[:]...)
		b = binary.BigEndian.AppendUint64(b, e.tag)
		b = binary.BigEndian.AppendUint64(b, uint64(e.deliveryCount))
		redelivered := byte(0)
		if e.redelivered {
			redelivered = 1
		}
		b = append(b, redelivered, byte(e.verdict))
	}
	return b
}

func decodeEntries(b []byte) []entry {
	entries := make([]entry, 0, len(b)/entrySize)
	for ; len(b) >= entrySize; b = b[entrySize:] {
		e := entry{letter: int64(binary.BigEndian.Uint64(b)), redelivered: b[56] != 0, verdict: verdict(b[57])}
		copy(e.fingerprint[:], b[8:40])
		e.tag = binary.BigEndian.Uint64(b[40:])
		e.deliveryCount = int64(binary.BigEndian.Uint64(b[48:]))
		entries = append(entries, e)
	}
	return entries
}

// maxFruitless is the maximum number of sessions in a row that end without a settled window. After
// that, the next session starts with a small window again, because the earlier sessions may have
// ended only because their first window was too large. If the window is small, letters that come
// back out of order may become separate rows.
const maxFruitless = 20

// BeginSession counts a new session of an inbox. It returns the state that earlier sessions stored.
func (s *Store) BeginSession(ctx context.Context, broker, vhost, inbox string) (deadletter.InboxSession, error) {
	var session deadletter.InboxSession
	var delay int64
	err := s.tx(ctx, urgent, func(t *tx) error {
		id, err := t.inboxID(broker, vhost, inbox)
		if err != nil {
			return err
		}
		if err := t.row(`UPDATE inboxes SET session = session + 1 WHERE id = $1
			RETURNING session, marker, restarted_at IS NOT NULL, prefetch, at_stake, delay_ms`, []any{id},
			&session.Number, &session.Marker, &session.Restarted, &session.Prefetch, &session.AtStake, &delay,
		); err != nil {
			return err
		}
		session.Delay = time.Duration(delay) * time.Millisecond
		if _, err := t.exec(`UPDATE windows SET late = $2 WHERE inbox = $1 AND late > 0`,
			id, t.now+lateness.Milliseconds()); err != nil {
			return err
		}
		var settled int64
		err = t.row(`SELECT coalesce(max(session), 0) FROM windows WHERE inbox = $1
			AND settled_at IS NOT NULL`, []any{id}, &settled)
		if session.Number-settled > maxFruitless {
			session.Prefetch = 0
		}
		return err
	})
	return session, err
}

// Reached returns the vhosts of brokers in which an inbox or another drained queue has existed at
// least once. A key of the map consists of the name of the broker and the name of the vhost.
// Reached knows these vhosts from the markers that earlier sessions have stored.
func (s *Store) Reached(ctx context.Context) (map[[2]string]bool, error) {
	rows, err := s.ask(ctx, `SELECT DISTINCT broker, vhost FROM inboxes WHERE marker <> ''`)
	if err != nil {
		return nil, fmt.Errorf("brokers that were connected once: %w", err)
	}
	reached := map[[2]string]bool{}
	err = scan(rows, func() error {
		var broker, vhost string
		err := rows.Scan(&broker, &vhost)
		reached[[2]string{broker, vhost}] = true
		return err
	})
	return reached, err
}

// AtStake records how many letters of an inbox have reached their delivery limit. If the session
// ends before Receive stores these letters, the broker deletes them.
func (s *Store) AtStake(ctx context.Context, broker, vhost, inbox string, letters int) error {
	return s.tx(ctx, urgent, func(t *tx) error {
		id, err := t.inboxID(broker, vhost, inbox)
		if err != nil {
			return err
		}
		_, err = t.exec(`UPDATE inboxes SET at_stake = $2 WHERE id = $1`, id, letters)
		return err
	})
}

// HoldsBack records the longest time for which the broker may hold back what the session of an
// inbox does not acknowledge. The next session waits for as long.
func (s *Store) HoldsBack(ctx context.Context, broker, vhost, inbox string, longest time.Duration) error {
	return s.tx(ctx, urgent, func(t *tx) error {
		id, err := t.inboxID(broker, vhost, inbox)
		if err != nil {
			return err
		}
		_, err = t.exec(`UPDATE inboxes SET delay_ms = $2 WHERE id = $1`, id, longest.Milliseconds())
		return err
	})
}

// Restarted records that the broker was restarted. dlo knows this because the marker that it had
// left on the broker is gone. Restarted also records the new marker, which dlo created after the
// restart. If the new marker disappears as well, the broker was restarted once more. Until Calm is
// called, the broker may have undone acks.
func (s *Store) Restarted(ctx context.Context, broker, vhost, inbox, marker string) error {
	return s.tx(ctx, urgent, func(t *tx) error {
		id, err := t.inboxID(broker, vhost, inbox)
		if err != nil {
			return err
		}
		_, err = t.exec(`UPDATE inboxes SET restarted_at = $2, marker = $3 WHERE id = $1`, id, t.now, marker)
		return err
	})
}

// Calm records that the aftermath of a broker restart is over. It also records the name of the
// marker that is on the broker now. After Calm, dlo trusts that the broker has kept all earlier
// acks.
func (s *Store) Calm(ctx context.Context, broker, vhost, inbox, marker string) error {
	return s.tx(ctx, urgent, func(t *tx) error {
		id, err := t.inboxID(broker, vhost, inbox)
		if err != nil {
			return err
		}
		_, err = t.exec(`UPDATE inboxes SET marker = $2, restarted_at = NULL WHERE id = $1`, id, marker)
		return err
	})
}

// Look returns the open window of an inbox, which is the window that was committed but not settled.
// If there is none, it returns nil. There is at most one, because a window is settled before the
// next one is fetched.
//
// Look also records that the session looks for the window, before the session gets a letter. If the
// session ends without a decision, its letters go back to the queue and are flagged as redelivered.
// Some of them may equal letters of the window, so the flag no longer shows which letters belong to
// the window.
func (s *Store) Look(ctx context.Context, broker, vhost, inbox string) (*deadletter.OpenWindow, error) {
	open := &deadletter.OpenWindow{}
	var blob []byte
	err := s.tx(ctx, urgent, func(t *tx) error {
		return t.row(`UPDATE windows SET looks = looks + 1 WHERE id = (SELECT w.id FROM windows w
			JOIN inboxes i ON i.id = w.inbox
			WHERE i.broker = $1 AND i.vhost = $2 AND i.queue = $3 AND w.settled_at IS NULL ORDER BY w.id DESC LIMIT 1)
			RETURNING id, entries`, []any{broker, vhost, inbox}, &open.ID, &blob)
	})
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open window of %s: %w", inbox, err)
	}
	for _, e := range decodeEntries(blob) {
		open.Fingerprints = append(open.Fingerprints, e.fingerprint)
	}
	return open, nil
}

// OpenInboxes returns the queues that have an open window. It includes queues that are not
// configured.
func (s *Store) OpenInboxes(ctx context.Context) ([]deadletter.InboxName, error) {
	rows, err := s.read.QueryContext(ctx, `SELECT DISTINCT i.broker, i.vhost, i.queue FROM windows w
		JOIN inboxes i ON i.id = w.inbox WHERE w.settled_at IS NULL ORDER BY 1, 2, 3`)
	if err != nil {
		return nil, fmt.Errorf("open windows: %w", err)
	}
	return collect(rows, func(n *deadletter.InboxName) []any { return []any{&n.Broker, &n.VHost, &n.Queue} })
}

// SettleWindow records that the broker has processed the ack of a window. After that, no letter of
// the window can be delivered again.
func (s *Store) SettleWindow(ctx context.Context, window int64) error {
	return s.tx(ctx, urgent, func(t *tx) error { return t.settle(window) })
}

// SettleInDoubt settles a window whose letters did not come back, although the queue may hold them
// back for a time. If they are delivered within lateness, they are compared with the stored ones.
func (s *Store) SettleInDoubt(ctx context.Context, window int64) error {
	return s.tx(ctx, urgent, func(t *tx) error {
		_, err := t.exec(`UPDATE windows SET settled_at = $2, late = $3 WHERE id = $1`,
			window, t.now, t.now+lateness.Milliseconds())
		return err
	})
}

// lateness is how long dlo expects letters that a queue may hold back. The time counts from the
// beginning of the last session, because nothing is delivered while dlo does not run.
const lateness = 24 * time.Hour

func (t *tx) settle(window int64) error {
	_, err := t.exec(`UPDATE windows SET settled_at = $2 WHERE id = $1 AND settled_at IS NULL`, window, t.now)
	return err
}

// RejoinWindow continues an open window whose letters seem to have been delivered again, in any
// order. If the deliveries are certainly the letters of the window, it creates no rows. If they are
// certainly other letters, it settles the window and stores them as new letters.
//
// If neither is certain, RejoinWindow also stores the deliveries as new letters, but marks them as
// suspects. With the setting UncertainMerge, it instead treats uncertain deliveries as the letters
// of the window. The receipt names the window that must be settled.
func (s *Store) RejoinWindow(
	ctx context.Context, open deadletter.OpenWindow, w deadletter.Window,
) (deadletter.Receipt, error) {
	var receipt deadletter.Receipt
	err := s.tx(ctx, urgent, func(t *tx) error {
		var blob []byte
		var looks int
		if err := t.row(`SELECT entries, looks FROM windows WHERE id = $1`, []any{open.ID}, &blob, &looks); err != nil {
			return err
		}
		entries := decodeEntries(blob)
		if len(entries) != len(w.Arrivals) {
			return fmt.Errorf("claim of window %d: %d letters for %d", open.ID, len(w.Arrivals), len(entries))
		}
		if !inOrderOf(entries, w.Arrivals) {
			return fmt.Errorf("claim of window %d: other letters than it has", open.ID)
		}
		fresh, doubtful, err := t.compareWindow(entries, looks > 1, w)
		if err != nil {
			return err
		}
		switch {
		case fresh:
			if err := t.settle(open.ID); err != nil {
				return err
			}
			receipt, err = t.receive(w, nil)
			return err
		case doubtful && w.Uncertain != deadletter.UncertainMerge:
			if err := t.settle(open.ID); err != nil {
				return err
			}
			twins := make([]int64, len(entries))
			for i, e := range entries {
				twins[i] = e.letter
			}
			w.GivesBack = looks > 1
			receipt, err = t.receive(w, twins)
			return err
		}
		for i := range entries {
			entries[i].tag, entries[i].deliveryCount = w.Arrivals[i].Tag, w.Arrivals[i].DeliveryCount()
		}
		receipt = deadletter.Receipt{Window: open.ID, Merged: len(entries)}
		_, err = t.exec(`UPDATE windows SET session = $2, number = $3, entries = $4, looks = 0
			WHERE id = $1`, open.ID, w.Session, w.Number, encodeEntries(entries))
		return err
	})
	if err != nil {
		return deadletter.Receipt{}, fmt.Errorf("claim window of %s: %w", w.Inbox, err)
	}
	return receipt, nil
}

// inOrderOf sorts the entries of a window in the order in which the letters were delivered again.
// It returns false if the deliveries are not the letters of the window.
func inOrderOf(entries []entry, arrivals []deadletter.Arrival) bool {
	of := make(map[deadletter.Fingerprint][]entry, len(entries))
	for _, e := range entries {
		of[e.fingerprint] = append(of[e.fingerprint], e)
	}
	for i := range arrivals {
		same := of[arrivals[i].Fingerprint]
		if len(same) == 0 {
			return false
		}
		entries[i], of[arrivals[i].Fingerprint] = same[0], same[1:]
	}
	return true
}

// compareWindow compares an open window with deliveries that equal it. The deliveries may be new
// twins of the window's letters, which are other messages with equal contents. The result fresh is
// true if they are certainly new twins, and doubtful is true if they may be new twins.
//
// There are two cases in which they may be twins. In the first case, an earlier session received
// twins and gave them back, so that the twins are flagged as redelivered from then on. A message id
// rules this out. In the second case, the server flags first deliveries, and every letter of the
// window has twins.
//
// On a quorum inbox, x-delivery-count can decide the question. The broker sets it to 1 on a
// returned letter that had none (3.10.8, 4.0.5). From 4.3 on, the broker adds 1 whenever a delivery
// returns and leaves the count unchanged on a first delivery (4.3.6). On 4.0, a letter from a
// quorum queue has the count 1 before and after (4.0.5; TestWhatADeliveryTells).
func (t *tx) compareWindow(entries []entry, gaveBack bool, w deadletter.Window) (fresh, doubtful bool, err error) {
	same, next, bare, named := true, true, true, 0
	for i, e := range entries {
		n := w.Arrivals[i].DeliveryCount()
		same = same && e.deliveryCount >= 0 && n == e.deliveryCount
		next = next && n == max(e.deliveryCount, 0)+1
		bare = bare && e.deliveryCount < 0
		if w.Arrivals[i].Properties.MessageID != "" {
			named++
		}
	}
	switch {
	case w.EveryReturnCounted && same:
		return true, false, nil
	case w.Restarted:
		return false, named < len(entries), nil
	case gaveBack && named == 0:
		return false, true, nil
	case !w.RedeliveredLeaks, next && (w.EveryReturnCounted || w.FirstReturnCounted && bare):
		return false, false, nil
	}
	seen := map[deadletter.Fingerprint]int{}
	if err := t.eachDelivery(w, func(_ int64, _ bool, e entry) { seen[e.fingerprint]++ }); err != nil {
		return false, false, err
	}
	for _, e := range entries {
		if seen[e.fingerprint] < 2 {
			return false, false, nil
		}
	}
	return false, true, nil
}

// eachDelivery calls fn for each stored delivery within the horizon of the window w. It begins with
// the newest stored window. The parameter "session" of fn is the session in which
// the delivery arrived. The parameter "aftermath" says whether the delivery came after the broker's
// restart was detected.
func (t *tx) eachDelivery(w deadletter.Window, fn func(session int64, aftermath bool, e entry)) error {
	inbox, err := t.inboxID(w.Broker, w.VHost, w.Inbox)
	if err != nil {
		return err
	}
	since := t.now - w.Horizon.Milliseconds()
	var restarted sql.NullInt64
	if err := t.row(`SELECT restarted_at FROM inboxes WHERE id = $1`, []any{inbox}, &restarted); err != nil {
		return err
	}
	// the horizon counts from the time at which the restart was detected, because letters may still
	// come back long after the restart
	if restarted.Valid {
		since = min(since, restarted.Int64-w.Horizon.Milliseconds())
	}
	rows, err := t.query(`SELECT session, committed_at, entries FROM windows WHERE inbox = $1 AND (committed_at >= $2
		OR late > $3) ORDER BY id DESC`, inbox, since, t.now)
	if err != nil {
		return err
	}
	n := 0
	return scan(rows, func() error {
		if n >= w.HorizonRows {
			return nil
		}
		var session, at int64
		var blob []byte
		if err := rows.Scan(&session, &at, &blob); err != nil {
			return err
		}
		for _, e := range decodeEntries(blob) {
			fn(session, restarted.Valid && at >= restarted.Int64, e)
			n++
		}
		return nil
	})
}

// delivered is a delivery of a stored letter that the broker may repeat.
type delivered struct {
	letter int64
	// The lowest x-delivery-count with which an equal letter was delivered, or -1. A delivery with a
	// higher count may be a repetition. The count of the letter itself says less: of equal letters,
	// one may have been taken for another.
	count  int64
	window int64 // the window that was settled in doubt; 0 = the broker was restarted
}

// leastCounts are the lowest delivery counts of letters, by fingerprint.
type leastCounts map[deadletter.Fingerprint]int64

func (l leastCounts) add(e entry) {
	if n, ok := l[e.fingerprint]; !ok || e.deliveryCount < n {
		l[e.fingerprint] = e.deliveryCount
	}
}

// apply sets the counts of deliveries.
func (l leastCounts) apply(found map[deadletter.Fingerprint][]delivered) {
	for f, list := range found {
		for i := range list {
			list[i].count = l[f]
		}
	}
}

// twins returns, by fingerprint, the letters within the horizon that a broker restart may have
// brought back. The oldest letters come first.
//
// After one restart, each such letter can be matched with only one delivery. A second restart may
// undo the ack of this delivery as well, so the letter can then be matched again. The second
// restart may also bring back letters that were received after the first one.
func (t *tx) twins(w deadletter.Window) (map[deadletter.Fingerprint][]delivered, error) {
	spent, merged, least := map[int64]bool{}, map[int64]bool{}, leastCounts{}
	found := map[deadletter.Fingerprint][]delivered{}
	err := t.eachDelivery(w, func(session int64, aftermath bool, e entry) {
		least.add(e)
		switch {
		case e.verdict == verdictMerged && (aftermath || session == w.Session):
			spent[e.letter] = true
		case session == w.Session || merged[e.letter]:
			// the letter was merged after an earlier restart, so a newer delivery of it is already
			// in the list
		default:
			if e.verdict == verdictMerged {
				merged[e.letter] = true
			}
			found[e.fingerprint] = append(found[e.fingerprint], delivered{letter: e.letter})
		}
	})
	if err != nil {
		return nil, err
	}
	inbox, err := t.inboxID(w.Broker, w.VHost, w.Inbox)
	if err != nil {
		return nil, err
	}
	// A row that was created after the last restart of the broker may be linked to a twin. No other
	// delivery can then be matched with this twin. The serial of a row begins with the time, so it
	// shows when the row was created.
	twins, err := values[int64](t.query(`SELECT twin FROM letters WHERE id >= (SELECT restarted_at << 12 FROM inboxes
		WHERE id = $1) AND inbox = $1 AND twin IS NOT NULL`, inbox))
	if err != nil {
		return nil, err
	}
	for _, twin := range twins {
		spent[twin] = true
	}
	for f, letters := range found {
		letters = slices.DeleteFunc(letters, func(d delivered) bool { return spent[d.letter] })
		slices.SortFunc(letters, func(a, b delivered) int { return cmp.Compare(a.letter, b.letter) })
		found[f] = letters
	}
	least.apply(found)
	return found, nil
}

// late returns, by fingerprint, the letters of windows that were settled in doubt.
func (t *tx) late(inbox int64) (map[deadletter.Fingerprint][]delivered, error) {
	// late > 0 is the condition of the index
	rows, err := t.query(`SELECT id, entries FROM windows WHERE inbox = $1 AND late > 0 AND late > $2
		ORDER BY id`, inbox, t.now)
	if err != nil {
		return nil, err
	}
	found, least := map[deadletter.Fingerprint][]delivered{}, leastCounts{}
	err = scan(rows, func() error {
		var window int64
		var blob []byte
		err := rows.Scan(&window, &blob)
		for _, e := range decodeEntries(blob) {
			least.add(e)
			if e.verdict != verdictLate {
				found[e.fingerprint] = append(found[e.fingerprint], delivered{letter: e.letter, window: window})
			}
		}
		return err
	})
	least.apply(found)
	return found, err
}

// cameLate records that a letter of a window that was settled in doubt was delivered again.
func (t *tx) cameLate(d delivered) error {
	var blob []byte
	if err := t.row(`SELECT entries FROM windows WHERE id = $1`, []any{d.window}, &blob); err != nil {
		return err
	}
	entries := decodeEntries(blob)
	for i := range entries {
		if entries[i].letter == d.letter {
			entries[i].verdict = verdictLate
		}
	}
	_, err := t.exec(`UPDATE windows SET entries = $2 WHERE id = $1`, d.window, encodeEntries(entries))
	return err
}

// keepJournal is how much longer than the deduplication horizon the store keeps settled windows.
const keepJournal = time.Hour

func (t *tx) pruneJournal(inbox int64, horizon time.Duration) error {
	_, err := t.exec(
		`DELETE FROM windows WHERE inbox = $1 AND settled_at < $2 AND late < $3`, inbox,
		t.now-(horizon+keepJournal).Milliseconds(), t.now,
	)
	return err
}
