package store

import (
	"context"
	"fmt"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Declare records objects that dlo declares on brokers. It also records the given act in the audit,
// unless the act has no kind. An object that is already recorded keeps its recorded time.
func (s *Store) Declare(ctx context.Context, things []deadletter.Declared, act deadletter.Act) error {
	err := s.tx(ctx, urgent, func(t *tx) error {
		for _, d := range things {
			if _, err := t.exec(`INSERT INTO declared (broker, vhost, kind, name, detail, sure, at, by)
				VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
				ON CONFLICT (broker, vhost, kind, name) DO UPDATE SET detail = excluded.detail, sure = excluded.sure`,
				d.Broker, d.VHost, string(d.Kind), d.Name, string(d.Detail), d.Sure, t.now, d.By); err != nil {
				return err
			}
		}
		return t.auditIf(act)
	})
	if err != nil {
		return fmt.Errorf("record what is declared: %w", err)
	}
	return nil
}

// Undeclare deletes the records of objects that dlo removed from brokers. It also records the given
// act in the audit, unless the act has no kind.
func (s *Store) Undeclare(ctx context.Context, ids []int64, act deadletter.Act) error {
	err := s.tx(ctx, urgent, func(t *tx) error {
		for _, id := range ids {
			if _, err := t.exec(`DELETE FROM declared WHERE id = $1`, id); err != nil {
				return err
			}
		}
		return t.auditIf(act)
	})
	if err != nil {
		return fmt.Errorf("record what was removed: %w", err)
	}
	return nil
}

// auditIf records an act in the audit. It does nothing if the act has no kind.
func (t *tx) auditIf(a deadletter.Act) error {
	if a.Kind == "" {
		return nil
	}
	return t.audit(a)
}

// Declared returns the objects that dlo declared on brokers and has not removed. They are sorted by
// broker, vhost, kind and name.
func (s *Store) Declared(ctx context.Context) (list []deadletter.Declared, err error) {
	var d deadletter.Declared
	var detail string
	wanted := columns{
		{`id`, &d.ID},
		{`broker`, &d.Broker},
		{`vhost`, &d.VHost},
		{`kind`, &d.Kind},
		{`name`, &d.Name},
		{`detail`, &detail},
		{`sure`, &d.Sure},
		{`at`, instant{&d.At}},
		{`by`, &d.By},
	}
	rows, err := s.ask(ctx, `SELECT `+wanted.list()+` FROM declared ORDER BY broker, vhost, kind, name`)
	if err == nil {
		err = wanted.scan(rows, func() error {
			d.Detail = []byte(detail)
			list = append(list, d)
			return nil
		})
	}
	if err != nil {
		return nil, fmt.Errorf("what is declared: %w", err)
	}
	return list, nil
}
