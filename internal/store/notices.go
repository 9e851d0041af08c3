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

// settling is the delay of a notice about a group that has just begun to need people. During this
// time, more may become known about the letters of the group. Without the delay, the first message
// about a flood of letters could say "1 letter".
const settling = 5 * time.Second

// repeatAfter is the minimum time between two equal notices that are not about a group. An example
// is a notice about a queue that rejects letters.
const repeatAfter = time.Hour

// writeNotice writes a notice to the outbox, with a delivery for each channel. It skips a notice
// that is not about a group if an equal notice is pending or was written within repeatAfter. A
// notice about a group is not skipped, because GroupLife decides when such a notice is written. The
// notice that a group has ended is not sent while other groups of its incident still need people.
func (t *tx) writeNotice(n *deadletter.Notice, letter int64) error {
	if n == nil {
		return nil
	}
	if n.Kind.ForMachines() {
		machines := t.s.machines.Load()
		if machines == nil || len(*machines) == 0 {
			return nil
		}
		n.Channels = *machines
	}
	if n.Group != 0 && n.Kind.Closes() {
		var others bool
		if err := t.row(`SELECT EXISTS (SELECT 1 FROM groups INDEXED BY groups_incident WHERE told > 0 AND told_key = $1
			AND id <> $2)`, []any{n.Key, int64(n.Group)}, &others); err != nil {
			return err
		}
		if others {
			return t.leaveIncident(n)
		}
	}
	// a problem and its end are always sent
	if n.Group == 0 && n.Kind != deadletter.NoticeProblem && n.Kind != deadletter.NoticeOver {
		var said bool
		if err := t.row(`SELECT EXISTS (SELECT 1 FROM notices n WHERE n.key = $1 AND n.kind = $2 AND (n.at >= $3
			OR EXISTS (SELECT 1 FROM deliveries d WHERE d.notice = n.id AND d.state = 'due')))`,
			[]any{n.Key, string(n.Kind), t.now - repeatAfter.Milliseconds()}, &said); err != nil || said {
			return err
		}
	}
	channels := n.Channels
	subject, err := t.subject(n)
	if err != nil {
		return err
	}
	if n.Kind.Closes() {
		// The failure is over, so an earlier notice that still waits for the end of quiet hours is no
		// longer needed.
		if _, err := t.exec(`UPDATE deliveries SET state = 'void',
			detail = 'it was over before quiet hours were', ended_at = $2 WHERE state = 'due' AND postponed = 1
			AND notice IN (SELECT id FROM notices WHERE key = $1)`, n.Key, t.now); err != nil {
			return err
		}
		if channels, err = t.closingChannels(n); err != nil {
			return err
		}
	} else if n.Severity == deadletter.SeverityPage && n.Group != 0 {
		// the page makes notices about the group that wait for the end of quiet hours unnecessary
		if _, err := t.exec(`UPDATE deliveries SET state = 'void', detail = 'a page said it', ended_at = $2
			WHERE state = 'due' AND postponed = 1 AND subject = $1`, subject, t.now); err != nil {
			return err
		}
	}
	if err := t.row(`INSERT INTO notices (key, kind, severity, text, letter, grp, operation, at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8) RETURNING id`,
		[]any{
			n.Key, string(n.Kind), string(n.Severity), n.Text, positiveOrNull(letter), positiveOrNull(int64(n.Group)),
			positiveOrNull(int64(n.Op)), t.now,
		}, &n.ID); err != nil {
		return err
	}
	due := t.now
	if n.Kind == deadletter.NoticeOpened || n.Kind == deadletter.NoticeRegressed || n.Kind == deadletter.NoticeJoined {
		due += settling.Milliseconds()
	}
	for _, channel := range channels {
		if _, err := t.exec(`INSERT INTO deliveries (notice, channel, subject, state, due_at)
			VALUES ($1, $2, $3, 'due', $4)`, n.ID, channel, subject, due); err != nil {
			return err
		}
	}
	return nil
}

// subject returns the subject of a notice. Notices with the same subject are delivered in the order
// in which they were written. All notices with the same key have the same subject, and so have all
// notices about a group, even in different incidents. Therefore, a notice that tells machines about
// a group is delivered after the earlier notices that tell people about the group.
func (t *tx) subject(n *deadletter.Notice) (string, error) {
	if n.Group == 0 {
		return n.Key, nil
	}
	key := n.Key
	if n.Kind.ForMachines() {
		err := t.row(`SELECT key FROM notices WHERE grp = $1 AND kind NOT IN ('group.quiet', 'group.resolved')
			ORDER BY id DESC LIMIT 1`, []any{int64(n.Group)}, &key)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return "", err
		}
	}
	group, _, _ := strings.Cut(key, "/")
	return group, nil
}

// Machines sets the channels that get machine notices.
func (s *Store) Machines(channels ...string) { s.machines.Store(&channels) }

// Tell writes a notice to the outbox. It is used for a notice that was not caused by a change to a
// letter.
func (s *Store) Tell(ctx context.Context, n deadletter.Notice) error {
	return s.tx(ctx, urgent, func(t *tx) error { return t.writeNotice(&n, 0) })
}

// Due returns up to n due deliveries of a channel, with the current state of their groups.
// Deliveries to people come first, then the oldest. A delivery that was never tried also counts as
// due if its due time is too far in the future, because the clock was then set back. A delivery
// waits while an earlier delivery about the same group or with the same key is pending. Only a page
// overtakes deliveries that wait for the end of quiet hours. No notice is sent for a group if all
// of its letters turned out to belong to another group.
func (s *Store) Due(ctx context.Context, channel string, n int) ([]deadletter.Delivery, error) {
	d := deadletter.Delivery{Channel: channel}
	var letter, random, group, operation sql.NullInt64
	var digest sql.NullString
	wanted := columns{
		{`d.id`, &d.ID},
		{`d.tries`, &d.Tries},
		{`d.due_at`, instant{&d.DueAt}},
		{`n.id`, &d.Notice.ID},
		{`n.key`, &d.Notice.Key},
		{`n.kind`, &d.Notice.Kind},
		{`n.severity`, &d.Notice.Severity},
		{`n.text`, &d.Notice.Text},
		{`n.letter`, &letter},
		{`l.random`, &random},
		{`n.grp`, &group},
		{`n.operation`, &operation},
		{`n.at`, instant{&d.Notice.At}},
		{`g.content`, &digest},
	}
	whole := deadletter.Within(ctx, deadletter.Scope{})
	rows, err := s.ask(whole, `SELECT `+wanted.list()+`
		FROM deliveries d INDEXED BY deliveries_due JOIN notices n ON n.id = d.notice
		LEFT JOIN letters l ON l.id = n.letter LEFT JOIN digests g ON g.notice = n.id
		WHERE d.channel = $1 AND d.state = 'due' AND (d.due_at <= $2 OR d.tries = 0 AND d.postponed = 0
		AND d.due_at > $2 + $4)
		AND NOT EXISTS (SELECT 1 FROM deliveries e INDEXED BY deliveries_subject WHERE e.channel = d.channel
		AND e.subject = d.subject AND e.state = 'due' AND e.id < d.id
			AND NOT (e.postponed = 1 AND n.severity = 'page'))
		ORDER BY n.kind IN ('group.quiet', 'group.resolved', 'operation.finished'), d.due_at, d.id
		LIMIT $3`, channel, s.now().UnixMilli(), n, settling.Milliseconds())
	if err != nil {
		return nil, fmt.Errorf("due notices: %w", err)
	}
	var list []deadletter.Delivery
	if err := wanted.scan(rows, func() error {
		d := d
		d.Notice.Group, d.Notice.Op = deadletter.GroupID(group.Int64), deadletter.OperationID(operation.Int64)
		if letter.Valid && random.Valid {
			d.Notice.Letter = deadletter.NewID(letter.Int64, uint64(random.Int64))
		}
		if digest.Valid {
			d.Digest = &deadletter.Digest{}
			if err := json.Unmarshal([]byte(digest.String), d.Digest); err != nil {
				return fmt.Errorf("digest of notice %d: %w", d.Notice.ID, err)
			}
		}
		list = append(list, d)
		return nil
	}); err != nil {
		return nil, fmt.Errorf("due notices: %w", err)
	}
	kept := list[:0]
	var gone []deadletter.Notice
	var outside []int64
	for _, d := range list {
		there, err := s.addState(ctx, &d)
		if err == nil && !there && !deadletter.ScopeOf(ctx).Everywhere() {
			d := d
			if there, err = s.addState(whole, &d); err == nil && there {
				outside = append(outside, d.ID)
				continue
			}
		}
		if err != nil {
			return nil, err
		}
		if there {
			kept = append(kept, d)
		} else {
			gone = append(gone, d.Notice)
		}
	}
	if len(gone)+len(outside) == 0 {
		return kept, nil
	}
	return kept, s.tx(ctx, urgent, func(t *tx) error {
		for _, id := range outside {
			if _, err := t.exec(`UPDATE deliveries SET state = 'void',
				detail = 'it concerns no queue of the channel', ended_at = $2 WHERE id = $1
				AND state = 'due'`, id, t.now); err != nil {
				return err
			}
		}
		for _, n := range gone {
			if err := t.cancelNotices(n); err != nil {
				return err
			}
		}
		return nil
	})
}

// digestLines is the maximum number of groups in a digest for a channel that has a scope.
const digestLines = 50

// addState fills in the current state of the group, operation or digest that a delivery is about,
// within the scope of the channel. The result "visible" is false if the delivery must not be sent
// to this channel, because its group has no letters in that scope. A notice about dlo itself
// concerns all queues, so it is sent only to channels whose scope has no limits.
func (s *Store) addState(ctx context.Context, d *deadletter.Delivery) (visible bool, err error) {
	k := d.Notice.Kind
	switch {
	case d.Notice.Op != 0:
		op, err := s.Operation(ctx, d.Notice.Op)
		// operations are never deleted, so an operation that is not found is outside the scope
		if errors.Is(err, deadletter.ErrNotFound) {
			return false, nil
		}
		d.Operation = &op
		return true, err
	case d.Digest != nil && !deadletter.ScopeOf(ctx).Everywhere():
		own, err := s.Digest(ctx, d.Digest.From, d.Digest.To, digestLines)
		d.Digest = &own
		return true, err
	case d.Notice.Group == 0:
		return d.Digest != nil || deadletter.ScopeOf(ctx).Everywhere(), nil
	}
	// the end of a group, and a notice for machines, is about the group itself and not about its
	// head
	itself := k.Closes() || k.ForMachines()
	g, letters, err := s.groupNow(ctx, d.Notice.Group, !itself)
	if err != nil && !errors.Is(err, deadletter.ErrNotFound) {
		return false, err
	}
	if letters == 0 && !itself {
		return false, nil
	}
	if d.Group = g; k.ForMachines() {
		return true, nil
	}
	if k == deadletter.NoticeJoined {
		first, err := s.isFirst(deadletter.Within(ctx, deadletter.Scope{}), d.Notice.Key, d.Channel)
		if err != nil {
			return false, err
		}
		if first { // the notice that opened the incident was never sent on this channel
			d.Notice.Kind = deadletter.NoticeOpened
		}
	}
	return true, s.ofIncident(ctx, d)
}

// OpenProblems returns the newest notice of each open problem, by key. A problem is open if people
// were notified about it but not about its end. The field Channels lists the channels to which the
// notice was sent.
func (s *Store) OpenProblems(ctx context.Context) (map[string]deadletter.Notice, error) {
	rows, err := s.ask(ctx, `SELECT n.key, n.severity, n.text, coalesce((SELECT group_concat(d.channel, char(10))
		FROM deliveries d WHERE d.notice = n.id), '') FROM notices n
		WHERE n.kind = 'problem' AND NOT EXISTS (SELECT 1 FROM notices o WHERE o.key = n.key
		AND o.kind IN ('problem', 'over') AND o.id > n.id)`)
	if err != nil {
		return nil, fmt.Errorf("problems: %w", err)
	}
	open := map[string]deadletter.Notice{}
	err = scan(rows, func() error {
		var n deadletter.Notice
		var channels string
		err := rows.Scan(&n.Key, &n.Severity, &n.Text, &channels)
		if channels != "" {
			n.Channels = strings.Split(channels, "\n")
		}
		open[n.Key] = n
		return err
	})
	return open, err
}

// cancelNotices cancels the pending notices about a group on all channels, if the group has no
// letters. Receivers that were already notified about the group get a notice that it is over.
func (t *tx) cancelNotices(n deadletter.Notice) error {
	var letters bool
	if err := t.row(`SELECT EXISTS (SELECT 1 FROM counters INDEXED BY counters_group WHERE grp IN (SELECT id FROM groups
		WHERE id = $1 OR head = $1) AND n > 0)`, []any{int64(n.Group)}, &letters); err != nil || letters {
		return err
	}
	if _, err := t.exec(`UPDATE deliveries SET state = 'void',
		detail = 'its letters belong to another group', ended_at = $3 WHERE state = 'due' AND notice IN (SELECT id
		FROM notices INDEXED BY notices_group WHERE grp = $2 AND key = $1)`, n.Key, int64(n.Group), t.now); err != nil {
		return err
	}
	g, err := t.readLife(int64(n.Group))
	if err != nil {
		return err
	}
	closing := g.CloseSettled()
	if err := t.saveLife(g); err != nil {
		return err
	}
	return t.writeNotices(closing)
}

func (t *tx) writeNotices(list []*deadletter.Notice) error {
	for _, n := range list {
		if err := t.writeNotice(n, 0); err != nil {
			return err
		}
	}
	return nil
}

// Delivered records the results of delivery attempts.
func (s *Store) Delivered(ctx context.Context, list []deadletter.Delivered) error {
	err := s.tx(ctx, urgent, func(t *tx) error {
		for _, d := range list {
			var err error
			switch {
			case d.Sent:
				err = t.recordSent(d)
			case d.Failed:
				_, err = t.exec(`UPDATE deliveries SET state = 'failed', tries = tries + 1, detail = $3, ended_at = $2
					WHERE id = $1`, d.ID, t.now, d.Detail)
			case d.Detail == "": // the delivery waits for the end of quiet hours, so this does not count as an attempt
				_, err = t.exec(`UPDATE deliveries SET postponed = 1, due_at = $2
					WHERE id = $1`, d.ID, d.RetryAt.UnixMilli())
			default:
				_, err = t.exec(`UPDATE deliveries SET tries = tries + 1, due_at = $2, detail = $3
					WHERE id = $1`, d.ID, d.RetryAt.UnixMilli(), d.Detail)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("record %d deliveries: %w", len(list), err)
	}
	return nil
}

// recordSent records a successful delivery. It also cancels the other deliveries that this delivery
// made unnecessary.
func (t *tx) recordSent(d deadletter.Delivered) error {
	if _, err := t.exec(`UPDATE deliveries SET state = 'sent', detail = $3, ended_at = $2
		WHERE id = $1`, d.ID, t.now, d.Detail); err != nil {
		return err
	}
	for _, id := range d.With {
		if _, err := t.exec(`UPDATE deliveries SET state = 'void',
			detail = 'it was said with another of its incident', ended_at = $2 WHERE id = $1
			AND state = 'due'`, id, t.now); err != nil {
			return err
		}
	}
	return nil
}

// Channels returns the channels with pending deliveries.
func (s *Store) Channels(ctx context.Context) ([]string, error) {
	return values[string](s.ask(ctx, `SELECT DISTINCT channel FROM deliveries WHERE state = 'due'`))
}

// Told returns the groups about which the receivers of a channel were notified, but of whose end
// they were not yet notified. As far as these receivers know, the groups need people. The result
// has one delivery for each incident. These deliveries are made only for this result, so none of
// them waits to be sent.
func (s *Store) Told(ctx context.Context, channel string) ([]deadletter.Delivery, error) {
	rows, err := s.ask(ctx, `SELECT id, told_key, told_severity, told_at, told_channels FROM groups
		INDEXED BY groups_told WHERE told > 0 ORDER BY id`)
	if err != nil {
		return nil, fmt.Errorf("told groups: %w", err)
	}
	var list []deadletter.Delivery
	seen := map[string]bool{}
	if err := scan(rows, func() error {
		d := deadletter.Delivery{Channel: channel, Notice: deadletter.Notice{Kind: deadletter.NoticeUpdated}}
		var id, at int64
		var channels string
		err := rows.Scan(&id, &d.Notice.Key, &d.Notice.Severity, &at, &channels)
		d.Notice.Group, d.Notice.At = deadletter.GroupID(id), time.UnixMilli(at).UTC()
		if slices.Contains(strings.Split(channels, "\n"), channel) && !seen[d.Notice.Key] {
			seen[d.Notice.Key] = true
			list = append(list, d)
		}
		return err
	}); err != nil {
		return nil, fmt.Errorf("told groups: %w", err)
	}
	for i := range list {
		if _, err := s.addState(ctx, &list[i]); err != nil {
			return nil, err
		}
	}
	return list, nil
}

const office = "office" // key in the table meta for the name by which others know the store

// Name returns the name that identifies this store, for example in the name of its mark in the
// broker. The name never changes. Other stores have other names, but copies of this store have the
// same name.
func (s *Store) Name() string { return s.Progress().Store }
