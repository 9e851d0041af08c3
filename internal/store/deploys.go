package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Deploy records that a version of a service was deployed. A record of the same version within a
// minute of an earlier one does not count again.
func (s *Store) Deploy(ctx context.Context, d deadletter.Deploy) (deadletter.Deploy, error) {
	err := s.tx(ctx, urgent, func(t *tx) error {
		if d.At.IsZero() {
			d.At = time.UnixMilli(t.now)
		}
		d.At = d.At.UTC().Truncate(time.Millisecond)
		at := d.At.UnixMilli()
		err := t.row(`SELECT id FROM deploys WHERE service = $1 AND version = $2 AND at BETWEEN $3
			AND $4`, []any{
			d.Service, d.Version, at - time.Minute.Milliseconds(), at + time.Minute.Milliseconds(),
		}, &d.ID)
		if err == nil {
			return nil
		}
		if !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if err := t.row(`INSERT INTO deploys (at, service, version, link, by) VALUES ($1, $2, $3, $4, $5)
			RETURNING id`, []any{at, d.Service, d.Version, d.Link, d.By}, &d.ID); err != nil {
			return err
		}
		what := d.Service + " " + d.Version
		return t.audit(deadletter.Once(deadletter.ActDeploy, d.By, d.Link, deadletter.Target{
			Kind: deadletter.TargetDeploy,
			Name: what,
		}))
	})
	return d, err
}

// Deploys returns up to n deploys between two times, newest first.
func (s *Store) Deploys(ctx context.Context, from, to time.Time, n int) ([]deadletter.Deploy, error) {
	return deploys(s.ask(ctx, `SELECT id, at, service, version, link, by FROM deploys WHERE at >= $1 AND at < $2
		ORDER BY at DESC, id DESC LIMIT $3`, from.UnixMilli(), to.UnixMilli(), n))
}

// DeployAfter returns the first deploy after a given time. It ignores deploys in the future. It
// returns nil if there is no such deploy.
func (s *Store) DeployAfter(ctx context.Context, after time.Time) (*deadletter.Deploy, error) {
	return firstDeploy(s.ask(ctx, `SELECT id, at, service, version, link, by FROM deploys WHERE at > $1 AND at <= $2
		ORDER BY at, id LIMIT 1`, after.UnixMilli(), s.now().UnixMilli()))
}

// DeployEnding finds the deploy that may have ended the failure of a group. This is the first
// deploy after the group's last death. If the group was already quiet at the time of this deploy,
// the deploy did not end the failure, and DeployEnding returns nil. It also returns nil if there is
// no deploy after the last death.
func (s *Store) DeployEnding(
	ctx context.Context, group deadletter.GroupID, last time.Time,
) (*deadletter.Deploy, error) {
	return firstDeploy(s.ask(ctx, fmt.Sprintf(`SELECT d.id, d.at, d.service, d.version, d.link, d.by FROM deploys d
		JOIN groups g ON g.id = $1
		WHERE d.at > $2 AND d.at <= $3 AND $2 >= d.at - max(%d, %d * g.gap) ORDER BY d.at, d.id
		LIMIT 1`, deadletter.FailingFor.Milliseconds(), deadletter.FailingGaps),
		int64(group), last.UnixMilli(), s.now().UnixMilli()))
}

// firstDeploy returns the first deploy of a query, or nil.
func firstDeploy(rows *sql.Rows, err error) (*deadletter.Deploy, error) {
	list, err := deploys(rows, err)
	if len(list) == 0 {
		return nil, err
	}
	return &list[0], err
}

// deploys returns the deploys of a query.
func deploys(rows *sql.Rows, err error) ([]deadletter.Deploy, error) {
	if err != nil {
		return nil, fmt.Errorf("deploys: %w", err)
	}
	var list []deadletter.Deploy
	err = scan(rows, func() error {
		var d deadletter.Deploy
		var at int64
		err := rows.Scan(&d.ID, &at, &d.Service, &d.Version, &d.Link, &d.By)
		d.At = time.UnixMilli(at).UTC()
		list = append(list, d)
		return err
	})
	return list, err
}
