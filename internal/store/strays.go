package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Strays returns the unfinished letters of brokers and vhosts that are not configured, sorted by
// name. If every known queue belongs to a configured vhost, Strays does not read the file.
func (s *Store) Strays(ctx context.Context, configured func(broker, vhost string) bool) ([]deadletter.Stray, error) {
	ids := s.names.originsWhere(func(p place) bool { return p.Queue != "" && !configured(p.Broker, p.VHost) })
	if len(ids) == 0 {
		return nil, nil
	}
	rows, err := s.ask(ctx, `SELECT origin, state, sum(n) FROM counters
		WHERE state IN ('scheduled', 'publishing', 'requeued', 'dead', 'held') AND n > 0 GROUP BY origin, state`)
	if err != nil {
		return nil, fmt.Errorf("letters of brokers that are not configured: %w", err)
	}
	found := map[[2]string]*deadletter.Stray{}
	err = scan(rows, func() error {
		var origin int64
		var state deadletter.State
		var n int
		if err := rows.Scan(&origin, &state, &n); err != nil || !slices.Contains(ids, any(origin)) {
			return err
		}
		p := s.names.origin(origin)
		one := found[[2]string{p.Broker, p.VHost}]
		if one == nil {
			one = &deadletter.Stray{Broker: p.Broker, VHost: p.VHost, Counts: map[deadletter.State]int{}}
			found[[2]string{p.Broker, p.VHost}] = one
		}
		one.Counts[state] += n
		return nil
	})
	var list []deadletter.Stray
	for _, one := range found {
		list = append(list, *one)
	}
	slices.SortFunc(list, func(a, b deadletter.Stray) int {
		return cmp.Or(cmp.Compare(a.Broker, b.Broker), cmp.Compare(a.VHost, b.VHost))
	})
	return list, err
}
