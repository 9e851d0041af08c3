package store

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

const (
	newFor        = 24 * time.Hour     // after this time, a group that nobody has touched changes from new to open
	usualOver     = 7 * 24 * time.Hour // period from which the usual rate of a group is computed
	escalatesFrom = 20                 // minimum number of letters in an hour for an escalation; fewer are not a flood
	escalatesBy   = 4                  // minimum multiple of the usual rate for an escalation
)

// Tend updates groups as time passes. It ends snoozes, changes new groups to open, and escalates
// groups that grow faster than before. People who were notified about a group are also notified
// when the group is quiet, and when it no longer needs people. Tend reads only counters and
// rollups. It returns how many groups changed.
func (s *Store) Tend(ctx context.Context) (int, error) {
	changed := 0
	err := s.tx(ctx, bulk, func(t *tx) error {
		changed = 0
		for _, step := range []func() (int, error){
			t.wakeSnoozed, t.openOldGroups, t.escalate, t.endEscalations, t.noticeEnds, t.noticeQuiet, t.pruneOld,
		} {
			n, err := step()
			if err != nil {
				return err
			}
			changed += n
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("tend groups: %w", err)
	}
	return changed, nil
}

// eachGroup calls fn for each group whose id a query returns. It then saves the group and writes
// the notices that fn returns.
func (t *tx) eachGroup(query string, args []any, fn func(g *deadletter.GroupLife) []*deadletter.Notice) (int, error) {
	ids, err := values[int64](t.query(query, args...))
	if err != nil {
		return 0, err
	}
	for _, id := range ids {
		g, err := t.readLife(id)
		if err != nil {
			return 0, err
		}
		was := g.Status
		told := fn(g)
		if err := t.saveGroup(g, was); err != nil {
			return 0, err
		}
		if err := t.writeNotices(told); err != nil {
			return 0, err
		}
	}
	return len(ids), nil
}

func (t *tx) wakeSnoozed() (int, error) {
	return t.eachGroup(`SELECT id FROM groups WHERE status = 'snoozed'
		AND snooze_until <= $1`, []any{t.now}, func(g *deadletter.GroupLife) []*deadletter.Notice {
		g.Wake()
		return nil
	})
}

func (t *tx) openOldGroups() (int, error) {
	done, err := t.exec(`UPDATE groups SET status = 'open' WHERE status = 'new' AND first_at < $1
		AND last_at < $1`, t.now-newFor.Milliseconds())
	if err != nil {
		return 0, err
	}
	n, err := done.RowsAffected()
	return int(n), err
}

// hourlyCounts is an SQL query about groups that received letters in the last hour. The caller
// lists the groups. For each group, the query returns the number of letters received in the last
// hour, the number received before, and the time at which the group began.
const hourlyCounts = `SELECT coalesce(g.head, g.id) AS id, sum(CASE WHEN r.bucket >= $1 THEN r.n
	ELSE 0 END) AS hour, sum(CASE WHEN r.bucket < $1 THEN r.n ELSE 0 END) AS before, min(g.first_at) AS first
	FROM rollups r INDEXED BY rollups_group JOIN groups g ON g.id = r.grp WHERE r.bucket >= $2 AND r.grp IN `

func (t *tx) escalate() (int, error) {
	hour := t.now/rollupMillis + 1 - bucketsPerHour
	from := hour - int64(usualOver/rollupStep)
	rows, err := t.query(hourlyCounts+`(SELECT m.id FROM groups m JOIN groups h ON h.id = coalesce(m.head, m.id)
		WHERE h.status IN ('new', 'open', 'regressed')
		AND EXISTS (SELECT 1 FROM rollups x INDEXED BY rollups_group WHERE x.grp = m.id AND x.bucket >= $1))
		GROUP BY 1`, hour, from)
	if err != nil {
		return 0, err
	}
	var rising []int64
	if err := scan(rows, func() error {
		var id, n, before, first int64
		err := rows.Scan(&id, &n, &before, &first)
		if escalates(n, before, hour-max(from, first/rollupMillis)) {
			rising = append(rising, id)
		}
		return err
	}); err != nil {
		return 0, err
	}
	changed := 0
	for _, id := range rising {
		n, err := t.eachGroup(
			`SELECT id FROM groups WHERE id = $1`, []any{id}, func(g *deadletter.GroupLife) []*deadletter.Notice {
				return []*deadletter.Notice{g.Escalate(time.UnixMilli(t.now).UTC())}
			},
		)
		if err != nil {
			return 0, err
		}
		changed += n
	}
	return changed, nil
}

// escalates reports whether n letters in an hour are far more than usual. The parameter "earlier"
// is the number of letters before that hour. The parameter "buckets" is the number of quarter hours
// in which they were received. A group younger than a day has no usual rate.
func escalates(n, earlier, buckets int64) bool {
	if buckets < int64(newFor/rollupStep) || n < escalatesFrom {
		return false
	}
	mean := float64(earlier) * float64(bucketsPerHour) / float64(buckets)
	return float64(n) >= escalatesBy*mean && float64(n) >= mean+4*math.Sqrt(mean)
}

// endEscalations ends the escalation of each group that received fewer than half of escalatesFrom
// letters in the last hour.
func (t *tx) endEscalations() (int, error) {
	hour := t.now/rollupMillis + 1 - bucketsPerHour
	return t.eachGroup(`SELECT g.id FROM groups g WHERE g.status = 'escalating' AND (SELECT coalesce(sum(r.n), 0)
		FROM rollups r INDEXED BY rollups_group WHERE r.bucket >= $1
		AND r.grp IN (SELECT id FROM groups WHERE id = g.id OR head = g.id)) < $2`, []any{hour, escalatesFrom / 2},
		func(g *deadletter.GroupLife) []*deadletter.Notice {
			g.Status = deadletter.GroupOpen
			return nil
		})
}

// noticeEnds notifies machines and people that a group no longer needs people. It handles only
// groups about which machines were notified before. It notifies people only if they know of the
// group at present. A group no longer needs people if none of its letters is received, dead, held,
// overdue, being sent or watched.
func (t *tx) noticeEnds() (int, error) {
	return t.eachGroup(`SELECT g.id FROM groups g INDEXED BY groups_heard WHERE g.heard = 1 AND NOT EXISTS (SELECT 1
		FROM counters c INDEXED BY counters_group WHERE c.n > 0
		AND c.state IN ('received', 'dead', 'held', 'publishing', 'requeued') AND c.grp IN (SELECT id FROM groups
		WHERE id = g.id OR head = g.id))
		AND NOT EXISTS (SELECT 1 FROM overdue d WHERE d.grp IN (SELECT id FROM groups WHERE id = g.id OR head = g.id))
		AND NOT EXISTS (SELECT 1 FROM operation_groups og JOIN operations o ON o.id = og.operation WHERE og.grp IN
		(SELECT id FROM groups WHERE id = g.id OR head = g.id)
		AND o.phase <> 'over')`, nil, (*deadletter.GroupLife).CloseSettled)
}

// noticeQuiet notifies people that letters of a group no longer die. It does so only if people were
// notified about the group and have had some time to look at it. Pending notices, such as those
// that wait for the end of quiet hours, are sent first. However, noticeQuiet does not wait for a
// receiver that does not respond.
func (t *tx) noticeQuiet() (int, error) {
	return t.eachGroup(`SELECT g.id FROM groups g INDEXED BY groups_told WHERE g.told > 0 AND g.told_at < $1 - $2
		AND NOT `+failingAt("$1")+`
		AND NOT EXISTS (SELECT 1 FROM notices n JOIN deliveries d ON d.notice = n.id WHERE n.key = g.told_key
		AND (d.state = 'sent' AND d.ended_at > $1 - $2
			OR d.state = 'due' AND (d.postponed = 1 OR d.tries = 0) AND NOT EXISTS (SELECT 1 FROM notices m
			JOIN deliveries s ON s.notice = m.id
				WHERE m.key = n.key AND s.channel = d.channel
				AND s.state = 'sent')))`, []any{
		t.now, deadletter.FailingFor.Milliseconds(),
	}, (*deadletter.GroupLife).Quiet)
}

// heldFor is the time for which notices and decisions are kept.
const heldFor = 400 * 24 * time.Hour

// pruneOld deletes some of the old notices and decisions.
func (t *tx) pruneOld() (int, error) {
	before := t.now - heldFor.Milliseconds()
	for _, old := range []string{
		`DELETE FROM deliveries WHERE id IN (SELECT d.id FROM notices n JOIN deliveries d ON d.notice = n.id
			WHERE n.at < $1 AND d.state <> 'due' ORDER BY n.at LIMIT 500)`,
		`DELETE FROM digests WHERE at < $1`,
		`DELETE FROM notices WHERE id IN (SELECT n.id FROM notices n WHERE n.at < $1 AND NOT EXISTS (SELECT 1
			FROM deliveries d WHERE d.notice = n.id) ORDER BY n.at LIMIT 500)`,
		`DELETE FROM decision_groups WHERE decision IN (SELECT id FROM decisions WHERE at < $1 ORDER BY id LIMIT 500)`,
		`DELETE FROM decisions WHERE at < $1 AND NOT EXISTS (SELECT 1 FROM decision_groups
			WHERE decision = decisions.id)`,
		`DELETE FROM deploys WHERE at < $1`,
		`DELETE FROM deaths WHERE minute < $1 / 60000`,
	} {
		if _, err := t.exec(old, before); err != nil {
			return 0, err
		}
	}
	return 0, nil
}
