package store

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// gather decides to which incident the notice about a group belongs. If an incident began a moment
// ago in the same queue or after the same deploy, the notice gets the key of that incident.
//
// However, the group becomes an incident of its own if its severity is higher than that of the
// other groups, or if its notice would reach someone who does not know of the other groups. The
// parameter "known" is true if people were already notified about the group.
func (t *tx) gather(g *deadletter.GroupLife, n *deadletter.Notice, origin int64, known bool) error {
	if n == nil || n.Kind != deadletter.NoticeOpened && n.Kind != deadletter.NoticeRegressed {
		return nil
	}
	now := time.UnixMilli(t.now).UTC()
	if known {
		others, loudest, err := t.othersNotified(g)
		if err != nil || !others { // the incident has no other groups, so this group keeps the key
			return err
		}
		if !n.Severity.Louder(loudest) {
			n.Kind = deadletter.NoticeUpdated
			return nil
		}
		g.Leave(now)
		n.Key = g.Key
	}
	var err error
	if g.Deploy, err = t.suspectDeploy(g); err != nil {
		return err
	}
	return t.joinIncident(g, n, origin)
}

// othersNotified reports whether people were notified about other groups that have the same key as
// the group g. The result "loudest" is the highest severity of those groups.
func (t *tx) othersNotified(g *deadletter.GroupLife) (others bool, loudest deadletter.Severity, err error) {
	told, err := values[deadletter.Severity](t.query(`SELECT told_severity FROM groups INDEXED BY groups_incident
		WHERE told > 0 AND told_key = $1 AND id <> $2`, g.Key, int64(g.ID)))
	for _, s := range told {
		if s.Louder(loudest) {
			loudest = s
		}
	}
	return len(told) > 0, loudest, err
}

// suspectDeploy returns the id of the last deploy shortly before a group began to need people or
// came back; 0 = none.
func (t *tx) suspectDeploy(g *deadletter.GroupLife) (id int64, err error) {
	began := t.now
	if g.Status != deadletter.GroupRegressed {
		if err := t.row(`SELECT first_at FROM groups WHERE id = $1`, []any{int64(g.ID)}, &began); err != nil {
			return 0, err
		}
	}
	err = t.row(`SELECT id FROM deploys WHERE at >= $1 AND at <= $2 ORDER BY at DESC, id DESC
		LIMIT 1`, []any{began - deadletter.SuspectWithin.Milliseconds(), began}, &id)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return id, err
}

// joinIncident gives a group the key of the first incident to which it belongs. It ignores
// incidents that begin long after the present time. Such incidents exist if the clock was set back.
func (t *tx) joinIncident(g *deadletter.GroupLife, n *deadletter.Notice, origin int64) error {
	within := deadletter.JoinWithin.Milliseconds()
	rows, err := t.query(`SELECT told_key, told_began, told_severity, told_channels, origin = $1
		OR coalesce(told_deploy = $2, 0) FROM groups INDEXED BY groups_began
		WHERE told > 0 AND told_began BETWEEN $3 AND $4 AND id <> $5
		ORDER BY told_began, told_key`, origin, positiveOrNull(g.Deploy), t.now-within, t.now+within, int64(g.ID))
	if err != nil {
		return err
	}
	var open []*incident
	if err := scan(rows, func() error {
		var i incident
		var began int64
		var severity deadletter.Severity
		var channels string
		if err := rows.Scan(&i.key, &began, &severity, &channels, &i.related); err != nil {
			return err
		}
		i.began, i.channels, i.loudest = time.UnixMilli(began).UTC(), strings.Split(channels, "\n"), severity
		if last := len(open) - 1; last >= 0 && open[last].key == i.key {
			open[last].add(&i)
		} else {
			open = append(open, &i)
		}
		return nil
	}); err != nil {
		return err
	}
	for _, i := range open {
		if i.accepts(n) {
			g.Key, g.Began = i.key, i.began
			n.Key, n.Kind = g.Key, deadletter.NoticeJoined
			return nil
		}
	}
	return nil
}

// incident is a set of groups about which people are notified under one key.
type incident struct {
	key      string
	began    time.Time
	loudest  deadletter.Severity
	channels []string // channels on which people were notified
	related  bool     // one of the groups is in the same queue as the new group, or began after the same deploy
}

func (i *incident) add(other *incident) {
	if other.loudest.Louder(i.loudest) {
		i.loudest = other.loudest
	}
	i.channels, i.related = append(i.channels, other.channels...), i.related || other.related
}

// accepts reports whether the group of a notice may join the incident. The group may not join if
// its severity is higher than that of the incident, or if the notice would reach somebody who does
// not know of the incident.
func (i *incident) accepts(n *deadletter.Notice) bool {
	return i.related && !n.Severity.Louder(i.loudest) &&
		!slices.ContainsFunc(n.Channels, func(c string) bool { return !slices.Contains(i.channels, c) })
}

// leaveIncident is called when a group ends but its incident continues with other groups. It stores
// the notice that the group has ended, but does not send it. It also cancels pending notices about
// the group.
func (t *tx) leaveIncident(n *deadletter.Notice) error {
	if _, err := t.exec(`INSERT INTO notices (key, kind, severity, text, grp, at)
		VALUES ($1, $2, $3, '', $4, $5)`,
		n.Key, string(n.Kind), string(n.Severity), int64(n.Group), t.now); err != nil {
		return err
	}
	_, err := t.exec(`UPDATE deliveries SET state = 'void', detail = 'it was over before it was said', ended_at = $3
		WHERE state = 'due' AND notice IN (SELECT id FROM notices INDEXED BY notices_group WHERE grp = $2
		AND key = $1)`,
		n.Key, int64(n.Group), t.now)
	return err
}

// closingChannels returns the channels for the notice n, which says that something is over. These
// are the channels to which an earlier notice with the same key was sent or must still be sent. For
// an incident, this includes the notices about all of its groups, because they have the same key.
// The method also raises the severity of n to the highest severity among the earlier notices.
func (t *tx) closingChannels(n *deadletter.Notice) (channels []string, err error) {
	rows, err := t.query(`SELECT DISTINCT o.severity, d.channel FROM notices o JOIN deliveries d ON d.notice = o.id
		WHERE o.key = $1 AND d.state IN ('sent', 'due') ORDER BY d.channel`, n.Key)
	if err != nil {
		return nil, err
	}
	err = scan(rows, func() error {
		var severity deadletter.Severity
		var channel string
		err := rows.Scan(&severity, &channel)
		// a problem has the same key as earlier problems of its kind
		if n.Group == 0 && !slices.Contains(n.Channels, channel) {
			return err
		}
		if !slices.Contains(channels, channel) {
			channels = append(channels, channel)
		}
		if severity.Louder(n.Severity) {
			n.Severity = severity
		}
		return err
	})
	return channels, err
}

// ofIncident completes a delivery, which is a notice to one channel. If the notice is about an
// incident with several groups, ofIncident adds these groups to the delivery.
func (s *Store) ofIncident(ctx context.Context, d *deadletter.Delivery) error {
	type member struct {
		id       deadletter.GroupID
		told     bool // people were notified about the group under the key of this incident
		anywhere bool // people were notified about the group under any key
		here     bool // people were notified about the group on this channel
	}
	// the outbox is not limited to a scope, although each group belongs to one
	whole := deadletter.Within(ctx, deadletter.Scope{})
	rows, err := s.ask(whole, `SELECT g.id, g.told > 0 AND g.told_key = $1, g.told > 0, g.told_channels, EXISTS
		(SELECT 1 FROM notices n JOIN deliveries d ON d.notice = n.id
			WHERE n.key = $1 AND n.grp = g.id AND n.kind NOT IN ('quiet', 'resolved') AND d.channel = $2)
		FROM groups g WHERE g.id IN (SELECT grp FROM notices WHERE key = $1 AND grp IS NOT NULL UNION SELECT id
		FROM groups INDEXED BY groups_incident WHERE told > 0 AND told_key = $1)
		ORDER BY (SELECT min(id) FROM notices WHERE key = $1 AND grp = g.id), g.id`, d.Notice.Key, d.Channel)
	if err != nil {
		return err
	}
	var members []member
	if err := scan(rows, func() error {
		var m member
		var channels string
		var heard bool
		err := rows.Scan(&m.id, &m.told, &m.anywhere, &channels, &heard)
		m.here = heard || m.told && slices.Contains(strings.Split(channels, "\n"), d.Channel)
		members = append(members, m)
		return err
	}); err != nil {
		return err
	}
	if len(members) < 2 {
		return nil
	}
	for _, m := range members {
		if !m.here || !m.told && m.anywhere {
			continue
		}
		g, letters, err := s.groupNow(ctx, m.id, m.told)
		if errors.Is(err, deadletter.ErrNotFound) {
			continue
		}
		switch {
		case err != nil:
			return err
		case d.Notice.Kind.Closes() && letters > 0, m.told:
			d.Incident = append(d.Incident, *g)
		default:
			d.Left = append(d.Left, *g)
		}
	}
	if len(d.Incident) > 0 {
		d.Group = &d.Incident[0]
	}
	if d.Notice.Kind.Closes() || len(d.Incident) < 2 {
		return nil
	}
	if err := s.commonDeploy(ctx, d); err != nil {
		return err
	}
	return s.saidWith(ctx, d)
}

// commonDeploy adds a deploy to a delivery about an incident. It does so only if all groups of the
// incident began to need people after the same deploy.
func (s *Store) commonDeploy(ctx context.Context, d *deadletter.Delivery) (err error) {
	d.After, err = firstDeploy(s.ask(ctx, `SELECT id, at, service, version, link, by FROM deploys WHERE id = (SELECT
		min(told_deploy) FROM groups INDEXED BY groups_incident WHERE told > 0 AND told_key = $1
		HAVING min(coalesce(told_deploy, 0)) = max(told_deploy))`, d.Notice.Key))
	return err
}

// saidWith finds the other notices that a delivery makes unnecessary. Such a notice is due on the
// same channel and is about a group that the delivery names.
func (s *Store) saidWith(ctx context.Context, d *deadletter.Delivery) error {
	rows, err := s.ask(ctx, `SELECT e.id, n.grp FROM notices n JOIN deliveries e ON e.notice = n.id WHERE n.key = $1
		AND n.kind IN ('opened', 'regressed', 'joined', 'escalated', 'updated')
		AND e.channel = $2 AND e.state = 'due' AND e.due_at <= $3
		AND e.id <> $4`, d.Notice.Key, d.Channel, s.now().UnixMilli(), d.ID)
	if err != nil {
		return err
	}
	return scan(rows, func() error {
		var id, group int64
		err := rows.Scan(&id, &group)
		if slices.ContainsFunc(d.Incident, func(g deadletter.GroupRow) bool { return int64(g.ID) == group }) {
			d.With = append(d.With, id)
		}
		return err
	})
}

// isFirst reports whether no notice with the same key was sent on a channel before this one.
func (s *Store) isFirst(ctx context.Context, key, channel string) (first bool, err error) {
	err = s.askRow(ctx, `SELECT NOT EXISTS (SELECT 1 FROM notices n JOIN deliveries d ON d.notice = n.id
		WHERE n.key = $1 AND d.channel = $2 AND d.state = 'sent')`, []any{key, channel}, &first)
	return first, err
}

// rejoin puts a group back into an incident that the group had left. The parameter "key" is the key
// of the incident. If the incident has no other groups now, rejoin does nothing.
func (t *tx) rejoin(g *deadletter.GroupLife, key string) error {
	var other int64
	err := t.row(`SELECT id FROM groups INDEXED BY groups_incident WHERE told > 0 AND told_key = $1
		LIMIT 1`, []any{key}, &other)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	with, err := t.readLife(other)
	if err != nil {
		return err
	}
	g.Told, g.Key, g.ToldAt, g.ToldAs, g.Channels, g.Began, g.Heard = max(
		g.Deaths, 1,
	), key, time.UnixMilli(t.now).UTC(), with.ToldAs, with.Channels, with.Began, true
	return nil
}
