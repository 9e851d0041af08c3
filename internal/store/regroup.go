package store

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// key in the table meta for the newest grouping version, and after a space the settings, for which
// all letters were to be read again
const grouping = "grouping"

// Regroup requests that all letters be read again in the background, if a group has an older
// version than the given one, or if the settings by which letters are read have changed. The
// settings are any text. Regroup reports whether letters may still have to be read. The request is
// made once per change and survives a crash.
func (s *Store) Regroup(ctx context.Context, version int, settings string) (left bool, err error) {
	err = s.tx(ctx, bulk, func(t *tx) error {
		var had string
		var older bool
		if err := t.row(`SELECT coalesce((SELECT value FROM meta WHERE key = $1), ''),
			EXISTS (SELECT 1 FROM groups WHERE version < $2)`, []any{grouping, version}, &had, &older); err != nil {
			return err
		}
		text, before, known := strings.Cut(had, " ")
		asked, _ := strconv.Atoi(text)
		r := deadletter.Reread{Hides: known && before != settings} // a type may hide more
		switch {
		case asked < version && older:
			r.Why = fmt.Sprintf("grouping version %d", version)
		case r.Hides:
			r.Why = "other settings"
		}
		if left = r.Why != ""; left {
			if err := t.reread(r); err != nil {
				return err
			}
		} else if err := t.row(
			`SELECT EXISTS (SELECT 1 FROM rereads) OR EXISTS (SELECT 1 FROM unread)`, nil, &left,
		); err != nil {
			return err
		}
		now := fmt.Sprintf("%d %s", max(asked, version), settings)
		if now == had {
			return nil
		}
		_, err := t.exec(`INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE
			SET value = excluded.value`, grouping, now)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("regroup by version %d: %w", version, err)
	}
	return left, nil
}

// repick is called when a letter moves to a new group. If an older grouping version made the
// letter's old group, repick copies the type that people picked for the old group to the new one.
// The old group keeps the pick, because its letters may move to several groups.
func (t *tx) repick(from, to int64, version int) error {
	_, err := t.exec(`INSERT INTO picks (grp, type, reason, by, at) SELECT $2, p.type, p.reason, p.by, p.at FROM picks p
		JOIN groups g ON g.id = p.grp WHERE p.grp = $1 AND g.version < $3 ON CONFLICT DO NOTHING`, from, to, version)
	return err
}
