package store

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
)

// Broker contains the names of a broker in the configuration.
type Broker struct {
	Name string
	Same string // name of the first entry for the same broker and vhost; "" = its own name
}

// entryName returns the name of the first configuration entry for the broker and vhost that the
// given name stands for. It returns an unknown name unchanged.
func (s *Store) entryName(name string) string {
	for _, b := range s.brokers {
		if b.Name == name {
			return cmp.Or(b.Same, name)
		}
	}
	return name
}

// firstNamed is the beginning of the keys in the table meta for the first names of renamed brokers.
// The present name of the broker follows it.
const firstNamed = "first name of broker "

// loadFirstNames reads the names that renamed brokers had when the store first knew them.
func (s *Store) loadFirstNames(ctx context.Context) error {
	s.first = map[string]string{}
	rows, err := s.conn.QueryContext(ctx, `SELECT key, value FROM meta WHERE key LIKE $1`, firstNamed+"%")
	if err != nil {
		return err
	}
	return scan(rows, func() error {
		var key, first string
		err := rows.Scan(&key, &first)
		s.first[strings.TrimPrefix(key, firstNamed)] = first
		return err
	})
}

// FirstName returns the name under which the store first knew a broker. It is part of the keys of
// groups and annotations and of tokens, so a renamed broker keeps them. If another broker had the
// given name first, the result differs from that name, so that the two brokers share nothing.
func (s *Store) FirstName(broker string) string {
	first, ok := s.first[broker]
	if ok {
		return first
	}
	for first = broker; slices.Contains(slices.Collect(maps.Values(s.first)), first); {
		first += "\n"
	}
	return first
}
