package store

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
)

const (
	sparkHours     = 24
	bucketsPerHour = int64(time.Hour / rollupStep)
	maxGroups      = 1000
)

// familyIDs selects the id of a group g and the ids of the groups merged into it.
const familyIDs = `(SELECT id FROM groups WHERE id = g.id UNION ALL SELECT id FROM groups WHERE head = g.id)`

// These SQL expressions count the letters of a group g and of the groups merged into it. The
// expression groupDead counts the dead and held letters, groupWaiting counts the waiting letters,
// and groupRetrying counts the letters in retry.
const (
	groupDead = `(SELECT coalesce(sum(k.n), 0) FROM counters k INDEXED BY counters_group
		WHERE k.grp IN ` + familyIDs + ` AND k.state IN ('dead', 'held'))`
	groupWaiting = `(SELECT coalesce(sum(k.n), 0) FROM counters k INDEXED BY counters_group
		WHERE k.grp IN ` + familyIDs + ` AND k.state = 'scheduled')`
	groupRetrying = `(SELECT coalesce(sum(k.n), 0) FROM counters k INDEXED BY counters_group
		WHERE k.grp IN ` + familyIDs + ` AND k.state IN (` + retryStates + `))`
)

// groupOverdue is an SQL expression for the number of overdue letters in a group g and in the
// groups merged into it.
const groupOverdue = `(SELECT coalesce(sum(k.n), 0) FROM overdue k WHERE k.grp IN ` + familyIDs + `)`

// needyGroups is an SQL table of the groups with letters that need people, one row per head. The
// column "id" is the id of the group. The column "dead" is the number of dead or held letters,
// "overdue" is the number of overdue letters, and "needs" is the sum of both. If a query joins
// other tables, needyGroups must be the first table. In any other place, SQLite scans all of
// needyGroups for each group.
const needyGroups = `(SELECT coalesce(m.head, m.id) AS id, sum(k.dead) AS dead,
	sum(k.overdue) AS overdue, sum(k.dead + k.overdue) AS needs FROM (
	SELECT grp, n AS dead, 0 AS overdue FROM counters INDEXED BY counters_needy WHERE state IN ('dead', 'held')
	AND n > 0
	UNION ALL SELECT grp, 0, n FROM overdue) k JOIN groups m ON m.id = k.grp GROUP BY 1)`

// quietGroups is an SQL table of the groups whose letters were sent again and all stayed quiet, one
// row per head. At least one letter of such a group is settled, and none is received, dead, held,
// or on its way back to its queue.
const quietGroups = `(SELECT coalesce(m.head, m.id) AS id FROM counters k JOIN groups m ON m.id = k.grp
	WHERE k.state IN ('received', 'scheduled', 'publishing', 'requeued', 'settled', 'dead', 'held') AND k.n > 0
	GROUP BY 1 HAVING min(k.state = 'settled') = 1)`

// listedGroup is a row of the table "groups". It contains ids instead of names.
type listedGroup struct {
	deadletter.GroupRow
	origin, typ int64
	chosen      string
}

func (g *listedGroup) columns() columns {
	return columns{
		{`g.id`, &g.ID},
		{`g.title`, &g.Title},
		{`g.origin`, &g.origin},
		{`g.type`, &g.typ},
		{`g.reason`, &g.Reason},
		{`g.error`, &g.Error},
		{`g.status`, &g.Status},
		{`g.severity`, &g.Severity},
		{`g.chosen`, &g.chosen},
		{`g.owner`, &g.Owner},
		{`g.ticket`, &g.Ticket},
		{`g.note`, &g.Note},
		{`g.note_by`, &g.NoteBy},
		{`nullif(g.changed_at, 0)`, instant{&g.ChangedAt}},
		{`g.snooze_until`, instant{&g.Snooze.Until}},
		{`g.snooze_after`, &g.Snooze.After},
		{`g.snooze_queue`, &g.Snooze.Queue},
		{`g.snooze_by`, &g.Snooze.By},
		{`g.resolved_at`, instant{&g.Resolved.At}},
		{`g.resolved_by`, &g.Resolved.By},
		{`g.resolved_version`, &g.Resolved.Version},
		{`g.back_at`, instant{&g.Back.Since}},
		{`coalesce(g.back_after, 0)`, &g.Back.After},
		{`g.first_at`, instant{&g.FirstAt}},
		{`g.last_at`, instant{&g.LastAt}},
	}
}

// countColumns returns the columns of a group, with its numbers of letters: the waiting letters,
// the overdue letters, and the dead or held letters.
func (g *listedGroup) countColumns(dead, overdue string) columns {
	return append(
		g.columns(), column{dead, &g.Count}, column{groupWaiting, &g.Waiting}, column{overdue, &g.Overdue},
		column{groupRetrying, &g.Retrying},
	)
}

// row converts a listedGroup to a GroupRow, in which names replace the ids.
func (g *listedGroup) row(n *names) deadletter.GroupRow {
	row, place := g.GroupRow, n.origin(g.origin)
	row.Broker, row.VHost, row.Queue, row.Type = place.Broker, place.VHost, place.Queue, n.typeName(g.typ)
	row.Chosen = g.chosen != ""
	return row
}

// These SQL expressions rank the severities and statuses of groups. The most urgent ones have rank
// 0.
const (
	severityRank = `CASE g.severity WHEN 'page' THEN 0 WHEN 'notify' THEN 1 ELSE 2 END`
	statusRank   = `CASE g.status WHEN 'regressed' THEN 0 WHEN 'escalating' THEN 0 WHEN 'new' THEN 1 ELSE 2 END`
)

// groupOrders maps each order of groups to its sort keys. Every key is an integer that sorts in
// ascending order. The last key is always the id.
var groupOrders = map[deadletter.GroupOrder][]string{
	deadletter.ByUrgency: {severityRank, statusRank, `-needs`, `g.id`},
	deadletter.ByLetters: {`-needs`, `g.id`},
	deadletter.ByLast:    {`-g.last_at`, `g.id`},
	deadletter.ByFirst:   {`-g.first_at`, `g.id`},
	"resolved":           {`-coalesce(g.resolved_at, 0)`, `g.id`},
}

// groupTabs maps each tab of the group list to its SQL condition.
var groupTabs = map[deadletter.GroupTab]string{
	deadletter.TabInbox:    inInbox,
	deadletter.TabQuiet:    inInbox,
	deadletter.TabSnoozed:  `g.status = 'snoozed'`,
	deadletter.TabRetrying: noneNeedy,
	deadletter.TabResolved: `g.status = 'resolved'`,
	deadletter.TabAll:      `1`,
}

// Groups returns a page of the groups that match q. It also returns the cursor of the next page,
// which is "" on the last page. It reads no letters: the counts come from the counters, and the
// hourly numbers come from the rollups. Groups returns ErrInvalid if q contains a field that only
// letters have, such as attempts or headers.
func (s *Store) Groups(
	ctx context.Context, q query.Query, p deadletter.GroupPage,
) (list []deadletter.GroupRow, next string, err error) {
	if p.Limit <= 0 || p.Limit > maxGroups {
		return nil, "", fmt.Errorf("%w: a page has 1 to %d groups", deadletter.ErrInvalid, maxGroups)
	}
	if p.Tab == "" {
		p.Tab = deadletter.TabInbox
	}
	if p.Order == "" {
		switch p.Tab {
		case deadletter.TabQuiet:
			p.Order = deadletter.ByLast
		case deadletter.TabResolved:
			p.Order = "resolved"
		default:
			p.Order = deadletter.ByUrgency
		}
	}
	tab, ok := groupTabs[p.Tab]
	order, known := slices.Clone(groupOrders[p.Order]), groupOrders[p.Order] != nil
	if !ok || !known {
		return nil, "", fmt.Errorf(
			"%w: there is no list %s of groups in order %s", deadletter.ErrInvalid, p.Tab, p.Order,
		)
	}
	where, err := s.groupFilter(ctx, q)
	if err != nil {
		return nil, "", err
	}
	where = allOf(clause{text: `g.head IS NULL`}, clause{text: tab}, where)
	dead, overdue, needs, from := groupDead, groupOverdue, groupDead, `groups g`
	switch p.Tab {
	case deadletter.TabRetrying:
		dead, overdue, needs, from = `0`, `0`, `c.n`, retryingGroups+` c CROSS JOIN groups g ON g.id = c.id`
	case deadletter.TabInbox:
		dead, overdue, needs, from = `c.dead`, `c.overdue`, `c.needs`, needyGroups+
			` c CROSS JOIN groups g ON g.id = c.id`
	case deadletter.TabQuiet:
		from = quietGroups + ` c CROSS JOIN groups g ON g.id = c.id`
	}
	for i := range order {
		order[i] = strings.ReplaceAll(order[i], `-needs`, `-`+needs)
	}
	if p.After != "" {
		after, err := groupCursor(p, len(order))
		if err != nil {
			return nil, "", err
		}
		where = allOf(where, clause{
			`(` + strings.Join(order, ", ") + `) > (?` + strings.Repeat(", ?", len(order)-1) + `)`, after,
		})
	}
	var g listedGroup
	keys := make([]int64, len(order))
	wanted := g.countColumns(dead, overdue)
	if p.Tab == deadletter.TabRetrying {
		wanted = append(wanted, column{groupNext, instant{&g.NextAt}})
	}
	for i := range order {
		wanted = append(wanted, column{order[i], &keys[i]})
	}
	rows, err := s.read.QueryContext(
		ctx, numberPlaceholders(`SELECT `+wanted.list()+` FROM `+from+` WHERE `+where.text+`
		ORDER BY `+strings.Join(order, ", ")+` LIMIT ?`), append(where.args, p.Limit+1)...,
	)
	if err != nil {
		return nil, "", fmt.Errorf("groups: %w", err)
	}
	var last []int64
	if err := wanted.scan(rows, func() error {
		if len(list) == p.Limit {
			next = "more"
			return nil
		}
		list, last = append(list, g.row(&s.names)), slices.Clone(keys)
		return nil
	}); err != nil {
		return nil, "", fmt.Errorf("groups: %w", err)
	}
	if next != "" {
		// json.Marshal cannot fail, because the values are only texts and numbers
		text, _ := json.Marshal(append([]any{p.Tab, p.Order}, last))
		next = base64.RawURLEncoding.EncodeToString(text)
	}
	return list, next, s.addRecent(ctx, list)
}

// groupCursor decodes a cursor to the sort keys of the last row on the previous page.
func groupCursor(p deadletter.GroupPage, n int) ([]any, error) {
	var c struct {
		tab   deadletter.GroupTab
		order deadletter.GroupOrder
		keys  []int64
	}
	text, err := base64.RawURLEncoding.DecodeString(p.After)
	if err == nil {
		err = json.Unmarshal(text, &[]any{&c.tab, &c.order, &c.keys})
	}
	if err != nil || c.tab != p.Tab || c.order != p.Order || len(c.keys) != n {
		return nil, fmt.Errorf(
			"%w: the page cursor is not one of this list; begin at its first page", deadletter.ErrInvalid,
		)
	}
	args := make([]any, n)
	for i, k := range c.keys {
		args[i] = k
	}
	return args, nil
}

// groupFilter converts a query to an SQL condition on groups g. Some terms say where or why letters
// died. If such a term matches a merged group, the condition selects the group into which this
// group is merged.
func (s *Store) groupFilter(ctx context.Context, q query.Query) (clause, error) {
	var all []clause
	for _, t := range q.Terms {
		var c clause
		var err error
		v := t.Values[0]
		switch t.Field {
		case query.Status:
			c = s.statusCondition(t.Values)
		case query.Owner, query.Severity:
			c = textClause("g."+string(t.Field), t.Values)
		case query.Group, query.Queue, query.VHost, query.Broker, query.Type, query.Reason, query.ErrorText:
			if c, _, _, err = s.condition(ctx, t); err != nil {
				return clause{}, err
			}
			c = clause{`g.id IN (SELECT coalesce(l.head, l.grp) FROM
				(SELECT id AS grp, head, origin, type, reason, error FROM groups) l WHERE ` + c.text + `)`, c.args}
		case query.Since:
			c = clause{`g.last_at >= ?`, []any{v.Time.UnixMilli()}}
		case query.Before:
			c = clause{`g.last_at < ?`, []any{v.Time.UnixMilli()}}
		case query.Age: // the age of a group counts from its first letter
			compare := map[query.Compare]string{
				query.Less: ">", query.AtMost: ">=", query.More: "<", query.AtLeast: "<=", query.Equal: "=",
			}[v.Compare]
			c = clause{`g.first_at ` + compare + ` ?`, []any{v.Time.UnixMilli()}}
		case query.Words:
			pattern := "%" + strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(v.Pattern[0]) + "%"
			c = clause{
				`(g.title LIKE ? ESCAPE '\' OR g.error LIKE ? ESCAPE '\' OR g.note LIKE ? ESCAPE '\' OR g.ticket LIKE ? ESCAPE '\')`,
				[]any{pattern, pattern, pattern, pattern},
			}
		default:
			return clause{}, fmt.Errorf(
				"%w: %s is asked of letters, not of groups; groups are found by queue, type, reason, error, severity, status, owner, group, vhost, broker, since, before, age and words",
				deadletter.ErrInvalid, t.Field,
			)
		}
		if t.Not {
			c = negated(c)
		}
		all = append(all, c)
	}
	return allOf(all...), nil
}

// addRecent fills in when the last letter of each group died, whether the group is failing, and how
// many letters the group received in each of the last hours.
func (s *Store) addRecent(ctx context.Context, list []deadletter.GroupRow) error {
	if err := s.addPulses(ctx, list); err != nil {
		return err
	}
	return s.addSparks(ctx, list)
}

// addSparks fills in the field Spark of each group in the list: the number of letters that the
// group received in each of the last sparkHours hours. The last hour ends with the current quarter
// of an hour.
func (s *Store) addSparks(ctx context.Context, list []deadletter.GroupRow) error {
	end := s.now().UnixMilli()/rollupMillis + 1
	from := end - sparkHours*bucketsPerHour
	at := map[int64]int{} // group -> its index in list
	ids := make([]any, len(list))
	for i := range list {
		at[int64(list[i].ID)], ids[i], list[i].Spark = i, int64(list[i].ID), make([]int, sparkHours)
	}
	for chunk := range slices.Chunk(ids, 400) {
		of := placeholders(3, len(chunk))
		rows, err := s.read.QueryContext(ctx, `SELECT coalesce(g.head, g.id), r.bucket, sum(r.n) FROM rollups r
			INDEXED BY rollups_group JOIN groups g ON g.id = r.grp
			WHERE r.bucket >= $1 AND r.bucket < $2 AND r.grp IN (SELECT id FROM groups
			WHERE id IN (`+of+`) UNION ALL SELECT id FROM groups WHERE head IN (`+of+`)) GROUP BY 1, 2`,
			append([]any{from, end}, chunk...)...)
		if err != nil {
			return fmt.Errorf("groups: %w", err)
		}
		if err := scan(rows, func() error {
			var group, bucket int64
			var n int
			err := rows.Scan(&group, &bucket, &n)
			list[at[group]].Spark[(bucket-from)/bucketsPerHour] += n
			return err
		}); err != nil {
			return fmt.Errorf("groups: %w", err)
		}
	}
	return nil
}

// GroupCounts counts the groups in each tab. For the inbox, it also counts the groups of the given
// owner and the groups of each severity.
func (s *Store) GroupCounts(ctx context.Context, owner string) (deadletter.GroupCounts, error) {
	counts := deadletter.GroupCounts{Severities: map[deadletter.Severity]int{}}
	rows, err := s.ask(ctx, `SELECT 'inbox', g.severity, g.owner = $1 AND g.owner <> '', count(*), sum(c.needs)
		FROM `+needyGroups+` c CROSS JOIN groups g ON g.id = c.id
		WHERE `+inInbox+` GROUP BY 2, 3
		UNION ALL SELECT 'quiet', '', 0, count(*), 0 FROM `+quietGroups+` c CROSS JOIN groups g ON g.id = c.id
		WHERE `+inInbox+`
		UNION ALL SELECT status, '', 0, count(*), 0 FROM groups WHERE status IN ('snoozed', 'resolved') AND head IS NULL
		GROUP BY 1`, owner)
	if err != nil {
		return counts, fmt.Errorf("count groups: %w", err)
	}
	err = scan(rows, func() error {
		var tab string
		var severity deadletter.Severity
		var mine bool
		var n, letters int
		err := rows.Scan(&tab, &severity, &mine, &n, &letters)
		switch deadletter.GroupTab(tab) {
		case deadletter.TabQuiet:
			counts.Quiet += n
		case deadletter.TabSnoozed:
			counts.Snoozed += n
		case deadletter.TabResolved:
			counts.Resolved += n
		default:
			counts.Inbox += n
			counts.Letters += letters
			counts.Severities[severity] += n
			if mine {
				counts.Mine += n
			}
		}
		return err
	})
	return counts, err
}

// groupNow returns a group and the number of its letters in any state. If the parameter "head" is
// true, it returns the head of a merged group instead of the merged group.
func (s *Store) groupNow(ctx context.Context, id deadletter.GroupID, head bool) (*deadletter.GroupRow, int, error) {
	shown := `$1`
	if head {
		shown = `(SELECT coalesce(head, id) FROM groups WHERE id = $1)`
	}
	var g listedGroup
	letters := 0
	wanted := append(g.countColumns(groupDead, groupOverdue), column{
		`(SELECT coalesce(sum(k.n), 0) FROM counters k INDEXED BY counters_group
			WHERE k.grp IN ` + familyIDs + `)`, &letters,
	})
	rows, err := s.ask(ctx, `SELECT `+wanted.list()+` FROM groups g WHERE g.id = `+shown, int64(id))
	if err != nil {
		return nil, 0, fmt.Errorf("group %s: %w", id, err)
	}
	var found []deadletter.GroupRow
	if err := wanted.scan(rows, func() error {
		found = append(found, g.row(&s.names))
		return nil
	}); err != nil {
		return nil, 0, fmt.Errorf("group %s: %w", id, err)
	}
	if len(found) == 0 {
		return nil, 0, deadletter.NoSuch("group %s", id)
	}
	return &found[0], letters, s.addRecent(ctx, found)
}
