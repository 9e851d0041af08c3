package identity_test

import (
	"context"
	"errors"
	"testing"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/identity"
	"github.com/deadletteroffice/dlo/internal/store"
	"github.com/deadletteroffice/dlo/internal/storetest"
	"github.com/google/go-cmp/cmp"
)

const (
	stolen = "correct horse battery"
	chosen = "four words make one"
	wanted = "walnut glacier trumpet saddle" // password that the thief tries to set
)

// busyStore is a store in which something happens once during a request: after the request has read
// the hash of a password, or after it has accepted an invitation.
type busyStore struct {
	identity.AccountStore
	afterPassword, afterAccept func()
}

func happen(what *func()) {
	if do := *what; do != nil {
		*what = nil
		do()
	}
}

func (s *busyStore) Password(ctx context.Context, name string) (deadletter.User, string, error) {
	u, hash, err := s.AccountStore.Password(ctx, name)
	happen(&s.afterPassword)
	return u, hash, err
}

func (s *busyStore) AcceptInvitation(ctx context.Context, code [32]byte, hash string) (string, error) {
	name, err := s.AccountStore.AcceptInvitation(ctx, code, hash)
	happen(&s.afterAccept)
	return name, err
}

// invited returns the accounts of a dlo with an invited user lena, and the code of the invitation.
func invited(t *testing.T) (s *busyStore, a *identity.Accounts, lena deadletter.User, code string) {
	t.Helper()
	file, err := store.Open(t.Context(), storetest.File(t), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	s = &busyStore{AccountStore: file}
	a = identity.NewAccounts(s, nil)
	lena, err = deadletter.NewUser("lena", deadletter.Grant{Role: deadletter.RoleAdmin}, "root")
	if err != nil {
		t.Fatal(err)
	}
	if code, err = a.Add(t.Context(), lena); err != nil {
		t.Fatal(err)
	}
	return s, a, lena, code
}

// TestAPasswordEndsDuringARequest covers a thief who knows the password of a user and has a session
// of the user. While dlo checks this password for a request of the thief, it becomes invalid, for
// example because an admin resets it. The request must give the thief no session and no password.
// The invitation that an admin has made for the user must stay valid.
func TestAPasswordEndsDuringARequest(t *testing.T) {
	t.Parallel()
	requests := map[string]struct {
		send func(a *identity.Accounts, session string) (secret string, err error)
		want error
	}{
		"sign-in": {func(a *identity.Accounts, _ string) (string, error) {
			secret, left, err := a.SignIn(t.Context(), "lena", stolen, identity.Browser{})
			if left != 5 {
				t.Errorf("%d attempts are left", left)
			}
			return secret, err
		}, deadletter.ErrSignIn},
		"new password": {func(a *identity.Accounts, session string) (string, error) {
			return a.ChangePassword(t.Context(), session, stolen, wanted, identity.Browser{})
		}, deadletter.ErrNotFound},
		"password again": {func(a *identity.Accounts, session string) (string, error) {
			return a.Confirm(t.Context(), session, stolen, identity.Browser{})
		}, deadletter.ErrNotFound},
	}
	for event, happens := range map[string]func(
		a *identity.Accounts, lena deadletter.User, own string,
	) (code string, err error){
		"an admin resets the password": func(a *identity.Accounts, _ deadletter.User, _ string) (string, error) {
			_, code, err := a.Reset(t.Context(), "lena", "root", identity.AnyUser)
			return code, err
		},
		"an admin gives the name to another user": func(
			a *identity.Accounts, lena deadletter.User, _ string,
		) (string, error) {
			if err := a.Remove(t.Context(), "lena", "root"); err != nil {
				return "", err
			}
			return a.Add(t.Context(), lena)
		},
		"the user changes the password": func(a *identity.Accounts, _ deadletter.User, own string) (string, error) {
			_, err := a.ChangePassword(t.Context(), own, stolen, chosen, identity.Browser{})
			return "", err
		},
	} {
		for request, c := range requests {
			t.Run(request+"; "+event, func(t *testing.T) {
				t.Parallel()
				s, a, lena, code := invited(t)
				own, err := a.Accept(t.Context(), code, stolen, identity.Browser{})
				if err != nil {
					t.Fatal(err)
				}
				session, _, err := a.SignIn(t.Context(), "lena", stolen, identity.Browser{})
				if err != nil {
					t.Fatal(err)
				}
				var before []deadletter.Session
				s.afterPassword = func() {
					if code, err = happens(a, lena, own); err != nil {
						t.Error(err)
					}
					if before, err = a.Sessions(t.Context(), "lena"); err != nil {
						t.Error(err)
					}
				}
				secret, err := c.send(a, session)
				if !errors.Is(err, c.want) {
					t.Errorf("%v, want %v", err, c.want)
				}
				for _, known := range []string{session, secret} {
					if n, err := a.Session(t.Context(), known); !errors.Is(err, deadletter.ErrNotFound) {
						t.Errorf("the thief has a session: %+v %v", n, err)
					}
				}
				after, err := a.Sessions(t.Context(), "lena")
				if diff := cmp.Diff(before, after); diff != "" || err != nil {
					t.Errorf("other sessions: %s %v", diff, err)
				}
				if code != "" {
					if _, err := a.Accept(t.Context(), code, chosen, identity.Browser{}); err != nil {
						t.Errorf("the invitation of the admin: %v", err)
					}
				}
				for password, want := range map[string]error{
					stolen: deadletter.ErrSignIn, wanted: deadletter.ErrSignIn, chosen: nil,
				} {
					if _, _, err := a.SignIn(t.Context(), "lena", password, identity.Browser{}); !errors.Is(err, want) {
						t.Errorf("%s: %v", password, err)
					}
				}
			})
		}
	}
}

// TestAResetAfterAnInvitationIsAccepted covers a user who sets a password with an invitation.
// Before the session of the user starts, somebody resets the password. The session must not start.
func TestAResetAfterAnInvitationIsAccepted(t *testing.T) {
	t.Parallel()
	s, a, _, code := invited(t)
	s.afterAccept = func() {
		if _, _, err := a.Reset(t.Context(), "lena", "root", identity.AnyUser); err != nil {
			t.Error(err)
		}
	}
	if _, err := a.Accept(t.Context(), code, chosen, identity.Browser{}); !errors.Is(err, deadletter.ErrSignIn) {
		t.Error(err)
	}
	if list, err := a.Sessions(t.Context(), "lena"); err != nil || len(list) > 0 {
		t.Errorf("%+v %v", list, err)
	}
}
