package store

import (
	"context"
	"fmt"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

const maxSiblings = 20

// Siblings returns the letters of other queues that are copies of the message that a letter is of,
// newest first, at most maxSiblings: of a fan-out that died in several of its queues. Those that
// search does not see yet are not among them.
func (s *Store) Siblings(ctx context.Context, l *deadletter.Letter) ([]deadletter.Row, error) {
	key := l.SiblingKey()
	if key == "" {
		return nil, nil
	}
	serial, _, _ := l.ID.Split()
	rows, err := s.ask(ctx, `SELECT `+rowColumns+` FROM words CROSS JOIN letters l ON l.id = words.rowid WHERE words MATCH $1 AND l.id <> $2
		AND l.origin <> (SELECT own.origin FROM letters own WHERE own.id = $2) ORDER BY words.rowid DESC LIMIT $3`, fieldToken(deadletter.IndexSibling, key), serial, maxSiblings)
	if err != nil {
		return nil, fmt.Errorf("siblings of letter %s: %w", l.ID, err)
	}
	return s.rows(rows)
}
