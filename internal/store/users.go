package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Users returns the local users, sorted by name.
func (s *Store) Users(ctx context.Context) ([]deadletter.User, error) {
	list, _, err := s.users(ctx, `ORDER BY key`)
	return list, err
}

// Password returns a local user and the hash of the user's password. The hash is "" until the user
// has chosen a password. Names that differ only in upper and lower case are the same name. The
// error wraps ErrNotFound if there is no such user.
func (s *Store) Password(ctx context.Context, name string) (deadletter.User, string, error) {
	list, hashes, err := s.users(ctx, `WHERE key = $1`, userKey(name))
	if err == nil && len(list) == 0 {
		err = deadletter.NoSuch("user")
	}
	if err != nil {
		return deadletter.User{}, "", err
	}
	return list[0], hashes[0], nil
}

func userKey(name string) string { return strings.ToLower(name) }

func (s *Store) users(
	ctx context.Context, where string, args ...any,
) (list []deadletter.User, hashes []string, err error) {
	return usersIn(
		func(query string, args ...any) (*sql.Rows, error) { return s.ask(ctx, query, args...) }, where, args...,
	)
}

func usersIn(
	ask func(query string, args ...any) (*sql.Rows, error), where string, args ...any,
) (list []deadletter.User, hashes []string, err error) {
	var u deadletter.User
	var role, places, hash string
	wanted := columns{
		{`name`, &u.Name},
		{`hash`, &hash},
		{`role`, &role},
		{`reveal`, &u.Grant.Reveal},
		{`purge`, &u.Grant.Purge},
		{`places`, &places},
		{`created_at`, instant{&u.CreatedAt}},
		{`created_by`, &u.CreatedBy},
		{`signed_in_at`, instant{&u.SignedInAt}},
	}
	rows, err := ask(`SELECT `+wanted.list()+` FROM users `+where, args...)
	if err == nil {
		err = wanted.scan(rows, func() (err error) {
			if err := grant(&u.Grant, role, places); err != nil {
				return err
			}
			u.Invited = hash == ""
			list, hashes = append(list, u), append(hashes, hash)
			return nil
		})
	}
	if err != nil {
		return nil, nil, fmt.Errorf("users: %w", err)
	}
	return list, hashes, nil
}

// AddUser adds a local user and an invitation. With the code of the invitation, the user can choose
// a password until the given time. The parameter "code" is the hash of the code. The error wraps
// ErrConflict if the name is taken.
func (s *Store) AddUser(ctx context.Context, u deadletter.User, code [32]byte, until time.Time) error {
	return s.tx(ctx, bulk, func(t *tx) error {
		var id int64
		err := t.row(`INSERT INTO users (name, key, hash, role, reveal, purge, created_at, created_by, places)
			VALUES ($1, $2, '', $3, $4, $5, $6, $7, $8) ON CONFLICT (key) DO NOTHING RETURNING id`,
			[]any{
				u.Name, userKey(u.Name), u.Grant.Role.String(), u.Grant.Reveal, u.Grant.Purge, t.now, u.CreatedBy,
				placesText(u.Grant.Places),
			}, &id)
		if errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf(
				"%w: there is a user %s already; a new link (dlo user reset) lets that user choose a new password",
				deadletter.ErrConflict, u.Name,
			)
		}
		if err == nil {
			err = t.invite(id, code, until)
		}
		if err != nil {
			return err
		}
		return t.audit(deadletter.Once(deadletter.ActUserAdded, u.CreatedBy, u.Grant.Words(), userTarget(u.Name)))
	})
}

// ResetUser deletes a user's password and ends the user's sessions. It also invites the user to
// choose a new password. It returns the name of the user as it is stored. The error wraps
// ErrNotFound if there is no such user.
//
// ResetUser first calls the function "allow" with the user. If "allow" returns an error, nothing
// changes. It is not enough that the caller checks the user earlier, because somebody else may have
// got the name after that.
func (s *Store) ResetUser(
	ctx context.Context, name string, code [32]byte, until time.Time, by string, allow func(deadletter.User) error,
) (stored string, err error) {
	err = s.tx(ctx, bulk, func(t *tx) error {
		list, _, err := usersIn(t.query, `WHERE key = $1`, userKey(name))
		if err != nil {
			return err
		}
		if len(list) == 0 {
			return deadletter.NoSuch("user %s", deadletter.Visible(deadletter.Cut(name, 60)))
		}
		if err := allow(list[0]); err != nil {
			return err
		}
		stored = list[0].Name
		var id int64
		if err := t.row(
			`UPDATE users SET hash = '' WHERE key = $1 RETURNING id`, []any{userKey(name)}, &id,
		); err != nil {
			return err
		}
		if err := errors.Join(t.endAccess(id), t.invite(id, code, until)); err != nil {
			return err
		}
		return t.audit(deadletter.Once(deadletter.ActUserReset, by, "", userTarget(stored)))
	})
	return stored, err
}

// RemoveUser removes a user and ends the user's sessions. The error wraps ErrNotFound if there is
// no such user.
func (s *Store) RemoveUser(ctx context.Context, name, by string) error {
	return s.tx(ctx, bulk, func(t *tx) error {
		var id int64
		if err := t.row(
			`DELETE FROM users WHERE key = $1 RETURNING id, name`, []any{userKey(name)}, &id, &name,
		); err != nil {
			return orNotFound("user "+deadletter.Visible(deadletter.Cut(name, 60)), err)
		}
		if err := t.endAccess(id); err != nil {
			return err
		}
		// a later user with the same name is somebody else
		if _, err := t.exec(`DELETE FROM views WHERE owner = $1`, name); err != nil {
			return err
		}
		return t.audit(deadletter.Once(deadletter.ActUserRemoved, by, "", userTarget(name)))
	})
}

// endAccess ends the sessions of a user and withdraws the user's invitations.
func (t *tx) endAccess(user int64) error {
	for _, text := range []string{`DELETE FROM sessions WHERE user = $1`, `DELETE FROM invitations WHERE user = $1`} {
		if _, err := t.exec(text, user); err != nil {
			return err
		}
	}
	return nil
}

func (t *tx) invite(user int64, code [32]byte, until time.Time) error {
	_, err := t.exec(`INSERT INTO invitations (hash, user, expires_at)
		VALUES ($1, $2, $3)`, code[:], user, until.UnixMilli())
	return err
}

// Invited returns the user who may choose a password with a code. The error wraps ErrNotFound if
// the code is wrong, used or too old.
func (s *Store) Invited(ctx context.Context, code [32]byte) (deadletter.User, error) {
	list, _, err := s.users(ctx, `WHERE id = (SELECT user FROM invitations WHERE hash = $1
		AND expires_at > $2)`, code[:], s.now().UnixMilli())
	if err == nil && len(list) == 0 {
		err = deadletter.NoSuch("invitation")
	}
	if err != nil {
		return deadletter.User{}, err
	}
	return list[0], nil
}

// AcceptInvitation sets the password of the user who was invited with a code. The code then becomes
// invalid, and all sessions of the user end. The error wraps ErrNotFound if the code is wrong, used
// or too old.
func (s *Store) AcceptInvitation(ctx context.Context, code [32]byte, hash string) (name string, err error) {
	err = s.tx(ctx, bulk, func(t *tx) error {
		var id int64
		if err := t.row(`DELETE FROM invitations WHERE hash = $1 AND expires_at > $2
			RETURNING user`, []any{code[:], t.now}, &id); err != nil {
			return orNotFound("invitation", err)
		}
		if err := t.row(`UPDATE users SET hash = $2 WHERE id = $1 RETURNING name`, []any{id, hash}, &name); err != nil {
			return err
		}
		if err := t.endAccess(id); err != nil {
			return err
		}
		return t.audit(deadletter.Once(deadletter.ActPasswordSet, name, "", userTarget(name)))
	})
	return name, err
}

// ChangePassword sets the password of the user who owns a session. All sessions of the user end.
// The parameter "verified" is the hash of the password that the user has just entered. If the
// session has ended or the user no longer has this password, nothing changes, and the error wraps
// ErrNotFound.
func (s *Store) ChangePassword(ctx context.Context, session [32]byte, verified, hash string) error {
	return s.tx(ctx, bulk, func(t *tx) error {
		var id int64
		var name string
		if err := t.row(`UPDATE users SET hash = $3 WHERE id = (SELECT user FROM sessions WHERE hash = $1) AND hash = $2
			RETURNING id, name`, []any{session[:], verified, hash}, &id, &name); err != nil {
			return orNotFound("session", err)
		}
		if err := t.endAccess(id); err != nil {
			return err
		}
		return t.audit(deadletter.Once(deadletter.ActPasswordSet, name, "", userTarget(name)))
	})
}

func userTarget(name string) deadletter.Target {
	return deadletter.Target{Kind: deadletter.TargetUser, Name: name}
}
