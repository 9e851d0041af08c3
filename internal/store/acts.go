package store

import (
	"context"
	"fmt"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Record appends an act, such as the start of a drain, to the audit. It records the act with the
// time of the transaction. The context says whether the act came from a page, the API or the
// command line.
func (s *Store) Record(ctx context.Context, a deadletter.Act) error {
	if err := s.tx(ctx, urgent, func(t *tx) error { return t.audit(a) }); err != nil {
		return fmt.Errorf("record %s: %w", a.Kind, err)
	}
	return nil
}

// RecordWith appends an act to the audit in the transaction in which the described change is made.
// If the change fails, nothing is recorded. If the commit fails after the change, the caller must
// undo the change.
func (s *Store) RecordWith(ctx context.Context, a deadletter.Act, change func() error) error {
	return s.tx(ctx, urgent, func(t *tx) error {
		if err := t.audit(a); err != nil {
			return err
		}
		return change()
	})
}

// audit appends an act to the audit. The act also appears in the history of each group that it
// concerns. An act on a letter is also recorded in the history of the letter.
func (t *tx) audit(a deadletter.Act) error {
	way := deadletter.WayOf(t.ctx)
	if a.Actor == deadletter.Service.Name {
		way = deadletter.WayService
	}
	var id int64
	if err := t.row(`INSERT INTO events (operation, at, kind, actor, detail, through, asked, done, address)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) RETURNING id`,
		[]any{
			positiveOrNull(int64(a.Operation)), t.now, a.Kind, a.Actor, a.Detail, string(way), countOrNull(a.Asked),
			countOrNull(a.Done), deadletter.AddressOf(t.ctx),
		}, &id); err != nil {
		return err
	}
	if a.Operation != 0 {
		a.Targets = append(a.Targets, deadletter.Target{Kind: deadletter.TargetOperation, Name: a.Operation.String()})
	}
	for _, target := range a.Targets {
		if _, err := t.exec(`INSERT INTO event_targets (event, kind, name) VALUES ($1, $2, $3)
			ON CONFLICT DO NOTHING`, id, string(target.Kind), target.Name); err != nil {
			return err
		}
		if target.Kind != deadletter.TargetLetter {
			continue
		}
		serial, _, _ := deadletter.ID(target.Name).Split()
		if err := t.addEvent(serial, a.Operation, a.Kind, a.Actor, a.Detail); err != nil {
			return err
		}
	}
	return nil
}

// countOrNull converts the number in an act to a database value. The number UnknownAmount
// becomes NULL.
func countOrNull(n deadletter.Amount) any {
	if n == deadletter.UnknownAmount {
		return nil
	}
	return int(n)
}

// recordSteering records an act on an operation. The act contains the number of letters that the
// operation has completed.
func (t *tx) recordSteering(op deadletter.OperationID, kind, by, detail string) error {
	a := deadletter.Act{Kind: kind, Actor: by, Operation: op, Detail: detail}
	counts, err := t.counts(op)
	if err != nil {
		return err
	}
	for result, n := range counts {
		a.Asked += deadletter.Amount(n)
		if result.Acted() {
			a.Done += deadletter.Amount(n)
		}
	}
	return t.audit(a)
}

// counts returns the number of an operation's letters per result, including changes made by this
// transaction.
func (t *tx) counts(op deadletter.OperationID) (map[deadletter.Result]int, error) {
	counts := map[deadletter.Result]int{}
	rows, err := t.query(`SELECT result, sum(n) FROM operation_counts WHERE operation = $1 GROUP BY result`, int64(op))
	if err != nil {
		return nil, err
	}
	if err := scan(rows, func() error {
		var result deadletter.Result
		var n int
		err := rows.Scan(&result, &n)
		counts[result] = n
		return err
	}); err != nil {
		return nil, err
	}
	for share, n := range t.moves.shares {
		if share.operation == op {
			counts[share.result] += int(n)
		}
	}
	return counts, nil
}

// outcome summarises the results of an operation, such as "9 discarded, 21 skipped".
func (t *tx) outcome(op deadletter.OperationID) (string, error) {
	var action deadletter.Verb
	if err := t.row(`SELECT action FROM operations WHERE id = $1`, []any{int64(op)}, &action); err != nil {
		return "", err
	}
	counts, err := t.counts(op)
	if err != nil {
		return "", err
	}
	var parts []string
	for _, result := range deadletter.Results {
		if n := counts[result]; n > 0 {
			word := string(result)
			if result == deadletter.ResultChanged {
				word = action.Past()
			}
			parts = append(parts, fmt.Sprintf("%d %s", n, word))
		}
	}
	return strings.Join(parts, ", "), nil
}
