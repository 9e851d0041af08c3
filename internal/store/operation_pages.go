package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Operation returns an operation with its counts; ErrNotFound when there is none of that id.
func (s *Store) Operation(ctx context.Context, id deadletter.OperationID) (deadletter.Operation, error) {
	list, err := s.operations(ctx, `WHERE id = $1`, int64(id))
	if err != nil {
		return deadletter.Operation{}, err
	}
	if len(list) == 0 {
		return deadletter.Operation{}, fmt.Errorf("operation %s: %w", id, deadletter.ErrNotFound)
	}
	return list[0], nil
}

// Operations returns up to limit operations, newest first, from before on; 0 = from the newest.
func (s *Store) Operations(ctx context.Context, before deadletter.OperationID, limit int) ([]deadletter.Operation, error) {
	if before > 0 {
		return s.operations(ctx, `WHERE id < $1 ORDER BY id DESC LIMIT $2`, int64(before), limit)
	}
	return s.operations(ctx, `ORDER BY id DESC LIMIT $1`, limit)
}

func (s *Store) operations(ctx context.Context, where string, args ...any) ([]deadletter.Operation, error) {
	rows, err := s.read.QueryContext(ctx, `SELECT id, action, state, by, through, reason, created_at, finished_at, total FROM operations `+where, args...)
	if err != nil {
		return nil, fmt.Errorf("operations: %w", err)
	}
	var list []deadletter.Operation
	if err := scan(rows, func() error {
		var op deadletter.Operation
		var id, created int64
		var finished sql.NullInt64
		err := rows.Scan(&id, &op.Action, &op.State, &op.By, &op.Through, &op.Reason, &created, &finished, &op.Total)
		op.ID, op.CreatedAt, op.FinishedAt = deadletter.OperationID(id), time.UnixMilli(created).UTC(), timeOf(finished)
		list = append(list, op)
		return err
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
	rows, err := s.read.QueryContext(ctx, `SELECT origin, result, n FROM operation_counts WHERE operation = $1 AND n > 0`, int64(op.ID))
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
			p := s.names.origin(origin)
			q = &deadletter.OperationQueue{Broker: p.Broker, VHost: p.VHost, Queue: p.Queue, Counts: map[deadletter.Result]int{}}
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

// OperationLetters returns up to limit letters of an operation with one of the results, oldest received first, and the cursor of the next page, "" at the end.
func (s *Store) OperationLetters(ctx context.Context, op deadletter.OperationID, results []deadletter.Result, after string, limit int) ([]deadletter.OperationLetter, string, error) {
	from := int64(0)
	if after != "" {
		var err error
		if from, err = strconv.ParseInt(after, 36, 64); err != nil {
			return nil, "", fmt.Errorf("%w: the page cursor is not one of this list; begin at its first page", deadletter.ErrInvalid)
		}
	}
	if limit <= 0 || limit > maxPage {
		return nil, "", errors.Join(deadletter.ErrInvalid, fmt.Errorf("a page has 1 to %d letters", maxPage))
	}
	args := []any{int64(op), from, limit + 1}
	for _, r := range results {
		args = append(args, string(r))
	}
	rows, err := s.read.QueryContext(ctx, `SELECT ol.letter, l.random, ol.origin, ol.result, ol.reason FROM operation_letters ol JOIN letters l ON l.id = ol.letter
		WHERE ol.operation = $1 AND ol.letter > $2 AND ol.result IN (`+placeholders(4, len(results))+`) ORDER BY ol.letter LIMIT $3`, args...)
	if err != nil {
		return nil, "", fmt.Errorf("letters of %s: %w", op, err)
	}
	var list []deadletter.OperationLetter
	var serials []int64
	if err := scan(rows, func() error {
		var l deadletter.OperationLetter
		var serial, random, origin int64
		err := rows.Scan(&serial, &random, &origin, &l.Result, &l.Reason)
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
