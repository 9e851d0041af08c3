package store

import (
	"context"
	"fmt"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// sessionUse is the minimum time between two recorded uses of a session.
const sessionUse = time.Minute

// A session has ended if it was not used since the time "idle", or if it began before the time
// "oldest". A session has also ended if its start is in the future. In that case the clock was set
// back, and nobody knows how old the session is.
const (
	sessionLasts = `s.used_at >= $2 AND s.created_at BETWEEN $3 AND $4` // the method sessionArgs returns the arguments
	sessionStep  = time.Minute                                          // a clock that is set back by less than this ends no session
)

// sessionArgs returns the arguments for a query that contains sessionLasts. The first argument is
// the parameter key.
func (s *Store) sessionArgs(key any, idle, oldest time.Time) []any {
	return []any{key, idle.UnixMilli(), oldest.UnixMilli(), s.now().Add(sessionStep).UnixMilli()}
}

// StartSession records the session of a user who has just entered the password. The field Hash of
// the session is the hash of the cookie's value. StartSession also deletes sessions that have
// ended.
func (s *Store) StartSession(ctx context.Context, n deadletter.Session, idle, oldest time.Time) error {
	return s.tx(ctx, bulk, func(t *tx) error {
		if _, err := t.exec(`DELETE FROM sessions WHERE used_at < $1 OR created_at < $2`, idle.UnixMilli(), oldest.UnixMilli()); err != nil {
			return err
		}
		var id int64
		if err := t.row(`UPDATE users SET signed_in_at = $2 WHERE key = $1 RETURNING id`, []any{userKey(n.User), t.now}, &id); err != nil {
			return orNotFound("user "+deadletter.Visible(n.User), err)
		}
		if _, err := t.exec(`INSERT INTO sessions (hash, user, created_at, used_at, confirmed_at, address, agent) VALUES ($1, $2, $3, $3, $3, $4, $5)`, n.Hash[:], id, t.now, n.Address, n.Agent); err != nil {
			return err
		}
		return t.audit(deadletter.Once(deadletter.ActSignedIn, n.User, "", userTarget(n.User)))
	})
}

// SessionBy returns the session with the given hash and records that the session is used. If no
// session has that hash, or if the session has ended, the error wraps ErrNotFound.
func (s *Store) SessionBy(ctx context.Context, hash [32]byte, idle, oldest time.Time) (deadletter.Session, error) {
	list, err := s.sessions(ctx, `WHERE s.hash = $1 AND `+sessionLasts, s.sessionArgs(hash[:], idle, oldest)...)
	if err == nil && len(list) == 0 {
		err = deadletter.NoSuch("session")
	}
	if err != nil {
		return deadletter.Session{}, err
	}
	if s.now().Sub(list[0].UsedAt).Abs() < sessionUse {
		return list[0], nil
	}
	if err := s.tx(ctx, bulk, func(t *tx) error {
		_, err := t.exec(`UPDATE sessions SET used_at = $2 WHERE hash = $1`, hash[:], t.now)
		return err
	}); err != nil && ctx.Err() == nil {
		s.log.Warn("the use of a session was not recorded", "user", list[0].User, "err", err)
	}
	return list[0], ctx.Err()
}

// Sessions returns the sessions of a user, newest first.
func (s *Store) Sessions(ctx context.Context, user string, idle, oldest time.Time) ([]deadletter.Session, error) {
	return s.sessions(ctx, `WHERE u.key = $1 AND `+sessionLasts+` ORDER BY s.created_at DESC, s.hash`, s.sessionArgs(userKey(user), idle, oldest)...)
}

func (s *Store) sessions(ctx context.Context, where string, args ...any) (list []deadletter.Session, err error) {
	var n deadletter.Session
	var role, places string
	var hash []byte
	wanted := columns{
		{`u.name`, &n.User},
		{`u.role`, &role},
		{`u.reveal`, &n.Grant.Reveal},
		{`u.purge`, &n.Grant.Purge},
		{`u.places`, &places},
		{`s.hash`, &hash},
		{`s.created_at`, instant{&n.CreatedAt}},
		{`s.used_at`, instant{&n.UsedAt}},
		{`s.confirmed_at`, instant{&n.ConfirmedAt}},
		{`s.address`, &n.Address},
		{`s.agent`, &n.Agent},
	}
	rows, err := s.ask(ctx, `SELECT `+wanted.list()+` FROM sessions s JOIN users u ON u.id = s.user `+where, args...)
	if err == nil {
		err = wanted.scan(rows, func() (err error) {
			if err := grant(&n.Grant, role, places); err != nil {
				return err
			}
			copy(n.Hash[:], hash)
			list = append(list, n)
			return nil
		})
	}
	if err != nil {
		return nil, fmt.Errorf("sessions: %w", err)
	}
	return list, nil
}

// RenewSession records that a user entered the password again. The session gets a new secret.
// Somebody who has stolen the old secret therefore does not gain rights.
func (s *Store) RenewSession(ctx context.Context, hash, renewed [32]byte) error {
	return s.tx(ctx, bulk, func(t *tx) error {
		var user int64
		err := t.row(`UPDATE sessions SET hash = $2, confirmed_at = $3, used_at = $3 WHERE hash = $1 RETURNING user`, []any{hash[:], renewed[:], t.now}, &user)
		return orNotFound("session", err)
	})
}

// EndSession ends a session of a user. The error wraps ErrNotFound if the user has no such session.
func (s *Store) EndSession(ctx context.Context, user string, hash [32]byte) error {
	return s.tx(ctx, bulk, func(t *tx) error {
		var id int64
		if err := t.row(`DELETE FROM sessions WHERE hash = $1 AND user = (SELECT id FROM users WHERE key = $2) RETURNING user`, []any{hash[:], userKey(user)}, &id); err != nil {
			return orNotFound("session", err)
		}
		return t.audit(deadletter.Once(deadletter.ActSignedOut, user, "", userTarget(user)))
	})
}
