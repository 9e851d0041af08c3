package store

import (
	"context"
	"fmt"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// renameSQL contains the SQL that gives a broker another name. Rows of letters and groups refer to
// the rows of origins and inboxes, so they do not change. If dlo has connected to the broker under
// both names, an inbox and a mark may have two rows. The row of the old name stays, because its
// marker and its windows belong together. It gets the numbers of the other row that are higher, so
// that nothing counts as proved or as safe that was not before. The next start adds the checksums.
var renameSQL = []string{
	`UPDATE origins SET broker = $2, checksum = NULL WHERE broker = $1`,
	`UPDATE OR REPLACE inboxes SET broker = $2, checksum = NULL, (session, at_stake, delay_ms) =
		(SELECT max(b.session), max(b.at_stake), max(b.delay_ms) FROM inboxes b
			WHERE b.broker IN ($1, $2) AND b.vhost = inboxes.vhost AND b.queue = inboxes.queue) WHERE broker = $1`,
	`UPDATE OR REPLACE marks SET broker = $2, (claims, unproved) = (SELECT max(b.claims), max(b.unproved) FROM marks b
		WHERE b.broker IN ($1, $2) AND b.vhost = marks.vhost) WHERE broker = $1`,
	`UPDATE declared SET broker = $2 WHERE broker = $1`,
}

// RenameBroker gives everything that the store has of a broker to the name "to", in one
// transaction. It returns ErrNotFound if the store has nothing of the broker, and ErrConflict if
// the store has letters, settings or policies of "to".
//
// The store has the old name in memory until it is opened again, so the caller closes it.
func (s *Store) RenameBroker(ctx context.Context, from, to string) error {
	if len(s.names.altered) > 0 { // the new checksums would declare these names to be right
		const text = "%w: names in the file of the store changed on the disk: restore the file from a copy first"
		return fmt.Errorf(text, deadletter.ErrConflict)
	}
	err := s.tx(ctx, bulk, func(t *tx) error {
		if err := t.canRename(from, to); err != nil {
			return err
		}
		for _, text := range renameSQL {
			if _, err := t.exec(text, from, to); err != nil {
				return err
			}
		}
		if _, err := t.exec(`DELETE FROM meta WHERE key IN ($1, $2)`, firstNamed+from, firstNamed+to); err != nil {
			return err
		}
		if _, err := t.exec(
			`INSERT INTO meta (key, value) VALUES ($1, $2)`, firstNamed+to, s.FirstName(from),
		); err != nil {
			return err
		}
		detail := fmt.Sprintf("broker %s has everything of broker %s", deadletter.Visible(to), deadletter.Visible(from))
		target := deadletter.Target{Kind: deadletter.TargetBroker, Name: to}
		return t.audit(deadletter.Once(deadletter.ActBrokerRenamed, deadletter.Local.Name, detail, target))
	})
	if err != nil {
		return fmt.Errorf("rename broker %s: %w", deadletter.Visible(from), err)
	}
	return nil
}

// canRename returns an error if the store has nothing of the broker "from", or if it has more of
// the broker "to" than records of connections.
func (t *tx) canRename(from, to string) error {
	var brokers []string
	known, taken := false, false
	rows, err := t.query(`SELECT broker FROM origins WHERE id > 0 UNION SELECT broker FROM inboxes
		UNION SELECT broker FROM marks UNION SELECT broker FROM declared ORDER BY 1`)
	if err != nil {
		return err
	}
	if err := scan(rows, func() error {
		var name string
		err := rows.Scan(&name)
		brokers, known = append(brokers, deadletter.Visible(name)), known || name == from
		return err
	}); err != nil {
		return err
	}
	if !known {
		const text = "%w: the store has nothing of this broker; it has brokers: %s"
		return fmt.Errorf(text, deadletter.ErrNotFound, strings.Join(brokers, ", "))
	}
	err = t.row(`SELECT EXISTS (SELECT 1 FROM origins WHERE broker = $1) OR EXISTS (SELECT 1 FROM declared
		WHERE broker = $1)
		OR EXISTS (SELECT 1 FROM windows WHERE inbox IN (SELECT id FROM inboxes WHERE broker = $1))
		OR EXISTS (SELECT 1 FROM letters WHERE inbox IN (SELECT id FROM inboxes WHERE broker = $1))`, []any{to}, &taken)
	if err == nil && taken {
		const text = "%w: the store has letters, settings or policies of broker %s already, and dlo does not make two brokers one. " +
			`Instead, write a second entry: - {name: %s, url: "amqp://...", exchange: dlo.second, inboxes: [dlo.second]}`
		err = fmt.Errorf(text, deadletter.ErrConflict, deadletter.Visible(to), deadletter.Visible(from))
	}
	return err
}
