package store

import (
	"context"
	"fmt"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

const (
	peopleActs = 2000 // number of newest acts that are searched for names
	people     = 50
)

// People returns the names of people who acted recently, and of people to whom a group is or was
// assigned. The most frequent names come first.
func (s *Store) People(ctx context.Context) ([]string, error) {
	list, err := values[string](s.ask(ctx, `SELECT name FROM (
			SELECT owner AS name, count(*) AS n FROM groups WHERE owner <> '' GROUP BY owner
			UNION ALL SELECT is_now ->> 'owner', 1 FROM (SELECT is_now FROM decision_groups ORDER BY decision DESC
			LIMIT $1) WHERE is_now ->> 'owner' <> ''
			UNION ALL SELECT actor, 1 FROM (SELECT actor FROM events INDEXED BY events_audit WHERE letter IS NULL
			ORDER BY id DESC LIMIT $1) WHERE actor <> $2)
		GROUP BY name ORDER BY sum(n) DESC, name LIMIT $3`, peopleActs, deadletter.Service.Name, people))
	if err != nil {
		return nil, fmt.Errorf("people: %w", err)
	}
	return list, nil
}

// Targets returns at most "limit" targets of recent acts, newest first. It returns only targets
// whose name contains the given text.
func (s *Store) Targets(ctx context.Context, part string, limit int) ([]deadletter.Target, error) {
	rows, err := s.ask(ctx, `SELECT kind, name FROM (SELECT event, kind, name FROM event_targets ORDER BY event DESC
		LIMIT $1) WHERE name <> '' AND instr(lower(name), $2) > 0
		GROUP BY kind, name ORDER BY max(event) DESC LIMIT $3`, peopleActs, part, limit)
	if err != nil {
		return nil, fmt.Errorf("targets: %w", err)
	}
	return collect(rows, func(t *deadletter.Target) []any { return []any{&t.Kind, &t.Name} })
}
