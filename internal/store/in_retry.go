package store

import (
	"context"
	"fmt"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// retryStates contains deadletter.RetryStates as an SQL list.
const retryStates = `'scheduled', 'publishing', 'requeued'`

// noneNeedy is an SQL condition which is true if no letter of a group g needs people.
const noneNeedy = groupDead + ` + ` + groupOverdue + ` = 0`

// retryingGroups is an SQL table of the groups with letters in retry, one row per head. The column
// "n" is the number of these letters. It must be the first table of a query (see needyGroups).
const retryingGroups = `(SELECT coalesce(m.head, m.id) AS id, sum(k.n) AS n FROM counters k
	JOIN groups m ON m.id = k.grp WHERE k.state IN (` + retryStates + `) AND k.n > 0 GROUP BY 1)`

// groupNext is an SQL expression for the next time of a group g (see deadletter.GroupRow.NextAt).
var groupNext = fmt.Sprintf(`coalesce(%s, %s)`, groupDue("scheduled"), groupDue("requeued"))

func groupDue(state string) string {
	return fmt.Sprintf(`(SELECT min(due_at) FROM (SELECT l.due_at FROM letters l INDEXED BY letters_group
		WHERE l.grp IN %s AND l.grp > 0 AND l.state = '%s' LIMIT %d))`, familyIDs, state, deadletter.NextOf)
}

// InRetry counts the letters in retry, and says when the first of them can die or count as quiet.
func (s *Store) InRetry(ctx context.Context) (deadletter.InRetry, error) {
	var in deadletter.InRetry
	rows, err := s.ask(ctx, `SELECT origin, sum(n) FROM counters WHERE state IN (`+retryStates+`) AND n > 0
		GROUP BY 1 ORDER BY 2 DESC`)
	if err != nil {
		return in, fmt.Errorf("letters in retry: %w", err)
	}
	if err := scan(rows, func() error {
		var origin int64
		var n int
		err := rows.Scan(&origin, &n)
		in.Letters += n
		in.Queues = append(in.Queues, s.names.origin(origin).origin())
		return err
	}); err != nil || in.Letters == 0 {
		return in, err
	}
	err = s.askRow(ctx, `SELECT (SELECT count(*) FROM `+retryingGroups+` c CROSS JOIN groups g ON g.id = c.id
			WHERE `+noneNeedy+`),
		(SELECT min((SELECT l.told_by FROM letters l INDEXED BY letters_told WHERE l.state = 'scheduled'
			AND l.operation IS NULL AND l.overdue = 0 AND l.origin = o.origin AND l.told_by IS NOT NULL
			ORDER BY l.told_by LIMIT 1)) - $1
			FROM (SELECT DISTINCT origin FROM counters WHERE state = 'scheduled' AND n > 0) o),
		(SELECT l.due_at FROM letters l INDEXED BY letters_watched WHERE l.state = 'requeued' AND l.due_at IS NOT NULL
			ORDER BY l.due_at LIMIT 1)`,
		[]any{deadletter.ToldAfter.Milliseconds()}, &in.Groups, instant{&in.DiesAt}, instant{&in.QuietAt})
	return in, err
}
