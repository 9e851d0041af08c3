package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// digestGroups is SQL for the groups h of a digest from minute $1 to minute $2. All these groups
// are in the inbox. For each group, there are two numbers. The column c.needs is the number of its
// letters that need people, whenever they died. The column x.n is the number of deaths in the group
// between the two minutes. The digest uses the smaller of the two numbers.
const digestGroups = needyGroups + ` c CROSS JOIN groups h ON h.id = c.id
	JOIN (SELECT coalesce(m.head, m.id) AS id, sum(x.n) AS n FROM deaths x JOIN groups m ON m.id = x.grp
	WHERE x.minute >= $1 AND x.minute < $2 GROUP BY 1) x ON x.id = c.id
	WHERE h.status NOT IN ('snoozed', 'resolved')`

func digestMinutes(from, to time.Time) []any {
	return []any{from.Unix() / 60, (to.Unix() + 59) / 60}
}

// DigestSize returns the number of groups in the digest of a period.
func (s *Store) DigestSize(ctx context.Context, from, to time.Time) (n int, err error) {
	if err = s.askRow(ctx, `SELECT count(*) FROM `+digestGroups, digestMinutes(from, to), &n); err != nil {
		err = fmt.Errorf("digest: %w", err)
	}
	return n, err
}

// Digest returns the letters that died in a period and still need people, by group. It returns at
// most "lines" groups. A letter counts if the minute in which it began to need people is in the
// period.
func (s *Store) Digest(ctx context.Context, from, to time.Time, lines int) (deadletter.Digest, error) {
	d := deadletter.Digest{From: from, To: to}
	rows, err := s.ask(
		ctx, `SELECT h.id, h.status, h.first_at, min(x.n, c.needs) FROM `+digestGroups, digestMinutes(from, to)...,
	)
	if err != nil {
		return d, fmt.Errorf("digest: %w", err)
	}
	var found []digestedGroup
	if err := scan(rows, func() error {
		var g digestedGroup
		var firstAt int64
		err := rows.Scan(&g.id, &g.status, &firstAt, &g.letters)
		g.isNew = firstAt >= from.UnixMilli()
		d.Groups, d.Letters = d.Groups+1, d.Letters+g.letters
		switch {
		case g.status == deadletter.GroupRegressed:
			d.CameBack++
		case g.isNew:
			d.New++
		}
		found = append(found, g)
		return err
	}); err != nil {
		return d, fmt.Errorf("digest: %w", err)
	}
	if d.Pauses, err = s.forgottenPauses(ctx, to); err != nil {
		return d, fmt.Errorf("digest: %w", err)
	}
	// rollups count recovered letters per quarter of an hour
	first, end := from.UnixMilli()/rollupMillis, to.UnixMilli()/rollupMillis
	if err := s.askRow(ctx, `SELECT coalesce(sum(n), 0) FROM rollups WHERE bucket >= $1 AND bucket < $2
		AND state = 'settled' AND grp > 0`, []any{first, end}, &d.Recovered); err != nil {
		return d, fmt.Errorf("digest: %w", err)
	}
	byPeople, err := s.settledByPeople(ctx, first, end)
	if err != nil {
		return d, fmt.Errorf("digest: %w", err)
	}
	d.Recovered = max(0, d.Recovered-byPeople)
	if err := s.digestLines(ctx, &d, found, lines); err != nil {
		return d, fmt.Errorf("digest: %w", err)
	}
	before := first - (end - first)
	if err := s.askRow(ctx, `SELECT count(DISTINCT coalesce(m.head, m.id)), coalesce(sum(x.n), 0) FROM deaths x
		JOIN groups m ON m.id = x.grp WHERE x.minute >= $1 AND x.minute < $2`, []any{
		from.Add(from.Sub(to)).Unix() / 60, from.Unix() / 60,
	},
		&d.Before.Groups, &d.Before.Letters); err != nil {
		return d, fmt.Errorf("digest: %w", err)
	}
	if err := s.askRow(ctx, `SELECT coalesce(sum(n), 0) FROM rollups WHERE bucket >= $1 AND bucket < $2
		AND state = 'settled' AND grp > 0`, []any{before, first}, &d.Before.Recovered); err != nil {
		return d, fmt.Errorf("digest: %w", err)
	}
	if byPeople, err = s.settledByPeople(ctx, before, first); err != nil {
		return d, fmt.Errorf("digest: %w", err)
	}
	d.Before.Recovered = max(0, d.Before.Recovered-byPeople)
	err = s.askRow(ctx, `SELECT count(*) FROM notices n WHERE n.at >= $1 AND n.at < $2 AND n.severity = 'page'
		AND n.kind IN ('opened', 'regressed')
		AND EXISTS (SELECT 1 FROM deliveries d WHERE d.notice = n.id
		AND d.state <> 'void')`, []any{from.UnixMilli(), to.UnixMilli()}, &d.Paged)
	return d, err
}

// forgottenAfter is the minimum age of a pause that the digest mentions.
const forgottenAfter = 24 * time.Hour

// forgottenPauses returns the pauses that hold letters back and are old: they began at least 24
// hours (forgottenAfter) before the given time.
func (s *Store) forgottenPauses(ctx context.Context, to time.Time) ([]deadletter.Forgotten, error) {
	rows, err := s.ask(ctx, `SELECT * FROM (SELECT p.origin, p.grp, coalesce(g.title, ''), p.reason, p.by, p.at,
			(SELECT coalesce(sum(c.n), 0) FROM counters c WHERE c.state = 'scheduled' AND c.origin = p.origin
			AND (p.grp = 0 OR c.grp = p.grp)) AS n
		FROM pauses p LEFT JOIN groups g ON g.id = p.grp WHERE p.at <= $1) WHERE n > 0 ORDER BY 6
		LIMIT 100`, to.Add(-forgottenAfter).UnixMilli())
	if err != nil {
		return nil, err
	}
	var list []deadletter.Forgotten
	err = scan(rows, func() error {
		f := deadletter.Forgotten{Guard: deadletter.Guard{State: deadletter.GuardPaused}}
		var origin, group, since int64
		err := rows.Scan(&origin, &group, &f.Title, &f.Why, &f.By, &since, &f.Letters)
		f.Origin, f.Group, f.Since = s.names.origin(
			origin,
		).origin(), deadletter.GroupID(group), time.UnixMilli(since).UTC()
		list = append(list, f)
		return err
	})
	return list, err
}

// digestedGroup is a group in a digest. Some of its letters died in the period of the digest.
type digestedGroup struct {
	id      deadletter.GroupID
	status  deadletter.GroupStatus
	isNew   bool
	letters int
}

// rank returns the sort key of a group in a digest. Regressed and escalating groups come first,
// then new groups.
func (g *digestedGroup) rank() int {
	switch {
	case g.status == deadletter.GroupRegressed, g.status == deadletter.GroupEscalating:
		return 0
	case g.isNew:
		return 1
	}
	return 2
}

// SettledByPeople counts the letters that were received between two times and then sent by an
// operation. Such letters did not recover on their own.
func (s *Store) SettledByPeople(ctx context.Context, from, to time.Time) (int, error) {
	n, err := s.settledByPeople(ctx, from.UnixMilli()/rollupMillis, to.UnixMilli()/rollupMillis+1)
	if err != nil {
		err = fmt.Errorf("settled by people: %w", err)
	}
	return n, err
}

// settledByPeople counts the letters that were received in a range of rollup buckets and then sent
// by an operation. The range begins with the bucket "first", and ends before the bucket "end".
func (s *Store) settledByPeople(ctx context.Context, first, end int64) (n int, err error) {
	err = s.askRow(ctx, `SELECT count(*) FROM operations o JOIN operation_letters ol ON ol.operation = o.id
		AND ol.result IN ('quiet', 'unverified')
		WHERE o.created_at >= $1 AND ol.letter >= $2 AND ol.letter < $3`, []any{
		first * rollupMillis, first * rollupMillis << 12, end * rollupMillis << 12,
	}, &n)
	return n, err
}

// digestLines fills in the lines for the first groups of a digest. Among groups of equal rank,
// those with the most letters come first.
func (s *Store) digestLines(ctx context.Context, d *deadletter.Digest, found []digestedGroup, lines int) error {
	slices.SortFunc(found, func(a, b digestedGroup) int {
		return cmp.Or(a.rank()-b.rank(), b.letters-a.letters, cmp.Compare(a.id, b.id))
	})
	if len(found) > lines {
		d.More, found = len(found)-lines, found[:lines]
	}
	rows, err := s.groupsNow(ctx, found)
	if err != nil {
		return err
	}
	for _, g := range found {
		line := deadletter.DigestLine{Group: rows[g.id], Letters: g.letters}
		if line.Suggestion, err = s.suggestion(ctx, g.id); err != nil {
			return err
		}
		d.Lines = append(d.Lines, line)
	}
	return nil
}

// groupsNow reads the groups of a digest in the form in which lists show groups.
func (s *Store) groupsNow(
	ctx context.Context, found []digestedGroup,
) (map[deadletter.GroupID]deadletter.GroupRow, error) {
	if len(found) == 0 {
		return nil, nil
	}
	ids := make([]any, len(found))
	for i := range found {
		ids[i] = int64(found[i].id)
	}
	var g listedGroup
	wanted := g.countColumns(groupDead, groupOverdue)
	rows, err := s.read.QueryContext(
		ctx, `SELECT `+wanted.list()+` FROM groups g WHERE g.id IN (`+placeholders(1, len(ids))+`)`, ids...,
	)
	if err != nil {
		return nil, err
	}
	var list []deadletter.GroupRow
	if err := wanted.scan(rows, func() error {
		list = append(list, g.row(&s.names))
		return nil
	}); err != nil {
		return nil, err
	}
	if err := s.addRecent(ctx, list); err != nil {
		return nil, err
	}
	byID := map[deadletter.GroupID]deadletter.GroupRow{}
	for _, g := range list {
		byID[g.ID] = g
	}
	return byID, nil
}

// suggestion describes what people last did with the letters of a group, and how often they did it
// in a row. If they did nothing, it returns "". A discard does not count if letters of the group
// were restored afterwards.
func (s *Store) suggestion(ctx context.Context, id deadletter.GroupID) (string, error) {
	const ofGroup = `(SELECT operation FROM operation_groups WHERE grp IN (SELECT id FROM groups WHERE id = $1
		OR head = $1))`
	list, err := s.operations(ctx, `WHERE state = 'done' AND action IN ('requeue', 'discard', 'edit')
		AND id IN `+ofGroup+`
		AND NOT (action = 'discard' AND EXISTS (SELECT 1 FROM operations r WHERE r.id > operations.id
		AND r.action = 'restore' AND r.state = 'done' AND r.id IN `+ofGroup+`)) ORDER BY id DESC LIMIT 3`, int64(id))
	if err != nil || len(list) == 0 {
		return "", err
	}
	same := 0
	for same < len(list) && list[same].Action == list[0].Action {
		same++
	}
	last := &list[0]
	times := "the last time"
	if same > 1 {
		times = fmt.Sprintf("the last %d times", same)
	}
	text := fmt.Sprintf("%s %s (%s)", strings.ToUpper(last.Action.Past()[:1])+last.Action.Past()[1:], times, last.ID)
	if sent := last.Sent(); sent > 0 {
		quiet := last.Counts[deadletter.ResultQuiet] + last.Counts[deadletter.ResultUnverified]
		text += fmt.Sprintf(": %d of %d stayed quiet", quiet, sent)
	}
	return text, nil
}

// SendDigest writes a digest to the outbox. It writes at most one digest per day, even if the clock
// changes or SendDigest is called again. The result "written" is true if this call wrote the
// digest. The parameter "by" is the person who requested the digest, or dlo itself.
func (s *Store) SendDigest(
	ctx context.Context, day, by string, d deadletter.Digest, channels []string,
) (written bool, err error) {
	content, err := json.Marshal(d)
	if err != nil {
		return false, err
	}
	err = s.tx(ctx, urgent, func(t *tx) error {
		written = false
		var there bool
		if err := t.row(
			`SELECT EXISTS (SELECT 1 FROM digests WHERE day = $1)`, []any{day}, &there,
		); err != nil || there {
			return err
		}
		n := deadletter.Notice{
			Kind:     deadletter.NoticeDigest,
			Key:      "digest " + day,
			Severity: deadletter.SeverityDigest,
			Channels: channels,
		}
		if err := t.writeNotice(&n, 0); err != nil {
			return err
		}
		written = true
		if _, err := t.exec(`INSERT INTO digests (day, notice, from_at, to_at, content, at)
			VALUES ($1, $2, $3, $4, $5, $6)`,
			day, positiveOrNull(n.ID), d.From.UnixMilli(), d.To.UnixMilli(), string(content), t.now); err != nil {
			return err
		}
		if len(channels) == 0 { // the digest is stored, but it is sent to nobody
			return nil
		}
		said := fmt.Sprintf("%d letters of %d groups, to %s", d.Letters, d.Groups, strings.Join(channels, ", "))
		return t.audit(deadletter.Once(deadletter.ActDigest, by, said, deadletter.Target{
			Kind: deadletter.TargetDigest,
			Name: day,
		}))
	})
	if err != nil {
		return false, fmt.Errorf("digest of %s: %w", day, err)
	}
	return written, nil
}

// LastDigest returns the newest digest that was sent on schedule. If none was sent yet, it returns
// ErrNotFound.
func (s *Store) LastDigest(ctx context.Context) (day string, d deadletter.Digest, err error) {
	var content string
	err = s.askRow(ctx, `SELECT day, content FROM digests WHERE day NOT LIKE 'asked%' ORDER BY to_at DESC
		LIMIT 1`, nil, &day, &content)
	if err = orNotFound("digest", err); err != nil {
		return "", d, err
	}
	if err := json.Unmarshal([]byte(content), &d); err != nil {
		return "", d, errors.Join(fmt.Errorf("digest of %s", day), err)
	}
	return day, d, nil
}
