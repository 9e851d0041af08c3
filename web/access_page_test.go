package web_test

import (
	"html"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// TestUsersOnThePage invites a user on the page "Users and tokens", makes a new link for the user,
// and removes the user.
func TestUsersOnThePage(t *testing.T) {
	t.Parallel()
	g := openGuests(t)
	g.signIn("lena", passphrase)
	g.ask("GET", "/access", nil).want(t, 403)
	g.ask("POST", "/access/users", url.Values{"name": {"mia"}, "role": {"admin"}}).want(t, 403)
	g.signIn("root", passphrase)
	g.ask("GET", "/account", nil).want(t, 200, `href="/access"`)
	g.ask("GET", "/palette?q=tokens", nil).want(t, 200, `"link":"/access"`)
	g.ask("GET", "/access", nil).want(t, 200, "lena", "operator, reveal, purge")
	asked := url.Values{"name": {" mia "}, "role": {"operator"}, "queues": {"orders.* billing"}, "return": {"/access"}}
	link := secretOn(t, g.ask("POST", "/access/users", asked).want(t, 200, "A link for mia"))
	again := g.ask("POST", "/access/users", asked).want(
		t, 409, "role=\"alert\"", `value="mia"`, `value="orders.* billing"`,
	)
	if strings.Contains(again.text, "A link for") {
		t.Error("a refused form shows a link")
	}
	g.ask("POST", "/access/users", url.Values{
		"name": {"token:x"},
		"role": {"viewer"},
	}).want(t, 400, "user&#39;s name has 1 to 64")
	g.accept(t, link)
	g.ask("GET", "/account", nil).want(t, 200, "operator, queues orders.* billing")
	g.ask("GET", "/access", nil).want(t, 403)

	g.signIn("root", passphrase)
	link = secretOn(
		t,
		g.ask(
			"POST", "/access/users/reset", url.Values{"name": {"mia"}},
		).want(t, 200, "A link for mia", "no password yet"),
	)
	g.signIn("mia", passphrase).want(t, 401)
	g.accept(t, link)
	g.signIn("root", passphrase)
	g.ask("POST", "/access/users/reset", url.Values{"name": {"nobody"}}).want(t, 404)
	g.ask("POST", "/access/users/remove", url.Values{"name": {"mia"}}).want(t, 303).redirectsTo(t, "/access")
	if page := g.ask("GET", "/access", nil).want(t, 200); strings.Contains(page.text, "mia") {
		t.Error("a removed user is listed")
	}
	g.signIn("mia", passphrase).want(t, 401)
	g.signIn("root", passphrase)
	g.ask("GET", "/audit", nil).want(t, 200, "user added", "user reset", "user removed", "mia")
}

// TestTokensOnThePage adds a token on the page "Users and tokens", uses it, and revokes it.
func TestTokensOnThePage(t *testing.T) {
	t.Parallel()
	g := openGuests(t)
	g.signIn("root", passphrase)
	g.ask("POST", "/access/tokens", url.Values{
		"name": {"c i"},
		"role": {"viewer"},
		"days": {"30"},
	}).want(t, 400, "name of a token has", `value="c i"`)
	g.ask("POST", "/access/tokens", url.Values{
		"name": {"ci"},
		"role": {"viewer"},
		"days": {"soon"},
	}).want(t, 400, "days is a number")
	page := g.ask("POST", "/access/tokens", url.Values{
		"name": {"ci"},
		"role": {"viewer"},
		"days": {"30"},
	}).want(t, 200, "The token ci")
	secret := secretOn(t, page)
	if g.withToken(secret).StatusCode != 200 {
		t.Error("the token is not accepted")
	}
	g.ask("GET", "/access", nil).want(t, 200, "from 192.0.2.1", "in 30 d", "by root")
	g.late.Store(int64(31 * 24 * time.Hour))
	g.signIn("root", passphrase)
	g.ask("GET", "/access", nil).want(t, 200, "expired")
	g.ask("POST", "/access/tokens/revoke", url.Values{"name": {"ci"}}).want(t, 303).redirectsTo(t, "/access")
	page = g.ask("POST", "/access/tokens", url.Values{"name": {"ci"}, "role": {"viewer"}, "days": {""}}).want(t, 200)
	g.late.Store(int64(4000 * 24 * time.Hour))
	if g.withToken(secretOn(t, page)).StatusCode != 200 {
		t.Error("a token that never expires has expired")
	}
	g.signIn("root", passphrase)
	g.ask("POST", "/access/tokens/revoke", url.Values{"name": {"ci"}}).want(t, 303)
	if g.withToken(secretOn(t, page)).StatusCode != 401 {
		t.Error("a revoked token is accepted")
	}
}

// TestTheAccessPageAsksForThePassword opens the access page more than 15 minutes after the person
// gave the password. The page must ask for the password, and afterwards the person must get the
// access page. If the person sends a form after such a time, dlo must ask for the password too. A
// browser cannot open the URL of that request again, so the person must afterwards get the page
// with the form.
func TestTheAccessPageAsksForThePassword(t *testing.T) {
	t.Parallel()
	g := openGuests(t)
	g.signIn("root", passphrase)
	g.late.Store(int64(16 * time.Minute))
	g.ask("GET", "/access", nil).want(t, 303).redirectsTo(t, "/signin/again?next=%2Faccess")
	g.ask("POST", "/access/users", url.Values{
		"name":   {"mia"},
		"role":   {"viewer"},
		"return": {"/access"},
	}, "Referer", "http://example.com/access/users").want(t, 303).redirectsTo(t, "/signin/again?next=%2Faccess")
	g.ask("POST", "/access/users", url.Values{
		"name":   {"mia"},
		"role":   {"viewer"},
		"return": {"https://evil.example/"},
	}).want(t, 303).redirectsTo(t, "/signin/again?next=%2F")
}

// TestNobodyGivesMoreOnThePage uses an admin who may not see masked data. This admin must not be
// able to invite somebody with the right to see masked data.
func TestNobodyGivesMoreOnThePage(t *testing.T) {
	t.Parallel()
	g := openGuests(t)
	u, err := deadletter.NewUser("chief", deadletter.Grant{Role: deadletter.RoleAdmin}, "test")
	if err != nil {
		t.Fatal(err)
	}
	code, err := g.Users.Add(t.Context(), u)
	if err != nil {
		t.Fatal(err)
	}
	g.accept(t, "/welcome?code="+url.QueryEscape(code))
	g.ask("POST", "/access/users", url.Values{"name": {"mia"}, "role": {"reader"}, "reveal": {"1"}}).want(t, 403)
	g.ask("POST", "/access/tokens", url.Values{"name": {"ci"}, "role": {"operator"}, "purge": {"1"}}).want(t, 403)
	g.ask("POST", "/access/users/reset", url.Values{"name": {"root"}}).want(t, 403)
	g.ask("POST", "/access/users", url.Values{"name": {"mia"}, "role": {"reader"}}).want(t, 200, "A link for mia")
}

// secretOn returns the new link or token that a page shows.
func secretOn(t *testing.T, page answer) string {
	t.Helper()
	found := regexp.MustCompile(`data-copied>([^<]+)</pre>`).FindStringSubmatch(page.text)
	if found == nil {
		t.Fatal("the page shows no link and no token")
	}
	return html.UnescapeString(found[1])
}

// accept uses the link of an invitation: it sends the form with the new password, which signs the
// person in.
func (g *guests) accept(t *testing.T, link string) {
	t.Helper()
	u, err := url.Parse(link)
	if err != nil {
		t.Fatal(err)
	}
	g.cookies = nil
	g.ask("POST", "/welcome", url.Values{
		"code":     {u.Query().Get("code")},
		"new":      {passphrase},
		"repeated": {passphrase},
	}).want(t, 303)
}

// withToken sends a request with a token. The response says to whom the token belongs.
func (g *guests) withToken(secret string) answer {
	g.t.Helper()
	r := httptest.NewRequest("GET", "/api/v1/me", nil)
	r.Header.Set("Authorization", "Bearer "+secret)
	return g.do(r)
}
