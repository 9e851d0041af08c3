package store

import (
	"database/sql"
	"slices"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/segment"
)

// keys are the values of a row of the table letters for which lists show names, or nothing.
type keys struct {
	serial, random     int64
	inbox, origin, typ int64
	waitsIn            sql.NullString
	imported           deadletter.State // state that an imported letter is to get
}

// A column that lists show has one line, in one of the next four functions. Queries read all of
// them. The function says when the column gets its value. Only an import stores the values of a
// verdict with the new row. A purge erases the columns of Row.Texts.

// arrivedColumns are the columns that the store sets when a letter arrives, and never again.
func arrivedColumns(r *deadletter.Row, k *keys) columns {
	return columns{
		{`l.id`, &k.serial},
		{`l.random`, &k.random},
		{`l.inbox`, &k.inbox},
		{`l.received_at`, instant{&r.ReceivedAt}},
		{`l.size`, &r.Size},
	}
}

// placeColumns are the columns that the store sets when a letter arrives, and with each verdict.
func placeColumns(r *deadletter.Row, k *keys) columns {
	return columns{
		{`l.state`, &r.State},
		{`l.origin`, &k.origin},
		{`l.why`, &r.Why},
	}
}

// verdictColumns are the columns that the store sets with each verdict.
func verdictColumns(r *deadletter.Row, k *keys) columns {
	return columns{
		{`l.type`, &k.typ},
		{`l.reason`, &r.Reason},
		{`l.grp`, &r.Group},
		{`l.severity`, &r.Severity},
		{`l.exchange`, &r.Exchange},
		{`l.routing_key`, &r.RoutingKey},
		{`l.died_at`, instant{&r.DiedAt}},
		{`l.due_at`, instant{&r.DueAt}},
		{`l.summary`, &r.Summary},
		{`l.error`, &r.Error},
	}
}

// sentColumns are the columns that the store sets when a letter is sent or comes back.
func sentColumns(r *deadletter.Row, k *keys) columns {
	return columns{
		{`l.attempts`, &r.Attempts},
		{`l.waits_in`, &k.waitsIn},
		{`l.unverified`, &r.Unverified},
	}
}

func shownColumns(r *deadletter.Row, k *keys) columns {
	return slices.Concat(arrivedColumns(r, k), placeColumns(r, k), verdictColumns(r, k), sentColumns(r, k))
}

func receivedColumns(r *deadletter.Row, k *keys) columns {
	return append(arrivedColumns(r, k), placeColumns(r, k)...)
}

func importedColumns(r *deadletter.Row, k *keys) columns {
	return slices.Concat(receivedColumns(r, k), verdictColumns(r, k), columns{{`l.imported`, &k.imported}})
}

func decidedColumns(r *deadletter.Row, k *keys) columns {
	return append(placeColumns(r, k), verdictColumns(r, k)...)
}

// rowOf returns what a verdict says about the values that lists show.
func rowOf(c *deadletter.Classified, to deadletter.State, group int64) deadletter.Row {
	r := deadletter.Row{
		State:    to,
		Reason:   c.Reason,
		Group:    deadletter.GroupID(group),
		Severity: c.Severity,
		DiedAt:   c.DiedAt,
		DueAt:    c.DueAt,
		Summary:  c.Summary,
		Error:    c.Error,
		Why:      c.Why,
	}
	r.SetOrigin(c.Origin)
	return r
}

var eraseTexts = `UPDATE letters SET ` + textColumns() + `unpublishable = '' WHERE id = $1`

// textColumns returns the assignments that erase the columns of Row.Texts.
func textColumns() string {
	var r deadletter.Row
	var b strings.Builder
	for _, c := range shownColumns(&r, &keys{}) {
		if text, ok := c.into.(*string); ok && slices.Contains(r.Texts(), text) {
			b.WriteString(c.name() + ` = '', `)
		}
	}
	return b.String()
}

// complete replaces the keys of a row that was read by the names that they stand for.
func (k *keys) complete(r *deadletter.Row, n *names) {
	place := n.placeOf(k.origin, k.inbox)
	if unknownOrigin(k.origin) {
		place.Queue = ""
	}
	r.ID, r.Type, r.WaitsIn = deadletter.NewID(k.serial, uint64(k.random)), n.typeName(k.typ), k.waitsIn.String
	r.Broker, r.VHost, r.Queue = place.Broker, place.VHost, place.Queue
}

// stored is a complete letter as it is read from the database.
type stored struct {
	keys
	whole             deadletter.Letter
	operation         sql.NullInt64
	twin, twinRandom  sql.NullInt64
	sum               sql.NullInt64
	picked, groupPick sql.NullString
	annotation        int64
	segment           sql.NullInt64
	arrivedAgain      []byte
}

func (r *stored) columns() columns {
	l := &r.whole
	return append(shownColumns(&l.Row, &r.keys), columns{
		{`l.changed_at`, instant{&l.ChangedAt}},
		{`l.reset`, &l.Reset},
		{`l.nacks`, &l.Nacks},
		{`l.rule`, &l.Rule},
		{`l.operation`, &r.operation},
		{`l.twin`, &r.twin},
		{`w.random`, &r.twinRandom},
		{`CASE l.suspect WHEN 0 THEN '' WHEN 1 THEN 'cut-off' WHEN 2 THEN 'restart' ELSE 'restored' END`, &l.Doubt},
		{`l.crashes`, &l.Crashes},
		{`l.unguarded`, &l.Unguarded},
		{`l.imported`, &l.Imported},
		{`l.reading`, &l.Reading},
		{`l.revision`, &l.Revision},
		{`l.annotation`, &r.annotation},
		{`l.checksum`, &r.sum},
		{`(SELECT type FROM picks WHERE letter = l.id)`, &r.picked},
		{`(SELECT type FROM picks WHERE grp = l.grp)`, &r.groupPick},
		{`coalesce((SELECT version FROM groups WHERE id = l.grp), 0)`, &l.GroupVersion},
		{`l.segment`, &r.segment},
		{`(SELECT a.returned FROM attempts a WHERE a.letter = l.id AND a.returned IS NOT NULL
			ORDER BY a.back_at DESC, a.n DESC LIMIT 1)`, &r.arrivedAgain},
		{`(SELECT a.returned_body FROM attempts a WHERE a.letter = l.id AND a.returned IS NOT NULL
			ORDER BY a.back_at DESC, a.n DESC LIMIT 1)`, &l.ArrivedBody},
	}...)
}

// letter returns the letter whose row and message were read. The parameter "lost" is true if the
// message is damaged. Some data of the letter is still missing in the result, because separate
// queries read this data.
func (r *stored) letter(n *names, m segment.Message, lost bool) deadletter.Letter {
	l := r.whole
	r.complete(&l.Row, n)
	l.Inbox, l.Operation = n.inbox(r.inbox).Queue, deadletter.OperationID(r.operation.Int64)
	l.Picked, l.GroupPick = r.picked.String, r.groupPick.String
	if r.twin.Valid && r.twinRandom.Valid { // the twin of a letter may be outside the scope of the request
		l.Twin = deadletter.NewID(r.twin.Int64, uint64(r.twinRandom.Int64))
	}
	l.ArrivedBy, l.Properties, l.Body = deadletter.Route{Exchange: m.Exchange, RoutingKey: m.RoutingKey},
		deadletter.StoredProperties(m.Properties), m.Body
	if lost || differs(r.sum, m.Properties, m.Body) {
		l.Damage = damagedContents
	} else if n.isDamaged(r.origin) {
		l.Damage = damagedName
	}
	l.Arrived = l.Properties
	if r.arrivedAgain != nil {
		l.Arrived = deadletter.StoredProperties(r.arrivedAgain)
	}
	return l
}
