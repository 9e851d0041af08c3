package web_test

import (
	"context"
	"errors"
	"net/url"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/identity"
	"github.com/deadletteroffice/dlo/internal/store"
)

// TestInvitations checks the links with which people choose a password.
func TestInvitations(t *testing.T) {
	t.Parallel()
	g := openGuests(t)
	h := g.house
	bearer := bearerOf(t, h, "admin")
	var i api.Invitation
	h.postJSON("/api/v1/users", `{"name":"Łucja 樹","role":"reader"}`, "Authorization", bearer).want(t, 201).json(t, &i)
	h.postJSON("/api/v1/users", `{"name":"łucja 樹","role":"reader"}`, "Authorization", bearer).want(t, 409)
	for _, wrong := range []string{
		`{"name":"dlo","role":"reader"}`, `{"name":"token:x","role":"reader"}`, `{"name":" a","role":"reader"}`,
		`{"name":"a\u202e","role":"reader"}`, `{"name":"a","role":"none"}`,
	} {
		h.postJSON("/api/v1/users", wrong, "Authorization", bearer).want(t, 400)
	}
	link, err := url.Parse(i.Link)
	if err != nil || link.Host != "dlo.example" {
		t.Fatal(i.Link, err)
	}
	code := link.Query().Get("code")
	g.ask("GET", link.RequestURI(), nil).want(t, 200, "Łucja 樹")
	form := url.Values{"code": {code}, "new": {"short"}, "repeated": {"short"}}
	g.ask("POST", "/welcome", form).want(t, 400, "12 to 128 characters")
	form.Set("new", passphrase)
	g.ask("POST", "/welcome", form).want(t, 400, "The two passwords differ.")
	form.Set("repeated", passphrase)
	g.ask("POST", "/welcome", form).want(t, 303).redirectsTo(t, "/")
	g.ask("GET", "/account", nil).want(t, 200, "Łucja 樹")
	g.ask("POST", "/welcome", form).want(t, 404, "This link is not valid")
	g.ask("GET", "/welcome?code=dlo_wrong", nil).want(t, 404, "This link is not valid")
	g.ask("GET", "/welcome", nil).want(t, 404)

	h.postJSON(
		"/api/v1/users/"+url.PathEscape("Łucja 樹")+"/reset", ``, "Authorization", bearer,
	).want(t, 200).json(t, &i)
	g.ask("GET", "/account", nil).want(t, 303) // the session has ended
	g.signIn("Łucja 樹", passphrase).want(t, 401)
	g.late.Store(int64(73 * time.Hour))
	link, _ = url.Parse(i.Link)
	g.ask("GET", link.RequestURI(), nil).want(t, 404)
	r := request("DELETE", "/api/v1/users/"+url.PathEscape("Łucja 樹"), "")
	r.Header.Set("Authorization", bearer)
	h.do(r).want(t, 204)
	h.do(r).want(t, 404)
}

// bearerOf returns the Authorization header for a new token with the given role.
func bearerOf(t *testing.T, h *house, role string) string {
	t.Helper()
	g, err := deadletter.NewGrant(role, false, false, deadletter.Places{})
	if err != nil {
		t.Fatal(err)
	}
	n, err := deadletter.NewAPIToken("test", g, time.Time{}, start)
	if err != nil {
		t.Fatal(err)
	}
	secret := deadletter.NewSecret()
	if _, err := h.store.AddToken(t.Context(), n, deadletter.SecretHash(secret)); err != nil {
		t.Fatal(err)
	}
	return "Bearer " + secret
}

// TestAPersonIsRemovedWhileTheirOperationRuns checks that the next request of a removed person is
// refused. Their operation must run to its end. The operation and the audit must still name them.
func TestAPersonIsRemovedWhileTheirOperationRuns(t *testing.T) {
	t.Parallel()
	g := openGuests(t)
	ids := g.receive("sms", 3, "x")
	g.signIn("lena", passphrase)
	g.ask("POST", "/operations", url.Values{
		"action": {"discard"},
		"id":     {string(ids[0]), string(ids[1]), string(ids[2])},
		"key":    {"k"},
	}).want(t, 303).redirectsTo(t, "/operations/O-1")
	bearer := bearerOf(t, g.house, "admin")
	r := request("DELETE", "/api/v1/users/lena", "")
	r.Header.Set("Authorization", bearer)
	g.do(r).want(t, 204)
	g.ask("GET", "/operations/O-1", nil).want(t, 303)
	g.ask("POST", "/operations/O-1/cancel", nil).want(t, 401)
	g.signIn("lena", passphrase).want(t, 401)
	g.advance()
	r = request("GET", "/api/v1/operations/O-1", "")
	r.Header.Set("Authorization", bearer)
	g.do(r).want(t, 200, `"by":"lena"`, `"finished_at"`, `"done":3`)
	g.signIn("root", passphrase)
	g.ask("GET", "/audit?operation=O-1", nil).want(t, 200, "lena")
}

// TestNobodyGivesMoreThanTheyHave checks invitations by an admin who lacks the right to purge or
// the right to reveal. The admin must not be able to invite a user who has the right that the admin
// lacks. TestPurgeAndRevealAreApart checks the same for tokens.
func TestNobodyGivesMoreThanTheyHave(t *testing.T) {
	t.Parallel()
	g := openGuests(t)
	bearer := bearerOf(t, g.house, "admin")
	g.postJSON(
		"/api/v1/users", `{"name":"eve","role":"reader","reveal":true}`, "Authorization", bearer,
	).want(t, 403, "reveal: true")
	g.postJSON(
		"/api/v1/users", `{"name":"eve","role":"operator","purge":true}`, "Authorization", bearer,
	).want(t, 403, "purge: true")
	g.postJSON("/api/v1/users/lena/reset", ``, "Authorization", bearer).want(t, 403)
	g.postJSON("/api/v1/users/LENA/reset", ``, "Authorization", bearer).want(t, 403)
}

// renewedStore is a store for a test of password resets. Just before a reset, it removes the user
// mia, and adds another user with this name and more rights.
type renewedStore struct{ *store.Store }

func (s renewedStore) ResetUser(
	ctx context.Context, name string, code [32]byte, until time.Time, by string, allow func(deadletter.User) error,
) (string, error) {
	u, err := deadletter.NewUser("mia", deadletter.Grant{Role: deadletter.RoleReader, Reveal: true}, "test")
	if err := errors.Join(err, s.RemoveUser(ctx, "mia", "test"), s.AddUser(ctx, u, [32]byte{1}, start)); err != nil {
		return "", err
	}
	return s.Store.ResetUser(ctx, name, code, until, by, allow)
}

// TestAUserGetsMoreRightsDuringAReset covers an admin who resets the password of a user. In the
// middle of the reset, somebody gives the user more rights than the admin has. The admin must not
// get a sign-in link for this user, because the link would give the admin these rights.
func TestAUserGetsMoreRightsDuringAReset(t *testing.T) {
	t.Parallel()
	g := openGuests(t)
	bearer := bearerOf(t, g.house, "admin")
	g.postJSON("/api/v1/users", `{"name":"mia","role":"reader"}`, "Authorization", bearer).want(t, 201)
	g.postJSON("/api/v1/users/Mia/reset", ``, "Authorization", bearer).want(t, 200, `"name":"mia"`)
	g.Users = identity.NewAccounts(renewedStore{g.store}, g.Now)
	g.postJSON("/api/v1/users/mia/reset", ``, "Authorization", bearer).want(t, 403, "reveal: true")
}
