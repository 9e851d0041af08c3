package store

import (
	"context"
	"fmt"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// key in the table meta for the newest grouping version for which all letters were to be read again
const grouping = "grouping"

// Regroup compares the version of each group with the given grouping version. If any group has an
// older version, Regroup requests that the letters of all groups be read again in the background.
// It reports whether letters may still have to be read. The request is made once per version and
// survives a crash.
func (s *Store) Regroup(ctx context.Context, version int) (bool, error) {
	left := false
	err := s.tx(ctx, bulk, func(t *tx) error {
		var asked, older bool
		if err := t.row(`SELECT EXISTS (SELECT 1 FROM meta WHERE key = $1 AND CAST(value AS INTEGER) >= $2), EXISTS
			(SELECT 1 FROM groups WHERE version < $2)`, []any{grouping, version}, &asked, &older); err != nil {
			return err
		}
		if asked {
			return t.row(`SELECT EXISTS (SELECT 1 FROM rereads) OR EXISTS (SELECT 1 FROM unread)`, nil, &left)
		}
		if left = older; older {
			if err := t.reread(deadletter.Reread{Why: fmt.Sprintf("grouping version %d", version)}); err != nil {
				return err
			}
		}
		_, err := t.exec(`INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE
			SET value = excluded.value`, grouping, fmt.Sprint(version))
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
