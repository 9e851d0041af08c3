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

// settling is how long a notice of a group that has just begun to need people waits: what is known
// of its letters may still change, and the first message should not say "1 letter" of a flood.
const settling = 5 * time.Second

// again is how long nothing is said twice that is not about a group, such as that a queue refuses
// letters.
const again = time.Hour

// notice writes a notice to the outbox, on its way to its channels. What is not about a group is
// not said while the same is on its way, or was said a while ago; of a group its life knows what is
// said.
func (t *tx) notice(n *deadletter.Notice, letter int64) error {
	if n == nil {
		return nil
	}
	if n.Group == 0 && n.Kind != deadletter.NoticeProblem && n.Kind != deadletter.NoticeOver { // whose end is told
		var said bool
		if err := t.row(`SELECT EXISTS (SELECT 1 FROM notices n WHERE n.key = $1 AND n.kind = $2 AND (n.at >= $3 OR EXISTS (SELECT 1 FROM deliveries d WHERE d.notice = n.id AND d.state = 'due')))`,
			[]any{n.Key, string(n.Kind), t.now - again.Milliseconds()}, &said); err != nil || said {
			return err
		}
	}
	if err := t.row(`INSERT INTO notices (key, kind, severity, text, letter, grp, at) VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING id`,
		[]any{n.Key, string(n.Kind), string(n.Severity), n.Text, positive(letter), positive(int64(n.Group)), t.now}, &n.ID); err != nil {
		return err
	}
	channels := n.Channels
	switch {
	case n.Kind.Closes():
		// What waits for the end of quiet hours is over before anybody heard of it.
		if _, err := t.exec(`UPDATE deliveries SET state = 'void', detail = 'it was over before quiet hours were', ended_at = $2 WHERE state = 'due' AND postponed = 1 AND notice IN (SELECT id FROM notices WHERE key = $1)`, n.Key, t.now); err != nil {
			return err
		}
		var err error
		if channels, err = t.reached(n); err != nil {
			return err
		}
	case n.Severity == deadletter.SeverityPage && n.Group != 0: // it says all that waits for the end of quiet hours
		if _, err := t.exec(`UPDATE deliveries SET state = 'void', detail = 'a page said it', ended_at = $2 WHERE state = 'due' AND postponed = 1 AND subject = $1`, n.Group.String(), t.now); err != nil {
			return err
		}
	}
	due, subject := t.now, n.Key
	if n.Group != 0 {
		subject = n.Group.String()
	}
	if n.Kind == deadletter.NoticeOpened || n.Kind == deadletter.NoticeRegressed {
		due += settling.Milliseconds()
	}
	for _, channel := range channels {
		if _, err := t.exec(`INSERT INTO deliveries (notice, channel, subject, state, due_at) VALUES ($1, $2, $3, 'due', $4)`, n.ID, channel, subject, due); err != nil {
			return err
		}
	}
	return nil
}

// Tell writes a notice to the outbox that no change of a letter causes.
func (s *Store) Tell(ctx context.Context, n deadletter.Notice) error {
	return s.tx(ctx, urgent, func(t *tx) error { return t.notice(&n, 0) })
}

// Due returns up to n deliveries of a channel that are due, oldest first, with what is known of
// their groups now. While one about a group, or with a key, is on its way, no later one is given,
// but for a page, which passes what waits for the end of quiet hours. A group whose letters have
// all turned out to belong to another is not told of.
func (s *Store) Due(ctx context.Context, channel string, n int) ([]deadletter.Delivery, error) {
	d := deadletter.Delivery{Channel: channel}
	var letter, random, group sql.NullInt64
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
		{`n.at`, instant{&d.Notice.At}},
		{`g.content`, &digest},
	}
	rows, err := s.ask(ctx, `SELECT `+wanted.list()+`
		FROM deliveries d INDEXED BY deliveries_due JOIN notices n ON n.id = d.notice LEFT JOIN letters l ON l.id = n.letter LEFT JOIN digests g ON g.notice = n.id
		WHERE d.channel = $1 AND d.state = 'due' AND d.due_at <= $2
		AND NOT EXISTS (SELECT 1 FROM deliveries e INDEXED BY deliveries_subject WHERE e.channel = d.channel AND e.subject = d.subject AND e.state = 'due' AND e.id < d.id
			AND NOT (e.postponed = 1 AND n.severity = 'page'))
		ORDER BY d.due_at, d.id LIMIT $3`, channel, s.now().UnixMilli(), n)
	if err != nil {
		return nil, fmt.Errorf("due notices: %w", err)
	}
	var list []deadletter.Delivery
	if err := wanted.scan(rows, func() error {
		d := d
		d.Notice.Group = deadletter.GroupID(group.Int64)
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
	for _, d := range list {
		if d.Notice.Group != 0 {
			g, letters, err := s.groupNow(ctx, d.Notice.Group, !d.Notice.Kind.Closes()) // what closes is of the group itself, not of the one that it is merged into
			if err != nil && !errors.Is(err, deadletter.ErrNotFound) {
				return nil, err
			}
			if letters == 0 && !d.Notice.Kind.Closes() {
				gone = append(gone, d.Notice)
				continue
			}
			d.Group = g
		}
		kept = append(kept, d)
	}
	if len(gone) == 0 {
		return kept, nil
	}
	return kept, s.tx(ctx, urgent, func(t *tx) error {
		for _, n := range gone {
			if err := t.void(n); err != nil {
				return err
			}
		}
		return nil
	})
}

// reached are the channels of a closing notice on which something of its key was told, or is about
// to be.
func (t *tx) reached(n *deadletter.Notice) ([]string, error) {
	var list []string
	for _, channel := range n.Channels {
		var told bool
		if err := t.row(`SELECT EXISTS (SELECT 1 FROM notices o JOIN deliveries d ON d.notice = o.id WHERE o.key = $1 AND d.channel = $2 AND d.state IN ('sent', 'due'))`, []any{n.Key, channel}, &told); err != nil {
			return nil, err
		}
		if told {
			list = append(list, channel)
		}
	}
	return list, nil
}

// OpenProblems returns the newest notice of each problem that people were told of, and not that it
// is over, by key. Channels are those that it went to.
func (s *Store) OpenProblems(ctx context.Context) (map[string]deadletter.Notice, error) {
	rows, err := s.ask(ctx, `SELECT n.key, n.severity, n.text, coalesce((SELECT group_concat(d.channel, char(10)) FROM deliveries d WHERE d.notice = n.id), '') FROM notices n
		WHERE n.kind = 'problem' AND NOT EXISTS (SELECT 1 FROM notices o WHERE o.key = n.key AND o.kind IN ('problem', 'over') AND o.id > n.id)`)
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

// void takes back what people are about to be told of a group without letters, on all channels;
// those that heard of it are told that it is over.
func (t *tx) void(n deadletter.Notice) error {
	var letters bool
	if err := t.row(`SELECT EXISTS (SELECT 1 FROM counters INDEXED BY counters_group WHERE grp IN (SELECT id FROM groups WHERE id = $1 OR head = $1) AND n > 0)`, []any{int64(n.Group)}, &letters); err != nil || letters {
		return err
	}
	if _, err := t.exec(`UPDATE deliveries SET state = 'void', detail = 'its letters belong to another group', ended_at = $2 WHERE state = 'due' AND notice IN (SELECT id FROM notices WHERE key = $1)`, n.Key, t.now); err != nil {
		return err
	}
	g, err := t.life(int64(n.Group))
	if err != nil {
		return err
	}
	closing := g.Close()
	if err := t.keep(g); err != nil {
		return err
	}
	return t.notice(closing, 0)
}

// Delivered records how tries to deliver ended.
func (s *Store) Delivered(ctx context.Context, list []deadletter.Delivered) error {
	err := s.tx(ctx, urgent, func(t *tx) error {
		for _, d := range list {
			var err error
			switch {
			case d.Sent:
				_, err = t.exec(`UPDATE deliveries SET state = 'sent', detail = $3, ended_at = $2 WHERE id = $1`, d.ID, t.now, d.Detail)
			case d.Failed:
				_, err = t.exec(`UPDATE deliveries SET state = 'failed', tries = tries + 1, detail = $3, ended_at = $2 WHERE id = $1`, d.ID, t.now, d.Detail)
			case d.Detail == "": // it waits for the end of quiet hours: that was no try
				_, err = t.exec(`UPDATE deliveries SET postponed = 1, due_at = $2 WHERE id = $1`, d.ID, d.RetryAt.UnixMilli())
			default:
				_, err = t.exec(`UPDATE deliveries SET tries = tries + 1, due_at = $2, detail = $3 WHERE id = $1`, d.ID, d.RetryAt.UnixMilli(), d.Detail)
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

// Channels returns the channels that something is on its way to.
func (s *Store) Channels(ctx context.Context) ([]string, error) {
	rows, err := s.ask(ctx, `SELECT DISTINCT channel FROM deliveries WHERE state = 'due'`)
	if err != nil {
		return nil, err
	}
	var list []string
	err = scan(rows, func() error {
		var name string
		err := rows.Scan(&name)
		list = append(list, name)
		return err
	})
	return list, err
}

// Told returns what people are being told of groups on a channel: as deliveries that are not on
// their way, one of each group that needs people.
func (s *Store) Told(ctx context.Context, channel string) ([]deadletter.Delivery, error) {
	rows, err := s.ask(ctx, `SELECT id, told_key, told_severity, told_at, told_channels FROM groups INDEXED BY groups_told WHERE told > 0 ORDER BY id`)
	if err != nil {
		return nil, fmt.Errorf("told groups: %w", err)
	}
	var list []deadletter.Delivery
	if err := scan(rows, func() error {
		d := deadletter.Delivery{Channel: channel, Notice: deadletter.Notice{Kind: deadletter.NoticeUpdated}}
		var id, at int64
		var channels string
		err := rows.Scan(&id, &d.Notice.Key, &d.Notice.Severity, &at, &channels)
		d.Notice.Group, d.Notice.At = deadletter.GroupID(id), time.UnixMilli(at).UTC()
		if slices.Contains(strings.Split(channels, "\n"), channel) {
			list = append(list, d)
		}
		return err
	}); err != nil {
		return nil, fmt.Errorf("told groups: %w", err)
	}
	for i := range list {
		if list[i].Group, _, err = s.groupNow(ctx, list[i].Notice.Group, true); err != nil {
			return nil, err
		}
	}
	return list, nil
}

const office = "office" // key in meta: what this store is called towards others

// Name is what this store is called towards others, for ever: other dlo have other names, copies of
// it have the same.
func (s *Store) Name() string { return s.Progress().Store }
