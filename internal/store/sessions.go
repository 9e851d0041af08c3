package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// sessionUse is the minimum time between two recorded uses of a session.
const sessionUse = time.Minute

// sessionStep is the time by which the clock can be set back without ending sessions.
const sessionStep = time.Minute

// hasEnded reports whether a session has ended. The parameters "idle" and "oldest" are times. A
// session has ended if it was last used before "idle", or if it began before "oldest". The store
// records when the session began, when it was last used, and when the password was last entered. A
// session has also ended if one of these times is in the future. In that case the clock was set
// back, and nobody knows how long ago this was.
func (s *Store) hasEnded(n deadletter.Session, idle, oldest time.Time) bool {
	latest := s.now().Add(sessionStep)
	return n.UsedAt.Before(idle) || n.CreatedAt.Before(oldest) || n.CreatedAt.After(latest) || n.UsedAt.After(latest) ||
		n.ConfirmedAt.After(latest)
}

// StartSession records the session of a user who has just entered the password. The field Hash of
// the session is the hash of the cookie's value. The parameter "verified" is the hash of the
// password. If the user no longer has this password, the error wraps ErrSignIn. StartSession also
// deletes sessions that have ended.
func (s *Store) StartSession(ctx context.Context, n deadletter.Session, verified string, idle, oldest time.Time) error {
	return s.tx(ctx, bulk, func(t *tx) error {
		latest := t.now + sessionStep.Milliseconds()
		if _, err := t.exec(`DELETE FROM sessions WHERE used_at < $1 OR created_at < $2 OR created_at > $3
			OR used_at > $3 OR confirmed_at > $3`, idle.UnixMilli(), oldest.UnixMilli(), latest); err != nil {
			return err
		}
		var id int64
		err := t.row(`UPDATE users SET signed_in_at = $3 WHERE key = $1 AND hash = $2
			RETURNING id`, []any{userKey(n.User), verified, t.now}, &id)
		if errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf(
				"%w: the password of %s is no longer valid", deadletter.ErrSignIn, deadletter.Visible(n.User),
			)
		}
		if err != nil {
			return err
		}
		if _, err := t.exec(`INSERT INTO sessions (hash, user, created_at, used_at, confirmed_at, address, agent)
			VALUES ($1, $2, $3, $3, $3, $4, $5)`, n.Hash[:], id, t.now, n.Address, n.Agent); err != nil {
			return err
		}
		return t.audit(deadletter.Once(deadletter.ActSignedIn, n.User, "", userTarget(n.User)))
	})
}

// SessionBy returns the session with the given hash and records that the session is used. If no
// session has that hash, or if the session has ended, the error wraps ErrNotFound. SessionBy
// deletes a session that has ended, so that a later change of the clock cannot make it valid again.
func (s *Store) SessionBy(ctx context.Context, hash [32]byte, idle, oldest time.Time) (deadletter.Session, error) {
	list, err := s.sessions(ctx, `WHERE s.hash = $1`, hash[:])
	if err != nil {
		return deadletter.Session{}, err
	}
	if len(list) == 0 {
		return deadletter.Session{}, deadletter.NoSuch("session")
	}
	if s.hasEnded(list[0], idle, oldest) {
		if err := s.tx(ctx, bulk, func(t *tx) error {
			_, err := t.exec(`DELETE FROM sessions WHERE hash = $1`, hash[:])
			return err
		}); err != nil && ctx.Err() == nil {
			s.log.Warn("a session that has ended was not deleted", "user", list[0].User, "err", err)
		}
		return deadletter.Session{}, deadletter.NoSuch("session")
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
	list, err := s.sessions(ctx, `WHERE u.key = $1 ORDER BY s.created_at DESC, s.hash`, userKey(user))
	return slices.DeleteFunc(list, func(n deadletter.Session) bool { return s.hasEnded(n, idle, oldest) }), err
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
// Somebody who has stolen the old secret therefore does not gain rights. The parameter "verified"
// is the hash of the password. If the session has ended or the user no longer has this password,
// the error wraps ErrNotFound.
func (s *Store) RenewSession(ctx context.Context, hash, renewed [32]byte, verified string) error {
	return s.tx(ctx, bulk, func(t *tx) error {
		var user int64
		err := t.row(`UPDATE sessions SET hash = $2, confirmed_at = $3, used_at = $3 WHERE hash = $1 AND user =
			(SELECT id FROM users WHERE hash = $4) RETURNING user`, []any{hash[:], renewed[:], t.now, verified}, &user)
		return orNotFound("session", err)
	})
}

// EndSession ends a session. It also deletes a session that has already ended. The error wraps
// ErrNotFound if there is no such session.
func (s *Store) EndSession(ctx context.Context, hash [32]byte) error {
	return s.tx(ctx, bulk, func(t *tx) error {
		var id int64
		var user string
		if err := t.row(`DELETE FROM sessions WHERE hash = $1 RETURNING user`, []any{hash[:]}, &id); err != nil {
			return orNotFound("session", err)
		}
		if err := t.row(`SELECT name FROM users WHERE id = $1`, []any{id}, &user); err != nil {
			return err
		}
		return t.audit(deadletter.Once(deadletter.ActSignedOut, user, "", userTarget(user)))
	})
}
