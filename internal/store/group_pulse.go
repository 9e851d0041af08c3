package store

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
)

// decodePulse decodes the column pulse of a group.
func decodePulse(b []byte) (p deadletter.Pulse) {
	for ; len(b) >= 8; b = b[8:] {
		p = append(p, time.UnixMilli(int64(binary.BigEndian.Uint64(b))).UTC())
	}
	return p
}

func encodePulse(p deadletter.Pulse) []byte {
	b := make([]byte, 0, 8*len(p))
	for _, t := range p {
		b = binary.BigEndian.AppendUint64(b, uint64(t.UnixMilli()))
	}
	return b
}

// recordPulse extends a group's time range to include the letters that joined the group. It also
// records the times at which these letters died. If a broker's clock is fast, a time of death can
// be in the future. Such a death counts at the present time.
func (t *tx) recordPulse(g *grouped) error {
	var old []byte
	if err := t.row(`SELECT pulse FROM groups WHERE id = $1`, []any{g.id}, &old); err != nil {
		return err
	}
	now := time.UnixMilli(t.now)
	for i, at := range g.died {
		if at.After(now) {
			g.died[i] = now
		}
	}
	pulse, last := decodePulse(old).Beat(g.died...), g.last
	if n := len(pulse); n > 0 { // the time of death is more exact than the time of receipt
		last = pulse[n-1].UnixMilli()
	}
	_, err := t.exec(`UPDATE groups SET first_at = min(first_at, $2), last_at = max(last_at, $3), pulse = $4, gap = $5
		WHERE id = $1`,
		g.id, g.first, last, encodePulse(pulse), pulse.Gap().Milliseconds())
	return err
}

// failingCondition returns an SQL condition which is true if a group g is failing. A group is
// failing if its letters are dying now, or if its retries are overdue. The letters and retries of
// groups merged into it count too.
func (s *Store) failingCondition() string { return failingAt(s.millis()) }

// failingAt returns an SQL condition which is true if a group g is failing at a given time. The
// parameter "now" is an SQL expression for this time in milliseconds.
func failingAt(now string) string {
	return fmt.Sprintf(`(EXISTS (SELECT 1 FROM groups f WHERE f.id IN %s AND %s) OR EXISTS (SELECT 1 FROM overdue o
		WHERE o.grp IN %s))`, familyIDs, dyingCondition("f", now), familyIDs)
}

func (s *Store) millis() string { return fmt.Sprint(s.now().UnixMilli()) }

// dyingCondition returns an SQL condition which is true if the last letter of a group died
// recently. It ignores merged groups. The usual gap between the group's deaths determines what
// counts as recent.
func dyingCondition(alias, now string) string {
	return fmt.Sprintf(
		`%s.last_at >= %s - max(%d, %d * %s.gap)`, alias, now, deadletter.FailingFor.Milliseconds(),
		deadletter.FailingGaps, alias,
	)
}

const inInbox = `g.status NOT IN ('snoozed', 'resolved')`

// statusCondition returns an SQL condition which is true if a group g has one of the given
// statuses. The value "failing" selects groups in the inbox that are failing now. The value
// "not-failing" selects the other groups in the inbox.
func (s *Store) statusCondition(values []query.Value) clause {
	var list []clause
	plain := slices.DeleteFunc(slices.Clone(values), func(v query.Value) bool {
		switch v.Raw {
		case deadletter.StatusFailing:
			list = append(list, clause{text: inInbox + ` AND ` + s.failingCondition()})
		case deadletter.StatusNotFailing:
			list = append(list, clause{text: inInbox + ` AND NOT ` + s.failingCondition()})
		default:
			return false
		}
		return true
	})
	if len(plain) > 0 {
		list = append(list, textClause("g.status", plain))
	}
	return anyOf(list...)
}

// addPulses fills in the time of each group's last death, and whether the group is failing.
func (s *Store) addPulses(ctx context.Context, list []deadletter.GroupRow) error {
	at := map[int64]int{} // group -> its index in list
	ids := make([]any, len(list))
	for i := range list {
		at[int64(list[i].ID)], ids[i] = i, int64(list[i].ID)
	}
	for chunk := range slices.Chunk(ids, 400) {
		of := placeholders(1, len(chunk))
		rows, err := s.read.QueryContext(
			ctx,
			strings.ReplaceAll(`SELECT coalesce(g.head, g.id), max(g.last_at), max(`+dyingCondition("g", s.millis())+
				`) FROM groups g
			WHERE g.id IN (SELECT id FROM groups WHERE id IN (#) UNION ALL SELECT id FROM groups WHERE head IN (#))
			GROUP BY 1`, "#", of), chunk...,
		)
		if err != nil {
			return fmt.Errorf("groups: %w", err)
		}
		if err := scan(rows, func() error {
			var group, last int64
			var failing bool
			if err := rows.Scan(&group, &last, &failing); err != nil {
				return err
			}
			// if a merged group was requested on its own, the result is about its head, which is
			// not in the map
			if i, ok := at[group]; ok {
				list[i].LastAt = time.UnixMilli(last).UTC()
				list[i].Failing = failing || list[i].Overdue > 0
			}
			return nil
		}); err != nil {
			return fmt.Errorf("groups: %w", err)
		}
	}
	return nil
}

// Standing counts the failing groups and the other groups in the inbox, and their letters.
func (s *Store) Standing(ctx context.Context) (deadletter.Standing, error) {
	var out deadletter.Standing
	rows, err := s.ask(ctx, `SELECT `+s.failingCondition()+`,
		count(*), sum(c.dead), sum(c.overdue), max((SELECT max(f.last_at) FROM groups f WHERE f.id IN `+familyIDs+`))
		FROM `+needyGroups+` c CROSS JOIN groups g ON g.id = c.id WHERE `+inInbox+` GROUP BY 1`)
	if err != nil {
		return out, fmt.Errorf("standing: %w", err)
	}
	err = scan(rows, func() error {
		var failing bool
		var share deadletter.InboxShare
		var last time.Time
		if err := rows.Scan(&failing, &share.Groups, &share.Letters, &share.Overdue, instant{&last}); err != nil {
			return err
		}
		if failing {
			out.Failing = share
		} else {
			out.Quiet = share
		}
		out.LastAt = latest(out.LastAt, last)
		return nil
	})
	return out, err
}
