package store

import (
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
)

// maxPage is the maximum number of entries on a page.
const maxPage = 500

// Letter returns a letter with its body and properties. It returns ErrNotFound if no letter has
// that id.
func (s *Store) Letter(ctx context.Context, id deadletter.ID) (deadletter.Letter, error) {
	serial, random, ok := id.Split()
	if !ok {
		return deadletter.Letter{}, deadletter.NoSuch("letter %s", id)
	}
	return s.letter(ctx, serial, random)
}

// letterQuery selects complete letters. The caller appends a condition on l.id.
var letterQuery = `SELECT ` + new(stored).columns().list() + `
	FROM letters l LEFT JOIN letters w ON w.id = l.twin WHERE l.id `

// letter reads a letter by the two parts of its id: the serial and the random bits.
func (s *Store) letter(ctx context.Context, serial, random int64) (deadletter.Letter, error) {
	list, err := s.wholeLetters(ctx, `= $1 AND l.random = $2`, serial, random)
	if err == nil && len(list) == 0 {
		err = deadletter.NoSuch("letter %s", deadletter.NewID(serial, uint64(random)))
	}
	if err != nil {
		return deadletter.Letter{}, fmt.Errorf("letter: %w", err)
	}
	return list[0], nil
}

// wholeLetters reads the letters that letterQuery selects with a condition.
func (s *Store) wholeLetters(ctx context.Context, condition string, args ...any) (list []deadletter.Letter, err error) {
	err = s.snapshot(ctx, func(db *sql.Conn) error {
		list, err = s.lettersOn(ctx, db, condition, args...)
		return err
	})
	return list, err
}

// lettersOn reads the letters that letterQuery selects with a condition. Everything that it reads
// must belong to one commit, because a purge can store a segment again. It uses no other connection
// than db: if several callers held one and waited for a second, none would go on.
func (s *Store) lettersOn(
	ctx context.Context, db *sql.Conn, condition string, args ...any,
) ([]deadletter.Letter, error) {
	rows, err := db.QueryContext(ctx, letterQuery+condition, args...)
	if err != nil {
		return nil, err
	}
	var found []stored
	var r stored
	if err := r.columns().scan(rows, func() error {
		found = append(found, r)
		return nil
	}); err != nil {
		return nil, err
	}
	list := make([]deadletter.Letter, len(found))
	annotations := make([]int64, len(found))
	messages := messagesFrom(db)
	for i := range found {
		m, ok, err := messages.of(ctx, found[i].serial, found[i].segment)
		if err != nil {
			return nil, err
		}
		list[i], annotations[i] = found[i].letter(&s.names, m, !ok), found[i].annotation
	}
	if err := addAnnotations(ctx, db, list, annotations); err != nil {
		return nil, err
	}
	if err := addRevisions(ctx, db, list); err != nil {
		return nil, err
	}
	scope := deadletter.ScopeOf(ctx)
	for i := range list {
		if !scope.Reads(list[i].Place()) {
			list[i].Withhold()
		}
	}
	return list, nil
}

// rowColumns are the columns that the method "rows" reads.
var rowColumns = shownColumns(&deadletter.Row{}, &keys{}).list()

func (s *Store) rows(ctx context.Context, rows *sql.Rows) ([]deadletter.Row, error) {
	var list []deadletter.Row
	var r deadletter.Row
	var k keys
	scope := deadletter.ScopeOf(ctx)
	err := shownColumns(&r, &k).scan(rows, func() error {
		k.complete(&r, &s.names)
		if !scope.Reads(deadletter.Origin{Broker: r.Broker, VHost: r.VHost, Queue: r.Queue}) {
			r.Summary = ""
		}
		list = append(list, r)
		return nil
	})
	return list, err
}

// Letters returns a page of the letters that match q, without bodies, in the order of p. The
// default order is newest received first. The result "newer" is the cursor of the previous page in
// that order. The result "older" is the cursor of the next page. A cursor is "" if there is no such
// page. Letters returns ErrInvalid for a cursor of a different order.
func (s *Store) Letters(
	ctx context.Context, q query.Query, p deadletter.Page,
) (list []deadletter.Row, newer, older string, err error) {
	limit := p.Limit
	if limit <= 0 || limit > maxPage {
		return nil, "", "", fmt.Errorf("%w: a page has 1 to %d letters", deadletter.ErrInvalid, maxPage)
	}
	from := cursor{}
	backwards := p.Before != ""
	if text := p.After + p.Before; text != "" {
		if p.After != "" && p.Before != "" {
			return nil, "", "", fmt.Errorf(
				"%w: a page is after one cursor or before one, not both", deadletter.ErrInvalid,
			)
		}
		if from, err = parseCursor(text, p.Order); err != nil {
			return nil, "", "", err
		}
	}
	plan, err := s.plan(ctx, q)
	if err != nil {
		return nil, "", "", err
	}
	if list, err = s.page(ctx, plan, p.Order, from, backwards, limit+1); err != nil {
		return nil, "", "", fmt.Errorf("list letters: %w", err)
	}
	more := len(list) > limit
	if more {
		list = list[:limit]
	}
	if backwards {
		slices.Reverse(list)
	}
	if len(list) == 0 {
		return nil, "", "", nil
	}
	first, last := cursorOf(list[0], p.Order), cursorOf(list[len(list)-1], p.Order)
	if backwards && more || !backwards && p.After != "" {
		newer = first.String()
	}
	if !backwards && more || backwards {
		older = last.String()
	}
	return list, newer, older, nil
}

// Rows returns the letters with the given ids in the form that lists show, in the order of ids. It
// skips ids that do not exist.
func (s *Store) Rows(ctx context.Context, ids []deadletter.ID) ([]deadletter.Row, error) {
	list := make([]deadletter.Row, 0, len(ids))
	for chunk := range slices.Chunk(ids, 200) {
		args := make([]any, 0, len(chunk))
		for _, id := range chunk {
			serial, _, _ := id.Split()
			args = append(args, serial)
		}
		rows, err := s.read.QueryContext(
			ctx, `SELECT `+rowColumns+` FROM letters l WHERE l.id IN (`+placeholders(1, len(args))+`)`, args...,
		)
		if err != nil {
			return nil, err
		}
		found, err := s.rows(ctx, rows)
		if err != nil {
			return nil, err
		}
		byID := map[deadletter.ID]deadletter.Row{}
		for _, r := range found {
			byID[r.ID] = r
		}
		for _, id := range chunk {
			if r, ok := byID[id]; ok {
				list = append(list, r)
			}
		}
	}
	return list, nil
}

// Whole returns the letters with the given ids and with their bodies, oldest received first. It
// skips ids that do not exist.
func (s *Store) Whole(ctx context.Context, ids []deadletter.ID) ([]deadletter.Letter, error) {
	var list []deadletter.Letter
	for chunk := range slices.Chunk(ids, 200) {
		serials := make([]int64, len(chunk))
		for i, id := range chunk {
			serials[i], _, _ = id.Split()
		}
		part, err := s.lettersBySerial(ctx, serials)
		if err != nil {
			return nil, err
		}
		list = append(list, part...)
	}
	return list, nil
}

// Attempts returns the attempts of a letter, oldest first.
func (s *Store) Attempts(ctx context.Context, id deadletter.ID) ([]deadletter.Attempt, error) {
	serial, _, _ := id.Split()
	var a deadletter.Attempt
	var back deadletter.Return
	var token []byte
	var operation sql.NullInt64
	var backQueue, backReason sql.NullString
	wanted := columns{
		{`number`, &a.Number},
		{`token`, &token},
		{`queue`, &a.Queue},
		{`operation`, &operation},
		{`sends`, &a.Sends},
		{`outcome`, &a.Outcome},
		{`detail`, &a.Detail},
		{`at`, instant{&a.At}},
		{`closed_at`, instant{&a.ClosedAt}},
		{`back_at`, instant{&back.At}},
		{`back_queue`, &backQueue},
		{`back_reason`, &backReason},
		{`copies`, &back.Copies},
		{`waits_in`, &a.WaitsIn},
		{`wait_until`, instant{&a.WaitUntil}},
		{`revision`, &a.Revision},
	}
	rows, err := s.read.QueryContext(ctx, `SELECT `+wanted.list()+` FROM attempts WHERE letter = $1 ORDER BY n`, serial)
	if err != nil {
		return nil, err
	}
	var list []deadletter.Attempt
	err = wanted.scan(rows, func() error {
		one := a
		one.Letter, one.Token, one.Operation = id, deadletter.TokenFromBytes(token), deadletter.OperationID(
			operation.Int64,
		)
		if one.WaitsIn == "" {
			one.WaitUntil = time.Time{}
		}
		if !back.At.IsZero() {
			one.Back = &deadletter.Return{
				At:     back.At,
				Queue:  backQueue.String,
				Reason: backReason.String,
				Copies: back.Copies,
			}
		}
		list = append(list, one)
		return nil
	})
	return list, err
}

// History returns the events of a letter, oldest first. Some events are not stored, but derived
// from the letter's attempts. For example, they say that the letter was published, and with which
// outcome.
func (s *Store) History(ctx context.Context, id deadletter.ID) ([]deadletter.Event, error) {
	serial, _, _ := id.Split()
	rows, err := s.ask(ctx, `SELECT operation, at, kind, actor, detail FROM events WHERE letter = $1
		ORDER BY id`, serial)
	if err != nil {
		return nil, err
	}
	list, err := s.receivedEvent(ctx, serial, id)
	if err != nil {
		rows.Close()
		return nil, err
	}
	if err := scan(rows, func() error {
		e := deadletter.Event{Letter: id}
		var operation sql.NullInt64
		var at int64
		var kind deadletter.State // see addEvent
		err := rows.Scan(&operation, &at, &kind, &e.Actor, &e.Detail)
		e.Operation, e.At, e.Kind = deadletter.OperationID(operation.Int64), time.UnixMilli(at).UTC(), string(kind)
		list = append(list, e)
		return err
	}); err != nil {
		return nil, err
	}
	rows, err = s.ask(ctx, `SELECT a.number, a.queue, a.operation,
		o.by, o.reason, a.outcome, a.detail, a.at, a.closed_at, a.revision FROM attempts a
		LEFT JOIN operations o ON o.id = a.operation
		WHERE a.letter = $1 ORDER BY a.n`, serial)
	if err != nil {
		return nil, err
	}
	if err := scan(rows, func() error {
		var number, revision int
		var queue, detail string
		var outcome deadletter.OutcomeKind
		var operation, closed sql.NullInt64
		var by, reason sql.NullString
		var at int64
		if err := rows.Scan(
			&number, &queue, &operation, &by, &reason, &outcome, &detail, &at, &closed, &revision,
		); err != nil {
			return err
		}
		e := deadletter.Event{
			Letter:    id,
			Operation: deadletter.OperationID(operation.Int64),
			At:        time.UnixMilli(at).UTC(),
			Kind:      "requeue",
			Actor:     deadletter.Service.Name,
			Detail:    fmt.Sprintf("attempt %d, to the tail of %s", number, deadletter.Visible(queue)),
		}
		if revision > 0 {
			e.Detail += fmt.Sprintf(", as revision %d", revision)
		}
		if by.Valid {
			if e.Actor = by.String; reason.String != "" {
				e.Detail += ": " + deadletter.Visible(reason.String)
			}
		}
		list = append(list, e)
		if !closed.Valid { // no outcome was recorded; if the letter came back first, the return has an event of its own
			return nil
		}
		e = deadletter.Event{
			Letter: id,
			At:     timeOf(closed),
			Kind:   string(outcome),
			Actor:  deadletter.Service.Name,
			Detail: detail,
		}
		if outcome.Used() {
			e.Kind = string(deadletter.StateRequeued)
		}
		list = append(list, e)
		return nil
	}); err != nil {
		return nil, err
	}
	slices.SortStableFunc(list, func(a, b deadletter.Event) int { return a.At.Compare(b.At) })
	return list, nil
}

// receivedEvent returns the first event of a letter, which says that the letter was received. It
// derives the event from the letter's row.
func (s *Store) receivedEvent(ctx context.Context, serial int64, id deadletter.ID) ([]deadletter.Event, error) {
	var at, inbox int64
	err := s.askRow(ctx, `SELECT received_at, inbox FROM letters WHERE id = $1`, []any{serial}, &at, &inbox)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return []deadletter.Event{{
		Letter: id,
		At:     time.UnixMilli(at).UTC(),
		Kind:   string(deadletter.StateReceived),
		Actor:  deadletter.Service.Name,
		Detail: "out of " + deadletter.Visible(s.names.inbox(inbox).Queue),
	}}, err
}

// GroupTitle returns the title of a group, or ErrNotFound if the group does not exist.
func (s *Store) GroupTitle(ctx context.Context, id deadletter.GroupID) (string, error) {
	var title string
	err := s.read.QueryRowContext(ctx, `SELECT title FROM groups WHERE id = $1`, int64(id)).Scan(&title)
	if errors.Is(err, sql.ErrNoRows) {
		return "", deadletter.NoSuch("group %s", id)
	}
	return title, err
}

// cursor is a position in a list of letters.
type cursor struct {
	order  deadletter.Order
	value  int64 // value by which the list is sorted; 0 if the list is sorted by serial
	serial int64
}

func cursorOf(r deadletter.Row, order deadletter.Order) cursor {
	serial, _, _ := r.ID.Split()
	c := cursor{order: order, serial: serial}
	if by, ok := orderings[order]; ok {
		c.value = by.of(r)
	}
	return c
}

// CursorAfter returns the cursor of the page that begins after the given letter in a list with the
// given order.
func (s *Store) CursorAfter(r deadletter.Row, order deadletter.Order) string {
	return cursorOf(r, order).String()
}

// String returns the cursor as an opaque, URL-safe text.
func (c cursor) String() string {
	b := []byte{markOf(c.order)}
	if _, ok := orderings[c.order]; ok {
		b = binary.BigEndian.AppendUint64(b, uint64(c.value))
	}
	return base64.RawURLEncoding.EncodeToString(binary.BigEndian.AppendUint64(b, uint64(c.serial)))
}

// markOf returns the first byte of the cursors for an order. It differs between orders, so that the
// store can detect a cursor that was made for another order.
func markOf(order deadletter.Order) byte {
	if by, ok := orderings[order]; ok {
		return by.mark
	}
	if order == deadletter.OrderOldest {
		return 'o'
	}
	return 'r'
}

func parseCursor(text string, order deadletter.Order) (cursor, error) {
	b, err := base64.RawURLEncoding.DecodeString(text)
	c := cursor{order: order}
	_, valued := orderings[order]
	switch ours := err == nil && len(b) > 0 && b[0] == markOf(order); {
	case ours && valued && len(b) == 17:
		c.value, c.serial = int64(binary.BigEndian.Uint64(b[1:])), int64(binary.BigEndian.Uint64(b[9:]))
	case ours && !valued && len(b) == 9:
		c.serial = int64(binary.BigEndian.Uint64(b[1:]))
	default:
		return c, fmt.Errorf(
			"%w: the page cursor is not one of this list; begin at its first page", deadletter.ErrInvalid,
		)
	}
	return c, nil
}

// lettersBySerial returns the letters with the given serials, with their bodies, oldest first.
func (s *Store) lettersBySerial(ctx context.Context, serials []int64) ([]deadletter.Letter, error) {
	return s.wholeLetters(ctx, bySerial(len(serials)), anys(serials)...)
}

// bySerial returns a condition for letterQuery that selects n letters by their serials.
func bySerial(n int) string { return `IN (` + placeholders(1, n) + `) ORDER BY l.id` }
