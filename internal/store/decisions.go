package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// choice is everything that people can choose for a group. A decision changes it, and an undo
// restores it.
type choice struct {
	Status   deadletter.GroupStatus `json:"status"`
	Severity deadletter.Severity    `json:"severity,omitempty"`
	Owner    string                 `json:"owner,omitempty"`
	Ticket   string                 `json:"ticket,omitempty"`
	Note     string                 `json:"note,omitempty"`
	// author of the note; set only in a choice that is stored for an undo
	NoteBy   string                `json:"note_by,omitempty"`
	Snooze   deadletter.Snooze     `json:"snooze,omitzero"`
	Snoozed  int                   `json:"snoozed,omitempty"`
	Resolved deadletter.Resolution `json:"resolved,omitzero"`
	Head     int64                 `json:"head,omitempty"`
}

// choices contains what people have chosen for a group, and the data from which dlo decides about
// notices on the group.
type choices struct {
	life                *deadletter.GroupLife
	owner, ticket, note string
	noteBy              string // author of the note; "" = unknown
	head                int64
}

func (t *tx) readChoices(id int64) (*choices, error) {
	c := &choices{}
	var head sql.NullInt64
	if err := t.row(`SELECT owner, ticket, note, note_by, head FROM groups
		WHERE id = $1`, []any{id}, &c.owner, &c.ticket, &c.note, &c.noteBy, &head); err != nil {
		return nil, orNotFound("group "+deadletter.GroupID(id).String(), err)
	}
	c.head = head.Int64
	var err error
	c.life, err = t.readLife(id)
	return c, err
}

// json encodes the choices without the author of the note. The text can therefore be compared with
// texts that were stored by versions of dlo which did not record the author.
func (c *choices) json() string { return c.encode("") }

// undoJSON encodes the choice with the author of the note, so that an undo can restore it.
func (c *choices) undoJSON() string { return c.encode(c.noteBy) }

func (c *choices) encode(noteBy string) string {
	g := c.life
	// json.Marshal cannot fail, because the values are only texts, numbers and times
	text, _ := json.Marshal(choice{
		g.Status, g.Chosen, c.owner, c.ticket, c.note, noteBy, g.Snooze, g.Snoozed, g.Resolved, c.head,
	})
	return string(text)
}

func (t *tx) choose(c *choices) error {
	if _, err := t.exec(`UPDATE groups SET owner = $2, ticket = $3, note = $4, note_by = $5, head = $6, changed_at = $7
		WHERE id = $1`,
		int64(c.life.ID), c.owner, c.ticket, c.note, c.noteBy, positiveOrNull(c.head), t.now); err != nil {
		return err
	}
	return t.saveLife(c.life)
}

// Decide records a person's decision about groups in one transaction. If one of the groups does not
// exist, Decide returns ErrNotFound and changes nothing. If the decision does not apply to a group,
// Decide skips that group and returns the reason. Undo reverses the decision.
func (s *Store) Decide(ctx context.Context, d deadletter.Decision) (deadletter.Decided, error) {
	out := deadletter.Decided{Kind: d.Kind(), Detail: d.Detail(), By: d.By}
	err := s.tx(ctx, urgent, func(t *tx) error {
		out.Groups, out.Skipped, out.At = nil, nil, time.UnixMilli(t.now).UTC()
		if err := d.Check(out.At); err != nil {
			return err
		}
		if err := t.row(`INSERT INTO decisions (kind, detail, by, at) VALUES ($1, $2, $3, $4)
			RETURNING id`, []any{out.Kind, out.Detail, d.By, t.now}, &out.ID); err != nil {
			return err
		}
		groups := slices.Clone(d.Groups)
		slices.Sort(groups)
		for _, id := range slices.Compact(groups) {
			c, err := t.readChoices(int64(id))
			if err != nil {
				return err
			}
			if err := t.checkUnchanged(id, d.Unchanged); err != nil {
				return err
			}
			why, err := t.decide(&d, c, out.ID)
			if err != nil {
				return err
			}
			if why != "" {
				out.Skipped = append(out.Skipped, deadletter.Skipped{Group: id, Why: why})
				continue
			}
			out.Groups = append(out.Groups, id)
		}
		if len(out.Groups) == 0 {
			return fmt.Errorf("%w: %s %s", deadletter.ErrConflict, out.Skipped[0].Group, out.Skipped[0].Why)
		}
		detail := out.Detail
		if d.Note != "" && out.Kind != deadletter.ActNote {
			detail += ": " + d.Note
		}
		return t.auditDecision(out.Kind, d.By, detail, out)
	})
	if err == nil && (d.Into != 0 || d.Split) {
		err = s.families.load(ctx, s.read)
	}
	return out, err
}

// checkUnchanged checks that the last change to a group was at the given time. If it was not, the
// error wraps ErrChanged. If the time is zero, checkUnchanged accepts any change.
func (t *tx) checkUnchanged(id deadletter.GroupID, at time.Time) error {
	var changed int64
	if at.IsZero() {
		return nil
	}
	if err := t.row(`SELECT changed_at FROM groups WHERE id = $1`, []any{int64(id)}, &changed); err != nil {
		return err
	}
	if changed != at.UnixMilli() {
		return fmt.Errorf("%w: somebody has decided about %s since; look at it again", deadletter.ErrChanged, id)
	}
	return nil
}

// auditDecision records a decision about groups, or the undo of a decision, in the audit.
func (t *tx) auditDecision(kind, by, detail string, out deadletter.Decided) error {
	a := deadletter.Act{
		Kind:   kind,
		Actor:  by,
		Detail: detail,
		Asked:  deadletter.Amount(len(out.Groups) + len(out.Skipped)),
		Done:   deadletter.Amount(len(out.Groups)),
	}
	for _, id := range out.Groups {
		a.Targets = append(a.Targets, deadletter.GroupTarget(id))
	}
	return t.audit(a)
}

// decide applies a decision to one group. If the decision does not apply to the group, the result
// "refusal" contains the reason. Otherwise it is "".
func (t *tx) decide(d *deadletter.Decision, c *choices, decision int64) (refusal string, err error) {
	was, g := c.undoJSON(), c.life
	var told []*deadletter.Notice
	if c.head != 0 && !d.Split {
		return "is merged into " + deadletter.GroupID(c.head).String() + "; decide on that one", nil
	}
	switch {
	case d.Into != 0:
		if refusal, err = t.merge(d, c); refusal != "" || err != nil {
			return refusal, err
		}
		head, err := t.readLife(int64(d.Into))
		if err != nil {
			return "", err
		}
		told = append(told, g.Hand(head))
		if err := t.saveLife(head); err != nil {
			return "", err
		}
	case d.Split:
		if c.head == 0 {
			return "is not merged into another", nil
		}
		c.head = 0
	case d.Snooze != nil:
		g.Status, g.Snooze, g.Snoozed = deadletter.GroupSnoozed, *d.Snooze, g.Deaths
		g.Resolved = deadletter.Resolution{}
		g.Snooze.By, told = d.By, append(told, g.Close())
	case d.Resolve != nil:
		g.Status, g.Snooze, g.Resolved = deadletter.GroupResolved, deadletter.Snooze{}, deadletter.Resolution{
			At:      time.UnixMilli(t.now).UTC(),
			By:      d.By,
			Version: d.Resolve.Version,
		}
		told = g.CloseSettled()
	case d.Reopen:
		if g.Status != deadletter.GroupSnoozed && g.Status != deadletter.GroupResolved {
			return "is neither snoozed nor resolved", nil
		}
		g.Status, g.Snooze, g.Resolved = deadletter.GroupOpen, deadletter.Snooze{}, deadletter.Resolution{}
	}
	if g.Status == deadletter.GroupNew { // a person has looked at the group
		g.Status = deadletter.GroupOpen
	}
	if d.Owner != nil {
		c.owner = *d.Owner
	}
	if d.Ticket != nil {
		c.ticket = *d.Ticket
	}
	if d.Note != "" {
		c.note, c.noteBy = d.Note, d.By
	}
	if d.Severity != nil {
		severity := *d.Severity
		if g.Chosen = severity; severity == "" {
			if severity, err = t.severity(g); err != nil {
				return "", err
			}
		}
		told = append(told, g.Chose(severity, time.UnixMilli(t.now).UTC()))
	}
	if err := t.choose(c); err != nil {
		return "", err
	}
	if _, err := t.exec(`INSERT INTO decision_groups (decision, grp, was, is_now)
		VALUES ($1, $2, $3, $4)`, decision, int64(g.ID), was, c.json()); err != nil {
		return "", err
	}
	return "", t.writeNotices(told)
}

// merge merges a group into another group. If that is impossible, the result "refusal" contains the
// reason. For example, a group cannot be merged if other groups are merged into it.
func (t *tx) merge(d *deadletter.Decision, c *choices) (refusal string, err error) {
	var head sql.NullInt64
	if err := t.row(`SELECT head FROM groups WHERE id = $1`, []any{int64(d.Into)}, &head); err != nil {
		return "", orNotFound("group "+d.Into.String(), err)
	}
	switch {
	case d.Into == c.life.ID:
		return "cannot be merged into itself", nil
	case head.Valid:
		return "cannot be merged into " + d.Into.String() + ", which is itself merged into " +
			deadletter.GroupID(head.Int64).String(), nil
	}
	var others bool
	if err := t.row(
		`SELECT EXISTS (SELECT 1 FROM groups WHERE head = $1)`, []any{int64(c.life.ID)}, &others,
	); err != nil {
		return "", err
	}
	if others {
		return "has others merged into it; split those first", nil
	}
	c.head = int64(d.Into)
	return "", nil
}

// severity returns the severity of the newest dead or held letter of a group. If there is no such
// letter, it returns the present severity of the group.
func (t *tx) severity(g *deadletter.GroupLife) (deadletter.Severity, error) {
	var severity sql.NullString
	err := t.row(`SELECT (SELECT severity FROM letters INDEXED BY letters_group WHERE grp = $1 AND grp > 0
		AND state IN ('dead', 'held') ORDER BY id DESC LIMIT 1)`, []any{int64(g.ID)}, &severity)
	if severity.Valid {
		return deadletter.Severity(severity.String), err
	}
	return g.Severity, err
}

// Undo reverses a decision in every group that has not changed since the decision. It skips the
// other groups. It returns ErrConflict if every group has changed, or if the decision has already
// been undone.
func (s *Store) Undo(ctx context.Context, decision int64, by string) (deadletter.Decided, error) {
	var out deadletter.Decided
	err := s.tx(ctx, urgent, func(t *tx) error {
		var at int64
		var undone sql.NullInt64
		if err := t.row(`SELECT id, kind, detail, by, at, undone_at FROM decisions
			WHERE id = $1`, []any{decision}, &out.ID, &out.Kind, &out.Detail, &out.By, &at, &undone); err != nil {
			return orNotFound(fmt.Sprintf("decision %d", decision), err)
		}
		if undone.Valid {
			return fmt.Errorf("%w: it was undone already", deadletter.ErrConflict)
		}
		out.At, out.UndoneAt, out.Groups, out.Skipped = time.UnixMilli(at).UTC(), time.UnixMilli(t.now).UTC(), nil, nil
		rows, err := t.query(`SELECT grp, was, is_now FROM decision_groups WHERE decision = $1 ORDER BY grp`, decision)
		if err != nil {
			return err
		}
		type change struct {
			group     int64
			was, then string
		}
		changes, err := collect(rows, func(c *change) []any { return []any{&c.group, &c.was, &c.then} })
		if err != nil {
			return err
		}
		for _, ch := range changes {
			c, err := t.readChoices(ch.group)
			if err != nil {
				return err
			}
			if c.json() != ch.then {
				out.Skipped = append(out.Skipped, deadletter.Skipped{
					Group: deadletter.GroupID(ch.group),
					Why:   "has changed since",
				})
				continue
			}
			why, err := t.restore(c, ch.was)
			if err != nil {
				return err
			}
			if why != "" {
				out.Skipped = append(out.Skipped, deadletter.Skipped{Group: deadletter.GroupID(ch.group), Why: why})
				continue
			}
			out.Groups = append(out.Groups, deadletter.GroupID(ch.group))
		}
		if len(out.Groups) == 0 {
			return fmt.Errorf(
				"%w: it cannot be undone: %s %s", deadletter.ErrConflict, out.Skipped[0].Group, out.Skipped[0].Why,
			)
		}
		if _, err = t.exec(`UPDATE decisions SET undone_at = $2 WHERE id = $1`, decision, t.now); err != nil {
			return err
		}
		return t.auditDecision(deadletter.ActUndone, by, out.Kind, out)
	})
	if err == nil && (out.Kind == deadletter.ActMerged || out.Kind == deadletter.ActSplit) {
		err = s.families.load(ctx, s.read)
	}
	return out, err
}

// restore restores what people had chosen for a group before a decision. If that is impossible, the
// result "refusal" contains the reason.
func (t *tx) restore(c *choices, was string) (refusal string, err error) {
	var to choice
	if err := json.Unmarshal([]byte(was), &to); err != nil {
		return "", fmt.Errorf("decision about %s: %w", c.life.ID, err)
	}
	g := c.life
	if to.Head != 0 {
		var nested bool
		if err := t.row(`SELECT EXISTS (SELECT 1 FROM groups WHERE id = $1 AND head IS NOT NULL
			OR head = $2)`, []any{to.Head, int64(g.ID)}, &nested); err != nil {
			return "", err
		}
		if nested {
			return "was merged into a group, and one of the two is merged with others since", nil
		}
	}
	rests := func(s deadletter.GroupStatus) bool {
		return s == deadletter.GroupSnoozed || s == deadletter.GroupResolved
	}
	var told []*deadletter.Notice
	switch {
	case to.Status == deadletter.GroupResolved && !rests(g.Status):
		told = g.CloseSettled()
	case rests(to.Status) && !rests(g.Status):
		told = append(told, g.Close())
	case rests(g.Status) && !rests(to.Status):
		again, err := t.tellAgain(g)
		if err != nil {
			return "", err
		}
		told = append(told, again)
	}
	g.Status, g.Chosen, g.Snooze, g.Snoozed, g.Resolved = to.Status, to.Severity, to.Snooze, to.Snoozed, to.Resolved
	if to.Note != c.note {
		c.noteBy = to.NoteBy
	}
	c.owner, c.ticket, c.note, c.head = to.Owner, to.Ticket, to.Note, to.Head
	if g.Severity = g.Chosen; g.Chosen == "" {
		if g.Severity, err = t.severity(g); err != nil {
			return "", err
		}
	}
	if err := t.choose(c); err != nil {
		return "", err
	}
	return "", t.writeNotices(told)
}

// tellAgain withdraws the notice which said that a group no longer needs people. If that notice was
// not delivered yet, it is never sent. If it was delivered, people are notified about the group
// again. If other groups have kept the incident of the group open, the group rejoins that incident.
func (t *tx) tellAgain(g *deadletter.GroupLife) (*deadletter.Notice, error) {
	if err := t.withdrawEnd(g); err != nil {
		return nil, err
	}
	var id int64
	var key, channels string
	var severity deadletter.Severity
	var heard bool
	err := t.row(`SELECT n.id, n.key, n.severity, coalesce(max(d.state <> 'due'), 0), coalesce(group_concat(CASE
		WHEN EXISTS (SELECT 1 FROM notices m JOIN deliveries e ON e.notice = m.id
			WHERE m.key = n.key AND m.grp = n.grp AND m.kind <> 'resolved'
			AND e.channel = d.channel) THEN d.channel END, char(10)), '')
		FROM notices n LEFT JOIN deliveries d ON d.notice = n.id
		WHERE n.id = (`+decidedNotice+` AND kind = 'resolved') GROUP BY n.id`,
		[]any{int64(g.ID)}, &id, &key, &severity, &heard, &channels)
	if errors.Is(err, sql.ErrNoRows) || err == nil && g.Told > 0 {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if channels == "" {
		return nil, t.rejoin(g, key)
	}
	g.Told, g.ToldAt, g.ToldAs, g.Channels, g.Heard = max(
		g.Deaths, 1,
	), time.UnixMilli(t.now).UTC(), severity, strings.Split(
		channels, "\n",
	), true
	if !heard {
		g.Key = key
		_, err := t.exec(`UPDATE deliveries SET state = 'void', detail = 'it was undone', ended_at = $2
			WHERE notice = $1 AND state = 'due'`, id, t.now)
		return nil, err
	}
	g.Alone(g.ToldAt)
	return &deadletter.Notice{
		Kind:     deadletter.NoticeOpened,
		Key:      g.Key,
		Group:    g.ID,
		Severity: severity,
		Channels: g.Channels,
	}, nil
}

// decidedNotice selects the newest notice about a group. The notice must have been written after
// the last decision about the group.
const decidedNotice = `SELECT max(id) FROM notices WHERE grp = $1 AND at >= (SELECT changed_at FROM groups
	WHERE id = $1)`

// withdrawEnd withdraws the notice that tells machines that a group no longer needs people. If the
// notice was already delivered, it cannot be withdrawn. In both cases, machines are notified again
// the next time that the group needs nobody.
func (t *tx) withdrawEnd(g *deadletter.GroupLife) error {
	var id sql.NullInt64
	if err := t.row(decidedNotice+` AND kind = 'group.resolved'`, []any{int64(g.ID)}, &id); err != nil || !id.Valid {
		return err
	}
	g.Heard = true
	_, err := t.exec(`UPDATE deliveries SET state = 'void', detail = 'it was undone', ended_at = $2 WHERE state = 'due'
		AND notice = $1`, id.Int64, t.now)
	return err
}

// Decisions returns up to n decisions made since a time, newest first.
func (s *Store) Decisions(ctx context.Context, since time.Time, n int) ([]deadletter.Decided, error) {
	return s.decisions(ctx, `d.at >= $1 ORDER BY d.id DESC LIMIT $2`, since.UnixMilli(), n)
}

// Decision returns one decision. The result does not include the groups that the decision skipped.
// Decision returns ErrNotFound if the decision does not exist.
func (s *Store) Decision(ctx context.Context, id int64) (deadletter.Decided, error) {
	list, err := s.decisions(ctx, `d.id = $1`, id)
	if err == nil && len(list) == 0 {
		err = deadletter.NoSuch("decision %d", id)
	}
	if err != nil {
		return deadletter.Decided{}, err
	}
	return list[0], nil
}

func (s *Store) decisions(ctx context.Context, where string, args ...any) ([]deadletter.Decided, error) {
	rows, err := s.ask(ctx, `SELECT d.id, d.kind, d.detail, d.by, d.at, d.undone_at, (SELECT json_group_array(grp)
		FROM decision_groups WHERE decision = d.id),
		coalesce((SELECT min(g.title) FROM decision_groups m JOIN groups g ON g.id = m.grp
		WHERE m.decision = d.id HAVING count(*) = 1), '') FROM decisions d WHERE `+where, args...)
	if err != nil {
		return nil, fmt.Errorf("decisions: %w", err)
	}
	var list []deadletter.Decided
	err = scan(rows, func() error {
		var d deadletter.Decided
		var at int64
		var undone sql.NullInt64
		var groups string
		if err := rows.Scan(&d.ID, &d.Kind, &d.Detail, &d.By, &at, &undone, &groups, &d.Title); err != nil {
			return err
		}
		d.At, d.UndoneAt = time.UnixMilli(at).UTC(), timeOf(undone)
		list = append(list, d)
		return json.Unmarshal([]byte(groups), &list[len(list)-1].Groups)
	})
	return list, err
}
