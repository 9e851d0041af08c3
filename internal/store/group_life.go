package store

import (
	"database/sql"
	"errors"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// readLife reads those data of a group that dlo needs for decisions about notices, snoozes and the
// status of the group.
func (t *tx) readLife(id int64) (*deadletter.GroupLife, error) {
	g := &deadletter.GroupLife{ID: deadletter.GroupID(id)}
	var until, resolved, told, began, deploy, back, after sql.NullInt64
	var channels string
	err := t.row(`SELECT status, chosen, severity, deaths, snooze_until,
		snooze_after, snooze_queue, snooze_by, snooze_deaths, resolved_at, resolved_by, resolved_version,
		episode, told, told_key, told_at, told_severity, told_channels, told_began, told_deploy, heard,
		back_at, back_after FROM groups
		WHERE id = $1`, []any{id},
		&g.Status, &g.Chosen, &g.Severity, &g.Deaths, &until, &g.Snooze.After, &g.Snooze.Queue, &g.Snooze.By,
		&g.Snoozed, &resolved, &g.Resolved.By, &g.Resolved.Version,
		&g.Episode, &g.Told, &g.Key, &told, &g.ToldAs, &channels, &began, &deploy, &g.Heard,
		&back, &after)
	g.Snooze.Until, g.Resolved.At, g.ToldAt, g.Began, g.Deploy = timeOf(until), timeOf(
		resolved,
	), timeOf(told), timeOf(began), deploy.Int64
	g.Back = deadletter.Back{Since: timeOf(back), After: deadletter.OperationID(after.Int64)}
	if channels != "" {
		g.Channels = strings.Split(channels, "\n")
	}
	return g, err
}

// saveLife writes a changed group back to the database. The group must come from the method
// readLife.
func (t *tx) saveLife(g *deadletter.GroupLife) error {
	_, err := t.exec(`UPDATE groups SET status = $2, chosen = $3,
		severity = $4, deaths = $5, snooze_until = $6, snooze_after = $7,
		snooze_queue = $8, snooze_by = $9, snooze_deaths = $10,
		resolved_at = $11, resolved_by = $12, resolved_version = $13,
		episode = $14, told = $15, told_at = $16, told_severity = $17, told_channels = $18, told_key = $19,
		told_began = $20, told_deploy = $21, heard = $22, back_at = $23, back_after = $24 WHERE id = $1`,
		int64(g.ID), string(g.Status), string(g.Chosen), string(g.Severity), g.Deaths, millis(g.Snooze.Until),
		g.Snooze.After, g.Snooze.Queue, g.Snooze.By, g.Snoozed,
		millis(g.Resolved.At), g.Resolved.By, g.Resolved.Version, g.Episode, g.Told, millis(g.ToldAt), string(g.ToldAs),
		strings.Join(g.Channels, "\n"), g.Key,
		millis(g.Began), positiveOrNull(g.Deploy), g.Heard, millis(g.Back.Since),
		positiveOrNull(int64(g.Back.After)))
	return err
}

// recordDeaths records deaths of letters in a group and writes the notices for people. If the group
// is merged into another group, the deaths count for that other group.
func (t *tx) recordDeaths(group int64, deaths []deadletter.GroupDeath) error {
	if len(deaths) == 0 || group == 0 { // letters of trials cause no notices
		return nil
	}
	if _, err := t.exec(`INSERT INTO deaths (minute, grp, n) VALUES ($1, $2, $3) ON CONFLICT DO UPDATE
		SET n = n + excluded.n`, t.now/60000, group, len(deaths)); err != nil {
		return err
	}
	var cause []byte
	var origin int64
	if err := t.row(`SELECT cause, origin, coalesce(head, id) FROM groups
		WHERE id = $1`, []any{group}, &cause, &origin, &group); err != nil {
		return err
	}
	g, err := t.readLife(group)
	if err != nil {
		return err
	}
	if err := t.endSnoozesByCause(origin, cause); err != nil {
		return err
	}
	was, told := g.Status, g.Told > 0
	var needy bool // state before this transaction, because a transaction writes its counts only at its end
	if err := t.row(`SELECT EXISTS (SELECT 1 FROM counters k INDEXED BY counters_group WHERE k.grp IN (SELECT id
		FROM groups WHERE id = $1 OR head = $1) AND k.state IN ('dead', 'held')
		AND k.n > 0)`, []any{group}, &needy); err != nil {
		return err
	}
	var after deadletter.OperationID
	if !needy && g.Deaths > 0 {
		if after, err = t.quietOperation(group, deaths); err != nil {
			return err
		}
	}
	notice := g.Died(deaths, needy, after, time.UnixMilli(t.now).UTC())
	if g.Back.Since.UnixMilli() == t.now { // each return is an entry of its own in the history
		was = ""
	}
	if err := t.gather(g, notice, origin, told); err != nil {
		return err
	}
	if err := t.saveGroup(g, was); err != nil {
		return err
	}
	return t.writeNotice(notice, 0)
}

// quietOperation returns the newest operation on letters of a group, if the group was quiet after
// it: it sent the letters, it is over, none of the letters came back until then, and all the given
// deaths are later. Otherwise quietOperation returns 0. It looks only at the first maxNew letters
// of the operation that came back.
func (t *tx) quietOperation(group int64, deaths []deadletter.GroupDeath) (op deadletter.OperationID, err error) {
	var over int64
	err = t.row(`SELECT o.id, o.finished_at FROM operations o WHERE o.id = (SELECT max(operation) FROM operation_groups
		WHERE grp IN (SELECT id FROM groups WHERE id = $1 OR head = $1))
		AND o.phase = 'over' AND o.action IN ('requeue', 'edit')
		AND NOT EXISTS (SELECT 1 FROM (SELECT letter, grp FROM operation_letters WHERE operation = o.id
			AND result = 'came back' ORDER BY letter LIMIT $2) ol JOIN attempts a ON a.letter = ol.letter
			AND a.operation = o.id AND a.back_at <= o.finished_at
			WHERE ol.grp IN (SELECT id FROM groups WHERE id = $1 OR head = $1))`, []any{group, maxNew}, &op, &over)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	for _, d := range deaths {
		if d.At.UnixMilli() <= over {
			return 0, err
		}
	}
	return op, err
}

// saveGroup saves a group. If dlo has changed the status of the group, saveGroup adds an entry to
// the group's history.
func (t *tx) saveGroup(g *deadletter.GroupLife, was deadletter.GroupStatus) error {
	if g.Status != was {
		detail := ""
		switch {
		case was == deadletter.GroupSnoozed:
			detail = "it is no longer snoozed"
		case g.Status == deadletter.GroupRegressed:
			detail = "it came back " + g.Back.Cause()
		case g.Status == deadletter.GroupEscalating:
			detail = "it grows faster than it did"
		case was == deadletter.GroupEscalating:
			detail = "it no longer grows faster than it did"
		}
		act := deadletter.Once(string(g.Status), deadletter.Service.Name, detail, deadletter.GroupTarget(g.ID))
		if err := t.audit(act); err != nil {
			return err
		}
	}
	return t.saveLife(g)
}

// endSnoozesByCause ends the snoozes that last until the same error is seen in another queue. The
// error may be that of the snoozed group, or that of a group merged into it.
func (t *tx) endSnoozesByCause(origin int64, cause []byte) error {
	if len(cause) == 0 {
		return nil
	}
	ids, err := values[int64](t.query(`SELECT DISTINCT h.id FROM groups m JOIN groups h ON h.id = coalesce(m.head, m.id)
		WHERE m.cause = $1 AND h.status = 'snoozed' AND h.snooze_queue = 1
		AND NOT EXISTS (SELECT 1 FROM groups f WHERE f.origin = $2 AND (f.id = h.id OR f.head = h.id))`, cause, origin))
	if err != nil {
		return err
	}
	for _, id := range ids {
		g, err := t.readLife(id)
		if err != nil {
			return err
		}
		g.Wake()
		if err := t.saveGroup(g, deadletter.GroupSnoozed); err != nil {
			return err
		}
	}
	return nil
}

// inherit is called when letters of an old group (from) turn out to belong to a new group (to). If
// nothing has happened in the new group yet, the new group continues the old one: it takes over the
// notes, the owner and the notices. If other groups are merged into the old group, the new group is
// instead merged into the old one, which stays as it is. The result "unsent" is true if the notice
// about the old group has not been sent yet. In that case, people are notified about the new group
// instead, and the deaths count for the new group.
func (t *tx) inherit(to, from int64) (unsent bool, err error) {
	var fresh, waits, heads bool
	if err := t.row(`SELECT changed_at = 0 AND deaths = 0 AND told = 0 AND head IS NULL AND NOT EXISTS (SELECT 1
		FROM groups WHERE head = $1), EXISTS (SELECT 1 FROM groups WHERE head = $2) FROM groups WHERE id = $1`,
		[]any{to, from}, &fresh, &heads); err != nil || !fresh {
		return false, err
	}
	detail := "letters of " + deadletter.GroupID(from).String() + " belong here"
	target := deadletter.GroupTarget(deadletter.GroupID(to))
	if err := t.audit(deadletter.Once(deadletter.ActRegrouped, deadletter.Service.Name, detail, target)); err != nil {
		return false, err
	}
	if heads {
		_, err := t.exec(`UPDATE groups SET head = $2, changed_at = $3 WHERE id = $1`, to, from, t.now)
		return false, err
	}
	c, err := t.readChoices(from)
	if err != nil {
		return false, err
	}
	if err := t.row(`SELECT EXISTS (SELECT 1 FROM notices n JOIN deliveries d ON d.notice = n.id AND d.state = 'due'
		WHERE n.key = $1 AND n.kind = 'opened')`, []any{c.life.Key}, &waits); err != nil {
		return false, err
	}
	heir, err := t.readChoices(to)
	if err != nil {
		return false, err
	}
	heir.owner, heir.ticket, heir.note, heir.noteBy, heir.head = c.owner, c.ticket, c.note, c.noteBy, c.head
	if unsent = waits && c.life.Status == deadletter.GroupNew; !unsent {
		heir.life.TakeOver(c.life)
		if err := t.saveLife(c.life); err != nil {
			return false, err
		}
		// The deaths of the old group are copied, although some of its letters may stay there. The
		// copies do no harm, because a digest never counts more deaths of a group than the group
		// has letters that need people.
		if _, err := t.exec(`INSERT INTO deaths (minute, grp, n) SELECT minute, $1, n FROM deaths WHERE grp = $2
			ON CONFLICT DO UPDATE SET n = n + excluded.n`, to, from); err != nil {
			return false, err
		}
	}
	if _, err := t.exec(`UPDATE groups SET owner = $2, ticket = $3, note = $4, note_by = $5, head = $6, changed_at =
		(SELECT changed_at FROM groups WHERE id = $7) WHERE id = $1`,
		to, heir.owner, heir.ticket, heir.note, heir.noteBy, positiveOrNull(heir.head), from); err != nil {
		return false, err
	}
	return unsent, t.saveLife(heir.life)
}
