package store

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Operation returns an operation with its counts. It returns ErrNotFound if no operation has that
// id.
func (s *Store) Operation(ctx context.Context, id deadletter.OperationID) (deadletter.Operation, error) {
	list, err := s.operations(ctx, `WHERE id = $1`, int64(id))
	if err != nil {
		return deadletter.Operation{}, err
	}
	if len(list) == 0 {
		return deadletter.Operation{}, deadletter.NoSuch("operation %s", id)
	}
	return list[0], nil
}

// ActiveOperations returns the operations that are not over, oldest first. It includes operations
// that an earlier process began.
func (s *Store) ActiveOperations(ctx context.Context) ([]deadletter.Operation, error) {
	return s.operations(ctx, `WHERE phase <> 'over' ORDER BY id`)
}

// HaltedOperations returns the operations that a person paused or that stopped automatically,
// oldest first. They keep their letters until a person decides.
func (s *Store) HaltedOperations(ctx context.Context) ([]deadletter.Operation, error) {
	return s.operations(ctx, `WHERE phase <> 'over' AND state IN ('paused', 'stopped') ORDER BY id`)
}

// RunningOperations returns the operations that have letters to act on, oldest first.
func (s *Store) RunningOperations(ctx context.Context) ([]deadletter.OperationID, error) {
	return values[deadletter.OperationID](s.ask(
		ctx, `SELECT id FROM operations WHERE phase <> 'over' AND phase <> 'watching' ORDER BY id`,
	))
}

// NewFailures counts new failures in the groups of an operation. A new failure is a letter that was
// received after the selection of the operation was made and before the operation was over. Letters
// that came back do not count. The count stops at maxNew. If there are more, the result "exact" is
// false.
func (s *Store) NewFailures(ctx context.Context, id deadletter.OperationID) (n int, exact bool, err error) {
	counts, err := values[int](s.read.QueryContext(ctx, `SELECT (SELECT count(*) FROM (SELECT 1 FROM letters l
		INDEXED BY letters_group WHERE l.grp = og.grp AND l.grp > 0
		AND l.state IN ('received', 'scheduled', 'dead', 'held',
		'publishing', 'requeued', 'settled', 'discarded', 'purged') AND l.id >= (o.until + 1) << 12
		AND l.id < coalesce(o.finished_at + 1, 1 << 50) << 12 LIMIT $2))
		FROM operation_groups og JOIN operations o ON o.id = og.operation
		WHERE og.operation = $1`, int64(id), maxNew+1))
	if err != nil {
		return 0, false, fmt.Errorf("new failures of %s: %w", id, err)
	}
	for _, of := range counts {
		n += of
	}
	return min(n, maxNew), n <= maxNew, nil
}

const maxNew = 10_000

// Operations returns at most "limit" operations, newest first. It returns operations that are older
// than the operation "before". If "before" is 0, it starts at the newest operation.
func (s *Store) Operations(
	ctx context.Context, before deadletter.OperationID, limit int,
) ([]deadletter.Operation, error) {
	if before > 0 {
		return s.operations(ctx, `WHERE id < $1 ORDER BY id DESC LIMIT $2`, int64(before), limit)
	}
	return s.operations(ctx, `ORDER BY id DESC LIMIT $1`, limit)
}

// operationColumns returns the columns that are read for an operation.
func operationColumns(op *deadletter.Operation) columns {
	return columns{
		{`id`, &op.ID},
		{`action`, &op.Action},
		{`state`, &op.State},
		{`phase`, &op.Phase},
		{`phase_until`, instant{&op.PhaseUntil}},
		{`why`, &op.Why},
		{`by`, &op.By},
		{`through`, &op.Through},
		{`reason`, &op.Reason},
		{`query`, &op.Query},
		{`excepted`, &op.Except},
		{`changed`, &op.Changed},
		{`created_at`, instant{&op.CreatedAt}},
		{`sent_at`, instant{&op.SentAt}},
		{`finished_at`, instant{&op.FinishedAt}},
		{`(SELECT max(e.at) FROM events e WHERE e.operation = operations.id
			AND e.kind IN ('paused', 'stopped'))`, instant{&op.HaltedAt}},
		{`total`, &op.Total},
		{`first`, &op.First},
		{`target`, &op.To},
		{`due_at`, instant{&op.DueAt}},
		{`reset`, &op.Reset},
		{`restored`, &op.Restored},
		{`reveal`, &op.Reveal},
		{`patch`, &op.Patch},
		{`rate`, &op.Pace.Rate},
		{`canary`, &op.Pace.Canary},
		{`canary_wait`, lasting{&op.Pace.CanaryWait}},
		{`stop_at`, &op.Pace.StopAt},
		{`max_depth`, &op.Pace.MaxDepth},
		{`newest`, (*bool)(&op.Pace.Newest)},
		{`hold`, lasting{&op.Pace.Hold}},
		{`base_taken`, &op.Base.Taken},
		{`base_sent`, &op.Base.Sent},
		{`base_back`, &op.Base.CameBack},
		{`(SELECT count(*) FROM operation_letters ol WHERE ol.operation = operations.id AND ol.twice = 1)`, &op.Twice},
	}
}

func (s *Store) operations(ctx context.Context, where string, args ...any) ([]deadletter.Operation, error) {
	var op deadletter.Operation
	wanted := operationColumns(&op)
	rows, err := s.read.QueryContext(ctx, `SELECT `+wanted.list()+` FROM operations `+where, args...)
	if err != nil {
		return nil, fmt.Errorf("operations: %w", err)
	}
	var list []deadletter.Operation
	if err := wanted.scan(rows, func() error {
		list = append(list, op)
		return nil
	}); err != nil {
		return nil, fmt.Errorf("operations: %w", err)
	}
	for i := range list {
		if err := s.operationCounts(ctx, &list[i]); err != nil {
			return nil, fmt.Errorf("operation %s: %w", list[i].ID, err)
		}
	}
	return list, nil
}

func (s *Store) operationCounts(ctx context.Context, op *deadletter.Operation) error {
	rows, err := s.read.QueryContext(ctx, `SELECT origin, result, n FROM operation_counts WHERE operation = $1
		AND n > 0`, int64(op.ID))
	if err != nil {
		return err
	}
	op.Counts = map[deadletter.Result]int{}
	queues := map[int64]*deadletter.OperationQueue{}
	if err := scan(rows, func() error {
		var origin int64
		var result deadletter.Result
		var n int
		if err := rows.Scan(&origin, &result, &n); err != nil {
			return err
		}
		q := queues[origin]
		if q == nil {
			p := s.names.placeOf(origin, 0)
			q = &deadletter.OperationQueue{
				Broker: p.Broker,
				VHost:  p.VHost,
				Queue:  p.Queue,
				Counts: map[deadletter.Result]int{},
			}
			if unknownOrigin(origin) {
				q.Inbox, q.Queue = p.Queue, ""
			}
			queues[origin] = q
		}
		q.Counts[result] += n
		op.Counts[result] += n
		return nil
	}); err != nil {
		return err
	}
	for _, q := range queues {
		op.Queues = append(op.Queues, *q)
	}
	slices.SortFunc(op.Queues, func(a, b deadletter.OperationQueue) int {
		if d := b.Total() - a.Total(); d != 0 {
			return d
		}
		return slices.Compare([]string{a.Queue, a.VHost, a.Broker}, []string{b.Queue, b.VHost, b.Broker})
	})
	return nil
}

// OperationLetters returns at most "limit" letters of an operation that have one of the given
// results, oldest received first. It also returns the cursor of the next page, which is "" on the
// last page.
func (s *Store) OperationLetters(
	ctx context.Context, op deadletter.OperationID, results []deadletter.Result, after string, limit int,
) ([]deadletter.OperationLetter, string, error) {
	args := make([]any, len(results))
	for i, r := range results {
		args[i] = string(r)
	}
	return s.operationLetters(ctx, op, "", `ol.result IN (`+placeholders(4, len(results))+`)`, args, after, limit)
}

// TwiceLetters returns at most "limit" letters of an operation that may have been sent twice,
// oldest received first. It also returns the cursor of the next page, which is "" on the last page.
func (s *Store) TwiceLetters(
	ctx context.Context, op deadletter.OperationID, after string, limit int,
) ([]deadletter.OperationLetter, string, error) {
	return s.operationLetters(ctx, op, "INDEXED BY operation_twice", "ol.twice = 1", nil, after, limit)
}

func (s *Store) operationLetters(
	ctx context.Context, op deadletter.OperationID, index, where string, args []any, after string, limit int,
) ([]deadletter.OperationLetter, string, error) {
	from := int64(0)
	if after != "" {
		var err error
		if from, err = strconv.ParseInt(after, 36, 64); err != nil {
			return nil, "", fmt.Errorf(
				"%w: the page cursor is not one of this list; begin at its first page", deadletter.ErrInvalid,
			)
		}
	}
	if limit <= 0 || limit > maxPage {
		return nil, "", fmt.Errorf("%w: a page has 1 to %d letters", deadletter.ErrInvalid, maxPage)
	}
	rows, err := s.read.QueryContext(ctx, `SELECT ol.letter,
		l.random, ol.origin, ol.result, ol.reason, ol.twice,
		l.state, l.due_at, coalesce(nullif(l.error, ''), g.title, ''),
		coalesce(g.head, g.id, 0), coalesce(b.head, b.id, 0)
		FROM operation_letters ol `+index+` JOIN letters l ON l.id = ol.letter
		LEFT JOIN groups g ON g.id = l.grp LEFT JOIN groups b ON b.id = ol.grp
		WHERE ol.operation = $1 AND ol.letter > $2 AND `+where+` ORDER BY ol.letter LIMIT $3`, append(
		[]any{int64(op), from, limit + 1}, args...,
	)...)
	if err != nil {
		return nil, "", fmt.Errorf("letters of %s: %w", op, err)
	}
	var list []deadletter.OperationLetter
	var serials []int64
	if err := scan(rows, func() error {
		var l deadletter.OperationLetter
		var serial, random, origin int64
		err := rows.Scan(
			&serial, &random, &origin, &l.Result, &l.Reason, &l.Twice, &l.State, instant{&l.DueAt}, &l.Error, &l.Group,
			&l.Was,
		)
		l.Letter, l.Queue = deadletter.NewID(serial, uint64(random)), s.names.origin(origin).Queue
		list, serials = append(list, l), append(serials, serial)
		return err
	}); err != nil {
		return nil, "", fmt.Errorf("letters of %s: %w", op, err)
	}
	if len(list) > limit {
		return list[:limit], strconv.FormatInt(serials[limit-1], 36), nil
	}
	return list, "", nil
}

// BackGroups returns at most "limit" groups to which letters of an operation came back. The groups
// with the most letters come first. It looks only at the first maxNew letters that came back. It
// skips a letter that is not yet classified again, and a letter whose earlier group was not
// recorded.
func (s *Store) BackGroups(ctx context.Context, op deadletter.OperationID, limit int) ([]deadletter.BackGroup, error) {
	rows, err := s.read.QueryContext(ctx, `SELECT coalesce(g.head, g.id) AS now, (SELECT title FROM groups
		WHERE id = coalesce(g.head, g.id)), count(*) AS n, coalesce(g.head, g.id) = coalesce(b.head, b.id)
		FROM (SELECT letter, grp FROM operation_letters WHERE operation = $1 AND result = $2 ORDER BY letter
		LIMIT $3) ol
		JOIN letters l ON l.id = ol.letter JOIN groups g ON g.id = l.grp JOIN groups b ON b.id = ol.grp
		WHERE l.state <> 'received' GROUP BY 1, 4 ORDER BY n DESC, now
		LIMIT $4`, int64(op), string(deadletter.ResultCameBack), maxNew, limit)
	if err != nil {
		return nil, fmt.Errorf("what came back of %s: %w", op, err)
	}
	return collect(rows, func(r *deadletter.BackGroup) []any { return []any{&r.Group, &r.Title, &r.Letters, &r.Same} })
}

// OperationGroups returns at most "limit" groups with letters of an operation, sorted by id. A
// merged group is replaced by its head.
func (s *Store) OperationGroups(
	ctx context.Context, op deadletter.OperationID, limit int,
) ([]deadletter.GroupID, error) {
	list, err := values[deadletter.GroupID](s.read.QueryContext(ctx, `SELECT DISTINCT coalesce(g.head, g.id)
		FROM operation_groups og JOIN groups g ON g.id = og.grp
		WHERE og.operation = $1 ORDER BY 1 LIMIT $2`, int64(op), limit))
	if err != nil {
		return nil, fmt.Errorf("groups of %s: %w", op, err)
	}
	return list, nil
}

// WorkedOn returns, for each group, an operation that is not over and that acts on letters of the
// group. If there are several, it returns the newest one. A merged group is replaced by its head.
func (s *Store) WorkedOn(ctx context.Context) (map[deadletter.GroupID]deadletter.Operation, error) {
	rows, err := s.ask(ctx, `SELECT coalesce(g.head, g.id), max(o.id) FROM operations o
		JOIN operation_groups og ON og.operation = o.id JOIN groups g ON g.id = og.grp WHERE o.phase <> 'over'
		GROUP BY 1`)
	if err != nil {
		return nil, fmt.Errorf("groups that are worked on: %w", err)
	}
	newest := map[deadletter.GroupID]deadletter.OperationID{}
	if err := scan(rows, func() error {
		var group deadletter.GroupID
		var op deadletter.OperationID
		err := rows.Scan(&group, &op)
		newest[group] = op
		return err
	}); err != nil || len(newest) == 0 {
		return nil, err
	}
	active, err := s.ActiveOperations(ctx)
	if err != nil {
		return nil, err
	}
	out := map[deadletter.GroupID]deadletter.Operation{}
	for group, op := range newest {
		// an operation that has ended in the meantime is left out
		if i := slices.IndexFunc(active, func(o deadletter.Operation) bool { return o.ID == op }); i >= 0 {
			out[group] = active[i]
		}
	}
	return out, nil
}
