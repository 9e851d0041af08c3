package store

import (
	"context"
	"fmt"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

const grouping = "grouping" // key in meta: the version of the grouping that all letters were asked to be read by

// Regroup has all letters read again, in the background, when some are in groups that were found by
// an older version of the grouping than version; it says whether such letters may be left. It asks
// once for each version: what it asked for survives a crash.
func (s *Store) Regroup(ctx context.Context, version int) (bool, error) {
	left := false
	err := s.tx(ctx, bulk, func(t *tx) error {
		var asked, older bool
		if err := t.row(`SELECT EXISTS (SELECT 1 FROM meta WHERE key = $1 AND CAST(value AS INTEGER) >= $2), EXISTS (SELECT 1 FROM groups WHERE version < $2)`, []any{grouping, version}, &asked, &older); err != nil {
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
		_, err := t.exec(`INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value`, grouping, fmt.Sprint(version))
		return err
	})
	if err != nil {
		return false, fmt.Errorf("regroup by version %d: %w", version, err)
	}
	return left, nil
}

// repick takes to the group that a letter is in now what people said of the one that an older
// version of the grouping had it in: which type its letters are. It is copied, as the letters of
// one group may come to be in several.
func (t *tx) repick(from, to int64, version int) error {
	_, err := t.exec(`INSERT INTO picks (grp, type, reason, by, at) SELECT $2, p.type, p.reason, p.by, p.at FROM picks p JOIN groups g ON g.id = p.grp WHERE p.grp = $1 AND g.version < $3 ON CONFLICT DO NOTHING`, from, to, version)
	return err
}
