package store

import (
	"context"
	"fmt"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

const maxSiblings = 20

// Siblings returns the letters in other queues that are copies of a letter's message. Such copies
// exist if a message was sent to several queues and died in more than one of them. Siblings returns
// up to maxSiblings letters, newest first. Letters that are not indexed yet are missing.
func (s *Store) Siblings(ctx context.Context, l *deadletter.Letter) ([]deadletter.Row, error) {
	key := l.SiblingKey()
	if key == "" {
		return nil, nil
	}
	serial, _, _ := l.ID.Split()
	rows, err := s.ask(ctx, `SELECT `+rowColumns+` FROM words CROSS JOIN letters l ON l.id = words.rowid
		WHERE words MATCH $1 AND l.id <> $2
		AND l.origin <> (SELECT own.origin FROM letters own WHERE own.id = $2) ORDER BY words.rowid DESC
		LIMIT $3`, fieldToken(deadletter.IndexSibling, key), serial, maxSiblings)
	if err != nil {
		return nil, fmt.Errorf("siblings of letter %s: %w", l.ID, err)
	}
	return s.rows(ctx, rows)
}
