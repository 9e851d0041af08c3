package store

import (
	"database/sql"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// shown is a letter in the form that lists show. It contains ids instead of names.
type shown struct {
	deadletter.Row
	serial, random     int64
	inbox, origin, typ int64
	waitsIn            sql.NullString
}

func (r *shown) columns() columns {
	return columns{
		{`l.id`, &r.serial},
		{`l.random`, &r.random},
		{`l.state`, &r.State},
		{`l.inbox`, &r.inbox},
		{`l.origin`, &r.origin},
		{`l.type`, &r.typ},
		{`l.reason`, &r.Reason},
		{`l.grp`, &r.Group},
		{`l.severity`, &r.Severity},
		{`l.exchange`, &r.Exchange},
		{`l.routing_key`, &r.RoutingKey},
		{`l.received_at`, instant{&r.ReceivedAt}},
		{`l.died_at`, instant{&r.DiedAt}},
		{`l.due_at`, instant{&r.DueAt}},
		{`l.size`, &r.Size},
		{`l.attempts`, &r.Attempts},
		{`l.summary`, &r.Summary},
		{`l.error`, &r.Error},
		{`l.why`, &r.Why},
		{`l.waits_in`, &r.waitsIn},
		{`l.unverified`, &r.Unverified},
	}
}

// row converts a letter of the type "shown" to a Row, in which names replace the ids.
func (r *shown) row(n *names) deadletter.Row {
	row := r.Row
	place := n.placeOf(r.origin, r.inbox)
	if unknownOrigin(r.origin) {
		place.Queue = ""
	}
	row.ID, row.Type, row.WaitsIn = deadletter.NewID(r.serial, uint64(r.random)), n.typeName(r.typ), r.waitsIn.String
	row.Broker, row.VHost, row.Queue = place.Broker, place.VHost, place.Queue
	return row
}

// stored is a complete letter as it is read from the database. The values that lists show are read
// into its embedded part "shown".
type stored struct {
	shown
	whole                    deadletter.Letter
	operation                sql.NullInt64
	twin, twinRandom         sql.NullInt64
	sum                      sql.NullInt64
	picked, groupPick        sql.NullString
	annotation               int64
	properties, arrivedAgain []byte
}

func (r *stored) columns() columns {
	l := &r.whole
	return append(r.shown.columns(), columns{
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
		{`b.exchange`, &l.ArrivedBy.Exchange},
		{`b.routing_key`, &l.ArrivedBy.RoutingKey},
		{`b.properties`, &r.properties},
		{`b.body`, &l.Body},
		{`(SELECT a.returned FROM attempts a WHERE a.letter = l.id AND a.returned IS NOT NULL
			ORDER BY a.back_at DESC, a.n DESC LIMIT 1)`, &r.arrivedAgain},
		{`(SELECT a.returned_body FROM attempts a WHERE a.letter = l.id AND a.returned IS NOT NULL
			ORDER BY a.back_at DESC, a.n DESC LIMIT 1)`, &l.ArrivedBody},
	}...)
}

// letter returns the letter whose row was read. Some data of the letter is still missing in the
// result, because separate queries read this data.
func (r *stored) letter(n *names) (deadletter.Letter, error) {
	row, l := r.row(n), r.whole
	l.ID, l.State, l.Reason, l.Type, l.Group, l.Severity = row.ID, row.State, row.Reason, row.Type, row.Group, row.Severity
	l.Origin = deadletter.Origin{
		Broker:     row.Broker,
		VHost:      row.VHost,
		Queue:      row.Queue,
		Exchange:   row.Exchange,
		RoutingKey: row.RoutingKey,
	}
	l.ReceivedAt, l.DiedAt, l.DueAt, l.WaitsIn = row.ReceivedAt, row.DiedAt, row.DueAt, row.WaitsIn
	l.Size, l.Attempts, l.Summary, l.Error, l.Why, l.Unverified = row.Size, row.Attempts, row.Summary, row.Error, row.Why, row.Unverified
	l.Inbox, l.Operation = n.inbox(r.inbox).Queue, deadletter.OperationID(r.operation.Int64)
	l.Picked, l.GroupPick = r.picked.String, r.groupPick.String
	if r.twin.Valid && r.twinRandom.Valid { // the twin of a letter may be outside the scope of the request
		l.Twin = deadletter.NewID(r.twin.Int64, uint64(r.twinRandom.Int64))
	}
	l.Properties = deadletter.StoredProperties(r.properties)
	l.Unchecked = !r.sum.Valid
	if differs(r.sum, r.properties, l.Body) {
		l.Damage = damagedContents
	} else if n.isDamaged(r.origin) {
		l.Damage = damagedName
	}
	l.Arrived = l.Properties
	if r.arrivedAgain != nil {
		l.Arrived = deadletter.StoredProperties(r.arrivedAgain)
	}
	return l, nil
}
