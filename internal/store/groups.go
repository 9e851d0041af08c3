package store

import (
	"context"
	"fmt"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

const (
	sparkHours     = 24
	bucketsPerHour = int64(time.Hour / rollupStep)
	maxGroups      = 1000
)

// Groups returns up to limit groups that have letters that are dead or held, most such letters first. Counts come from the counters and hours from the rollups, so no letter is read.
func (s *Store) Groups(ctx context.Context, limit int) ([]deadletter.GroupRow, error) {
	if limit <= 0 || limit > maxGroups {
		return nil, fmt.Errorf("%w: a page has 1 to %d groups", deadletter.ErrInvalid, maxGroups)
	}
	rows, err := s.ask(ctx, `SELECT g.id, g.title, g.origin, g.type, g.reason, g.error, g.severity, g.first_at, g.last_at, c.n
		FROM (SELECT grp, sum(n) AS n FROM counters WHERE state IN ('dead', 'held') AND grp > 0 GROUP BY grp HAVING sum(n) > 0 ORDER BY 2 DESC, 1 LIMIT $1) c
		JOIN groups g ON g.id = c.grp ORDER BY c.n DESC, g.id`, limit)
	if err != nil {
		return nil, fmt.Errorf("groups: %w", err)
	}
	var list []deadletter.GroupRow
	at := map[int64]int{} // group -> its place in list
	var ids []any
	if err := scan(rows, func() error {
		var g deadletter.GroupRow
		var id, origin, typ, first, last int64
		err := rows.Scan(&id, &g.Title, &origin, &typ, &g.Reason, &g.Error, &g.Severity, &first, &last, &g.Count)
		place := s.names.origin(origin)
		g.ID, g.Broker, g.VHost, g.Queue, g.Type = deadletter.GroupID(id), place.Broker, place.VHost, place.Queue, s.names.typeName(typ)
		g.FirstAt, g.LastAt, g.Spark = time.UnixMilli(first).UTC(), time.UnixMilli(last).UTC(), make([]int, sparkHours)
		at[id] = len(list)
		list, ids = append(list, g), append(ids, id)
		return err
	}); err != nil {
		return nil, fmt.Errorf("groups: %w", err)
	}
	if len(list) == 0 {
		return nil, nil
	}
	// The hours end with the quarter of an hour that is running.
	end := s.now().UnixMilli()/rollupMillis + 1
	from := end - sparkHours*bucketsPerHour
	rows, err = s.read.QueryContext(ctx, `SELECT grp, bucket, sum(n) FROM rollups INDEXED BY rollups_group WHERE bucket >= $1 AND bucket < $2 AND grp IN (`+placeholders(3, len(ids))+`) GROUP BY grp, bucket`,
		append([]any{from, end}, ids...)...)
	if err != nil {
		return nil, fmt.Errorf("groups: %w", err)
	}
	err = scan(rows, func() error {
		var group, bucket int64
		var n int
		err := rows.Scan(&group, &bucket, &n)
		list[at[group]].Spark[(bucket-from)/bucketsPerHour] += n
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("groups: %w", err)
	}
	return list, nil
}
