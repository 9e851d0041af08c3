package identity

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

const (
	// after the password was given, actions that need it again are permitted for this long
	confirmed = 15 * time.Minute
	// maximum number of passwords that are checked or hashed at the same time; each takes 19 MiB of
	// memory
	maxHashing = 2
	maxAgent   = 200 // number of bytes of a browser's User-Agent that are kept
)

// These are the default limits of sessions (OWASP ASVS 4.0.3, 3.3.2, level 2).
const (
	SessionIdle    = 30 * time.Minute
	SessionLongest = 12 * time.Hour
)

// AccountStore stores local users and their sessions.
type AccountStore interface {
	Users(ctx context.Context) ([]deadletter.User, error)
	Password(ctx context.Context, name string) (u deadletter.User, hash string, err error)
	AddUser(ctx context.Context, u deadletter.User, code [32]byte, until time.Time) error
	ResetUser(
		ctx context.Context, name string, code [32]byte, until time.Time, by string, allow func(deadletter.User) error,
	) (stored string, err error)
	RemoveUser(ctx context.Context, name, by string) error
	Invited(ctx context.Context, code [32]byte) (deadletter.User, error)
	AcceptInvitation(ctx context.Context, code [32]byte, hash string) (name string, err error)
	ChangePassword(ctx context.Context, session [32]byte, verified, hash string) error
	StartSession(ctx context.Context, n deadletter.Session, verified string, idle, oldest time.Time) error
	SessionBy(ctx context.Context, hash [32]byte, idle, oldest time.Time) (deadletter.Session, error)
	Sessions(ctx context.Context, user string, idle, oldest time.Time) ([]deadletter.Session, error)
	RenewSession(ctx context.Context, hash, renewed [32]byte, verified string) error
	EndSession(ctx context.Context, hash [32]byte) error
	Record(ctx context.Context, a deadletter.Act) error
}

// Accounts manages dlo's own users, with their passwords and sessions. Its methods are safe for
// concurrent use.
type Accounts struct {
	SessionIdle    time.Duration // a session has ended if it was not used for this long
	SessionLongest time.Duration // a session has ended if it began longer ago than this, even if it is in use

	store   AccountStore
	now     func() time.Time
	tries   throttle
	hashing chan struct{}
	// hash with which the password for an unknown name is compared, so that the check takes the
	// same time
	nobody string
}

// NewAccounts returns the accounts in a store, with the default limits of sessions. If the
// parameter "now" is nil, the accounts use time.Now.
func NewAccounts(store AccountStore, now func() time.Time) *Accounts {
	if now == nil {
		now = time.Now
	}
	return &Accounts{
		SessionIdle: SessionIdle, SessionLongest: SessionLongest, store: store, now: now,
		hashing: make(chan struct{}, maxHashing), nobody: hashPassword(deadletter.NewSecret()),
	}
}

// Browser describes the browser in which somebody signs in.
type Browser struct{ Address, Agent string }

// TooManyTriesError is the error of a sign-in after too many failed attempts. The field Again is
// the time at which the next attempt is possible.
type TooManyTriesError struct{ Again time.Time }

func (e TooManyTriesError) Error() string {
	return "too many attempts failed; try again at " + e.Again.UTC().Format("15:04 UTC")
}

func (TooManyTriesError) Unwrap() error { return deadletter.ErrTooMany }

// SignIn starts a session if the password is right, and returns the secret of the session's cookie.
// If name and password do not match, the error wraps deadletter.ErrSignIn, and the result
// "triesLeft" is the number of attempts that are left. The same happens if the password was changed
// or deleted while it was being checked. After too many failed attempts, the error is a
// TooManyTriesError.
func (a *Accounts) SignIn(
	ctx context.Context, name, password string, b Browser,
) (secret string, triesLeft int, err error) {
	u, verified, err := a.verify(ctx, name, password, b)
	if err == nil {
		secret, err = a.start(ctx, u.Name, verified, b)
	}
	if err != nil {
		triesLeft, _ = a.tries.attemptsLeft(name, b.Address, a.now())
		return "", triesLeft, err
	}
	return secret, 0, nil
}

// verify checks the password of a user. It takes the same time whether or not the user exists. It
// also returns the hash with which the password was compared. The check takes long, so the user may
// have another password by now, or somebody else may have the name. A caller that writes something
// after the check must therefore write it only if the user still has this hash. Every hash has a
// salt of its own, so no other user and no other password has the same hash.
func (a *Accounts) verify(
	ctx context.Context, name, password string, b Browser,
) (u deadletter.User, verified string, err error) {
	nextTry, ok := a.tries.takeAttempt(name, b.Address, a.now())
	if !ok {
		return deadletter.User{}, "", TooManyTriesError{nextTry}
	}
	u, hash, same, err := a.compare(ctx, name, password)
	if err != nil || same {
		a.tries.removeAttempt(name, b.Address, same)
		return u, hash, err
	}
	// A failed sign-in is recorded even if no user has the name, so that the response takes the
	// same time for known and unknown names. The record does not contain an unknown name, because
	// people sometimes type their password into the wrong field.
	act := deadletter.Act{Kind: deadletter.ActSignInFailed, Actor: deadletter.Unknown, Asked: 1}
	if u.Name != "" {
		act.Actor, act.Targets = u.Name, []deadletter.Target{{Kind: deadletter.TargetUser, Name: u.Name}}
	}
	if err := a.store.Record(ctx, act); err != nil {
		return deadletter.User{}, "", err
	}
	return deadletter.User{}, "", fmt.Errorf("%w: that name and password do not match", deadletter.ErrSignIn)
}

// compare reports whether the named user has the given password. It also returns the user, and the
// hash with which it compared the password. If the user does not exist or has no password, the
// returned user is empty.
func (a *Accounts) compare(
	ctx context.Context, name, password string,
) (u deadletter.User, hash string, same bool, err error) {
	u, hash, err = a.store.Password(ctx, name)
	if err != nil && !errors.Is(err, deadletter.ErrNotFound) {
		return deadletter.User{}, "", false, err
	}
	if err != nil || hash == "" {
		u, hash = deadletter.User{}, a.nobody
	}
	if err := a.limitHashing(
		ctx, func() { same = len(password) <= 4*maxPassword && samePassword(hash, password) },
	); err != nil {
		return deadletter.User{}, "", false, err
	}
	return u, hash, same && u.Name != "", nil
}

// limitHashing calls a function that needs much time or memory for a password. At most maxHashing
// such functions run at the same time.
func (a *Accounts) limitHashing(ctx context.Context, do func()) error {
	select {
	case a.hashing <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-a.hashing }()
	do()
	return nil
}

// newHash checks a user's new password and returns its hash. If the password is refused, the error
// wraps deadletter.ErrInvalid.
func (a *Accounts) newHash(ctx context.Context, password, name string) (hash string, err error) {
	var refused error
	err = a.limitHashing(ctx, func() {
		if refused = checkPassword(password, name); refused == nil {
			hash = hashPassword(password)
		}
	})
	return hash, cmp.Or(err, refused)
}

// start starts a session of a user who has just proved or set a password. The parameter "verified"
// is the hash of this password.
func (a *Accounts) start(ctx context.Context, name, verified string, b Browser) (secret string, err error) {
	secret = deadletter.NewSecret()
	idle, oldest := a.limits()
	err = a.store.StartSession(ctx, deadletter.Session{
		User:    name,
		Hash:    deadletter.SecretHash(secret),
		Address: b.Address,
		Agent:   deadletter.Visible(deadletter.Cut(b.Agent, maxAgent)),
	}, verified, idle, oldest)
	return secret, err
}

// limits returns two points in time. A session has ended if it was last used before the first one,
// or if it began before the second one.
func (a *Accounts) limits() (idle, oldest time.Time) {
	now := a.now()
	return now.Add(-a.SessionIdle), now.Add(-a.SessionLongest)
}

// Session returns the session that has the given secret in its cookie. If the session has ended,
// the error wraps deadletter.ErrNotFound.
func (a *Accounts) Session(ctx context.Context, secret string) (deadletter.Session, error) {
	idle, oldest := a.limits()
	return a.store.SessionBy(ctx, deadletter.SecretHash(secret), idle, oldest)
}

// staleWords is the text that people get if an action needs the password again.
const staleWords = "give your password again"

// principal returns the principal who makes the requests of a session. If the password was entered
// too long ago, the user must enter it again before some actions.
func (a *Accounts) principal(n deadletter.Session) known {
	again := ""
	// the absolute value is used because the clock may have been set back
	if a.now().Sub(n.ConfirmedAt).Abs() >= confirmed {
		again = staleWords
	}
	n.Grant.Again = again
	return known{deadletter.Principal{Name: n.User, Grants: []deadletter.Grant{n.Grant}}, again}
}

// Confirm checks the password of a session's user again. It returns a new secret for the session's
// cookie. If the session has ended, or ends while the password is being checked, the error wraps
// deadletter.ErrNotFound.
func (a *Accounts) Confirm(ctx context.Context, secret, password string, b Browser) (renewed string, err error) {
	n, err := a.Session(ctx, secret)
	if err != nil {
		return "", err
	}
	_, verified, err := a.verify(ctx, n.User, password, b)
	if err != nil {
		return "", err
	}
	renewed = deadletter.NewSecret()
	return renewed, a.store.RenewSession(ctx, n.Hash, deadletter.SecretHash(renewed), verified)
}

// SignOut ends a session for good. The session may already be too old to be used. If there is no
// such session, SignOut returns no error.
func (a *Accounts) SignOut(ctx context.Context, secret string) error {
	err := a.store.EndSession(ctx, deadletter.SecretHash(secret))
	if errors.Is(err, deadletter.ErrNotFound) {
		return nil
	}
	return err
}

// Sessions returns the sessions of a user, newest first.
func (a *Accounts) Sessions(ctx context.Context, user string) ([]deadletter.Session, error) {
	idle, oldest := a.limits()
	return a.store.Sessions(ctx, user, idle, oldest)
}

// End ends one session of a user. The parameter "shortName" is the value of Session.Short for this
// session.
func (a *Accounts) End(ctx context.Context, user, shortName string) error {
	list, err := a.Sessions(ctx, user)
	if err != nil {
		return err
	}
	for _, n := range list {
		if n.Short() == shortName {
			return a.store.EndSession(ctx, n.Hash)
		}
	}
	return deadletter.NoSuch("session")
}

// ChangePassword changes the password of the user who owns a session. It ends all sessions of the
// user and starts a new one. If the session has ended, or ends while the password is being checked,
// the error wraps deadletter.ErrNotFound.
func (a *Accounts) ChangePassword(
	ctx context.Context, secret, old, password string, b Browser,
) (renewed string, err error) {
	n, err := a.Session(ctx, secret)
	if err != nil {
		return "", err
	}
	_, verified, err := a.verify(ctx, n.User, old, b)
	if err != nil {
		return "", err
	}
	hash, err := a.newHash(ctx, password, n.User)
	if err != nil {
		return "", err
	}
	if err := a.store.ChangePassword(ctx, n.Hash, verified, hash); err != nil {
		return "", err
	}
	return a.start(ctx, n.User, hash, b)
}

// Users returns the local users, sorted by name.
func (a *Accounts) Users(ctx context.Context) ([]deadletter.User, error) { return a.store.Users(ctx) }

// User returns the user with the given name. Upper and lower case make no difference. If there is
// no such user, the error wraps deadletter.ErrNotFound.
func (a *Accounts) User(ctx context.Context, name string) (deadletter.User, error) {
	u, _, err := a.store.Password(ctx, name)
	return u, err
}

// Add adds a user. It returns the code of an invitation, with which the user can choose a password.
func (a *Accounts) Add(ctx context.Context, u deadletter.User) (code string, err error) {
	code = deadletter.NewSecret()
	return code, a.store.AddUser(ctx, u, deadletter.SecretHash(code), a.now().Add(deadletter.InvitationLasts))
}

// Reset first calls the function "allow" with a user. If "allow" returns an error, nothing changes.
// Otherwise Reset deletes the user's password and ends the user's sessions. It returns the name of
// the user as it is stored, and the code of an invitation. With this code, the user can choose a
// new password.
func (a *Accounts) Reset(
	ctx context.Context, name, by string, allow func(deadletter.User) error,
) (stored, code string, err error) {
	code = deadletter.NewSecret()
	stored, err = a.store.ResetUser(
		ctx, name, deadletter.SecretHash(code), a.now().Add(deadletter.InvitationLasts), by, allow,
	)
	return stored, code, err
}

// AnyUser can be passed to Reset as the function "allow". It returns no error for any user.
func AnyUser(deadletter.User) error { return nil }

// Remove removes a user and ends the user's sessions.
func (a *Accounts) Remove(ctx context.Context, name, by string) error {
	return a.store.RemoveUser(ctx, name, by)
}

// Invited returns the name of the user who was invited with a code. If the code is wrong, used or
// too old, the error wraps deadletter.ErrNotFound.
func (a *Accounts) Invited(ctx context.Context, code string) (name string, err error) {
	u, err := a.store.Invited(ctx, deadletter.SecretHash(code))
	return u.Name, err
}

// Accept sets the password of the user who was invited with a code, and starts a session.
func (a *Accounts) Accept(ctx context.Context, code, password string, b Browser) (secret string, err error) {
	name, err := a.Invited(ctx, code)
	if err != nil {
		return "", err
	}
	hash, err := a.newHash(ctx, password, name)
	if err != nil {
		return "", err
	}
	if name, err = a.store.AcceptInvitation(ctx, deadletter.SecretHash(code), hash); err != nil {
		return "", err
	}
	return a.start(ctx, name, hash, b)
}

// FirstUser is the name of the first user of an installation.
const FirstUser = "admin"

// FirstRun invites the first user and returns the code of the invitation. This user has all rights.
// If anybody already has a password, FirstRun invites nobody and returns "". If a user with fewer
// rights has the name of the first user, the invitation replaces that user.
func (a *Accounts) FirstRun(ctx context.Context) (code string, err error) {
	list, err := a.store.Users(ctx)
	if err != nil {
		return "", err
	}
	if slices.ContainsFunc(list, func(u deadletter.User) bool { return !u.Invited }) {
		return "", nil
	}
	first, err := deadletter.NewUser(FirstUser, deadletter.Local.Grants[0], deadletter.Service.Name)
	if err != nil {
		return "", err
	}
	u, err := a.User(ctx, FirstUser)
	if err == nil && u.Grant.Words() == first.Grant.Words() {
		_, code, err = a.Reset(ctx, u.Name, deadletter.Service.Name, AnyUser)
		return code, err
	}
	if err == nil {
		err = a.Remove(ctx, u.Name, deadletter.Service.Name)
	}
	if err != nil && !errors.Is(err, deadletter.ErrNotFound) {
		return "", err
	}
	return a.Add(ctx, first)
}

// Left returns how many attempts are left to sign in with a name from an address.
func (a *Accounts) Left(name, address string) int {
	n, _ := a.tries.attemptsLeft(name, address, a.now())
	return n
}
