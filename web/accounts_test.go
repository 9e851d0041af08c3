package web_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/identity"
	"github.com/deadletteroffice/dlo/web"
)

const passphrase = "four words make one"

// guests is a dlo in which people sign in with passwords.
type guests struct {
	*house
	cookies []*http.Cookie
}

// openGuests opens a dlo with two users. The user "lena" is an operator who may also purge and see
// masked data. The user "root" is an admin.
func openGuests(t *testing.T) *guests {
	t.Helper()
	g := &guests{}
	g.house = open(t, func(o *web.Options) {
		s := o.Store
		o.Users = identity.NewAccounts(s, func() time.Time { return start.Add(time.Duration(g.house.late.Load())) })
		o.Actor, o.TokensOn = identity.New(identity.Options{Users: o.Users, Tokens: s}).Of, true
	})
	for name, role := range map[string]deadletter.Role{"lena": deadletter.RoleOperator, "root": deadletter.RoleAdmin} {
		u, err := deadletter.NewUser(name, deadletter.Grant{Role: role, Reveal: true, Purge: true}, "test")
		if err != nil {
			t.Fatal(err)
		}
		code, err := g.Users.Add(t.Context(), u)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := g.Users.Accept(t.Context(), code, passphrase, identity.Browser{}); err != nil {
			t.Fatal(err)
		}
	}
	return g
}

// ask sends a request with the cookies that earlier responses have set.
func (g *guests) ask(method, path string, form url.Values, headers ...string) answer {
	g.t.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	r.Header.Set("Accept", "text/html")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	for _, c := range g.cookies {
		r.AddCookie(c)
	}
	a := g.do(r)
	if set := a.Cookies(); len(set) > 0 {
		g.cookies = set
		if c := set[0]; c.Name != "dlo-session" || c.Path != "/" || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode {
			g.t.Errorf("cookie %+v", c)
		}
	}
	return a
}

func (g *guests) signIn(name, password string) answer {
	g.t.Helper()
	g.cookies = nil
	return g.ask("POST", "/signin", url.Values{"name": {name}, "password": {password}, "next": {"/queues"}})
}

// TestPeopleSignIn covers a person who signs in, works, and signs out.
func TestPeopleSignIn(t *testing.T) {
	t.Parallel()
	g := openGuests(t)
	g.ask("GET", "/letters?q=state%3Adead", nil).want(t, 303).redirectsTo(
		t, "/signin?next=%2Fletters%3Fq%3Dstate%253Adead",
	)
	g.ask("GET", "/signin?next=/queues", nil).want(t, 200, `name="next" value="/queues"`, "Sign in")
	g.ask("GET", "/signin?next=https://evil.example", nil).want(t, 200, `name="next" value="/"`)
	g.signIn("Lena", passphrase).want(t, 303).redirectsTo(t, "/queues")
	g.ask("GET", "/queues", nil).want(t, 200, "lena")
	if a := g.ask("GET", "/api/v1/letters", nil); a.StatusCode != 401 {
		t.Errorf("a cookie opens the API: %d", a.StatusCode)
	}
	g.ask("GET", "/account", nil).want(t, 200, "operator, reveal, purge", "this browser")
	g.ask("POST", "/signout", nil).want(t, 303).redirectsTo(t, "/signin")
	g.ask("GET", "/queues", nil).want(t, 303)
	g.signIn("root", passphrase)
	g.ask("GET", "/audit", nil).want(t, 200, "signed in", "signed out", "lena", "192.0.2.1")
}

// TestAnOldCookieIsNobody checks that a cookie no longer signs a person in after the person has
// signed out, even if a browser has kept the cookie.
func TestAnOldCookieIsNobody(t *testing.T) {
	t.Parallel()
	g := openGuests(t)
	g.signIn("lena", passphrase).want(t, 303)
	kept := g.cookies
	g.ask("GET", "/account", nil).want(t, 200)
	g.ask("POST", "/signout", nil).want(t, 303)
	g.cookies = kept
	g.ask("GET", "/account", nil).want(t, 303).redirectsTo(t, "/signin?next=%2Faccount")
	g.ask("POST", "/account/password", url.Values{
		"old":      {passphrase},
		"new":      {"another four words here"},
		"repeated": {"another four words here"},
	}).want(t, 401)
	g.signIn("lena", passphrase).want(t, 303)

	g.late.Store(int64(2 * time.Hour))
	g.signIn("lena", passphrase).want(t, 303)
	kept = g.cookies
	g.late.Store(0) // the clock is set back, so the session is not valid for now
	g.ask("POST", "/signout", nil).want(t, 303)
	g.late.Store(int64(2 * time.Hour))
	g.cookies = kept
	g.ask("GET", "/account", nil).want(t, 303)
}

// resetStore is a store in which the password of lena is reset after a request has read the hash of
// her password.
type resetStore struct{ identity.AccountStore }

func (s resetStore) Password(ctx context.Context, name string) (deadletter.User, string, error) {
	u, hash, err := s.AccountStore.Password(ctx, name)
	_, failed := s.ResetUser(ctx, "lena", [32]byte{}, start, "root", identity.AnyUser)
	return u, hash, errors.Join(err, failed)
}

// TestAPasswordIsResetDuringARequest covers a person who sends a password. While dlo checks the
// password, somebody resets it. The person must have to sign in again, and no response may contain
// a cookie.
func TestAPasswordIsResetDuringARequest(t *testing.T) {
	t.Parallel()
	fresh := "another four words here"
	for path, c := range map[string]struct {
		form url.Values
		code int
		want string
	}{
		"/signin": {
			url.Values{"name": {"lena"}, "password": {passphrase}},
			401,
			"do not match. 5 tries left.",
		},
		"/signin/again":     {url.Values{"password": {passphrase}}, 303, ""},
		"/account/password": {url.Values{"old": {passphrase}, "new": {fresh}, "repeated": {fresh}}, 303, ""},
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			g := openGuests(t)
			g.signIn("lena", passphrase).want(t, 303)
			g.Users = identity.NewAccounts(resetStore{g.store}, g.Now)
			a := g.ask("POST", path, c.form).want(t, c.code, c.want)
			if len(a.Cookies()) > 0 {
				t.Errorf("%v", a.Cookies())
			}
			if c.code == 303 {
				a.redirectsTo(t, "/signin")
			}
		})
	}
}

// TestAPlantedSessionStaysNobody covers session fixation. A person signs in with a cookie that an
// attacker has put into the browser. The cookie must not give the attacker the session of this
// person, even if it belongs to a session of the attacker.
func TestAPlantedSessionStaysNobody(t *testing.T) {
	t.Parallel()
	g := openGuests(t)
	g.signIn("root", passphrase).want(t, 303)
	for name, planted := range map[string]string{
		"a secret that dlo never gave": deadletter.NewSecret(), "a session of the attacker": g.cookies[0].Value,
	} {
		g.cookies = []*http.Cookie{{Name: "dlo-session", Value: planted}}
		g.ask("POST", "/signin", url.Values{"name": {"lena"}, "password": {passphrase}, "next": {"/"}}).want(t, 303)
		if len(g.cookies) != 1 || g.cookies[0].Value == planted {
			t.Fatalf("%s: the cookie has not changed", name)
		}
		g.ask("GET", "/account", nil).want(t, 200, "lena")
		g.cookies = []*http.Cookie{{Name: "dlo-session", Value: planted}}
		if a := g.ask("GET", "/account", nil); a.StatusCode == 200 && strings.Contains(a.text, "lena") {
			t.Errorf("%s is a session of lena", name)
		}
	}
}

// TestATokenInAURLIsNobody checks that a token in a URL identifies nobody, because proxies log URLs
// and browsers keep them. dlo itself must neither log the token nor put it into a response.
func TestATokenInAURLIsNobody(t *testing.T) {
	t.Parallel()
	g := openGuests(t)
	g.Log = slog.New(slog.NewTextHandler(&g.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	bearer := bearerOf(t, g.house, "admin")
	secret := strings.TrimPrefix(bearer, "Bearer ")
	for _, name := range []string{"token", "access_token", "api_key", "authorization"} {
		for _, path := range []string{"/api/v1/letters", "/api/v1/me", "/api/v1/events", "/letters", "/metrics"} {
			a := g.get(path+"?"+name+"="+secret).want(t, 401)
			if strings.Contains(a.text, secret) {
				t.Errorf("%s: the answer has the token: %s", path, a.text)
			}
		}
		r := request("GET", "/api/v1/letters?"+name+"="+secret, "")
		r.Header.Set("Authorization", bearer)
		if a := g.do(r).want(t, 400, name); strings.Contains(a.text, secret) {
			t.Errorf("the answer has the token: %s", a.text)
		}
	}
	if log := g.log.String(); !strings.Contains(log, "/api/v1/letters") || strings.Contains(log, secret) {
		t.Errorf("the log: %s", log)
	}
}

// TestWrongPasswords checks that a response does not say whether the name or the password was
// wrong. It also checks who is locked out after wrong passwords.
func TestWrongPasswords(t *testing.T) {
	t.Parallel()
	g := openGuests(t)
	known, unknown := g.signIn("lena", "wrong"), g.signIn("nobody", "wrong")
	same := func(s string) string { return regexp.MustCompile(`value="(lena|nobody)"`).ReplaceAllString(s, "") }
	if known.StatusCode != 401 || same(known.text) != same(unknown.text) ||
		!strings.Contains(known.text, "do not match. 4 tries left.") {
		t.Errorf("%d %s", known.StatusCode, known.text)
	}
	for range 4 {
		g.signIn("lena", "wrong")
	}
	a := g.signIn("lena", passphrase).want(t, 429, "Too many attempts failed. Try again at 09:15 UTC.")
	if a.Header.Get("Retry-After") == "" || len(g.cookies) > 0 {
		t.Errorf("%v %v", a.Header, g.cookies)
	}
	g.late.Store(int64(15 * time.Minute))
	g.signIn("lena", passphrase).want(t, 303)
	g.signIn("root", passphrase)
	g.ask("GET", "/audit?q=who:lena", nil).want(t, 200, "sign-in failed")
	if a := g.ask(
		"GET", "/audit?q=who:unknown", nil,
	).want(t, 200, "sign-in failed"); strings.Contains(a.text, "nobody") {
		t.Error("the audit has a name that was typed")
	}
	g.signIn("lena", strings.Repeat("x", 10_000)).want(t, 401)
	g.signIn("lena", strings.Repeat("x", 20_000)).want(t, 413)
	g.signIn("le\x00na\u202e", passphrase).want(t, 401)
}

// TestPasswordsTriedAtTheSameTime checks that simultaneous attempts count as if they came one after
// the other. No more than five passwords may be compared.
func TestPasswordsTriedAtTheSameTime(t *testing.T) {
	t.Parallel()
	g := openGuests(t)
	codes := make(chan int, 30)
	for range cap(codes) {
		go func() {
			r := httptest.NewRequest("POST", "/signin", strings.NewReader("name=lena&password=wrong"))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			codes <- g.do(r).StatusCode
		}()
	}
	got := map[int]int{}
	for range cap(codes) {
		got[<-codes]++
	}
	if got[401] != 5 || got[429] != 25 {
		t.Error(got)
	}
}

// TestStrangersAreLimited checks that dlo limits an address from which no known person sends
// requests. After some sign-in pages, the address must wait before it gets more of them.
func TestStrangersAreLimited(t *testing.T) {
	t.Parallel()
	g := openGuests(t)
	for _, path := range []string{"/signin", "/welcome?code=x"} {
		limited := false
		for range 200 {
			a := g.ask("GET", path, nil)
			if limited = a.StatusCode == 429; limited {
				if a.Header.Get("Retry-After") == "" {
					t.Error(a.Header)
				}
				break
			}
		}
		if !limited {
			t.Errorf("%s is not limited", path)
		}
	}
}

// TestSessionsEnd checks when a session ends. A new session must not end other sessions.
func TestSessionsEnd(t *testing.T) {
	t.Parallel()
	g := openGuests(t)
	g.signIn("lena", passphrase)
	for range 24 { // a session lasts for 12 h if it is used every half hour
		g.late.Add(int64(29 * time.Minute))
		g.ask("GET", "/account", nil).want(t, 200)
	}
	g.late.Add(int64(29 * time.Minute))
	g.ask("GET", "/account", nil).want(t, 303)
	g.signIn("lena", passphrase)
	g.late.Add(int64(31 * time.Minute))
	g.ask("GET", "/account", nil).want(t, 303)

	g.signIn("lena", passphrase)
	replaced := g.cookies
	g.ask("POST", "/signin", url.Values{"name": {"root"}, "password": {passphrase}}).want(t, 303)
	g.cookies = replaced // this is the session whose cookie was replaced
	g.ask("GET", "/account", nil).want(t, 303)

	g.signIn("lena", passphrase)
	other := g.cookies
	g.signIn("lena", passphrase)
	page := g.ask("GET", "/account", nil).want(t, 200)
	ends := regexp.MustCompile(`/account/sessions/([0-9a-f]{12})/end`).FindAllStringSubmatch(page.text, -1)
	if len(ends) != 2 {
		t.Fatalf("%d sessions", len(ends))
	}
	for _, row := range strings.Split(page.text, `<li class="row">`)[1:] {
		for _, end := range ends {
			if strings.Contains(row, end[0]) && !strings.Contains(row, "this browser") {
				g.ask("POST", end[0], nil).want(t, 303)
			}
		}
	}
	g.ask("GET", "/account", nil).want(t, 200)
	g.cookies = other
	g.ask("GET", "/account", nil).want(t, 303)
	g.signIn("root", passphrase)
	for _, end := range ends { // the session of root must not end
		g.ask("POST", end[0], nil).want(t, 404)
	}
}

// TestThePasswordIsAskedAgain checks which actions need a password that was given within the last
// 15 minutes. When the password is given again, the session must get a new secret.
func TestThePasswordIsAskedAgain(t *testing.T) {
	t.Parallel()
	g := openGuests(t)
	id := string(g.receive("sms", 1, "x")[0])
	g.signIn("lena", passphrase)
	purge := url.Values{"action": {"purge"}, "id": {id}, "confirm": {"1"}}
	g.late.Store(int64(14 * time.Minute))
	g.ask("POST", "/letters/confirm", purge).want(t, 200)
	g.late.Store(int64(16 * time.Minute))
	g.ask("POST", "/letters/confirm", purge, "Referer", "http://example.com/letters/"+id).want(t, 303)
	g.ask(
		"POST", "/letters/"+id+"/reveal", url.Values{"header": {"a"}}, "Sec-Fetch-Dest", "empty",
	).want(t, 403, "to see masked data, give your password again")
	g.ask("POST", "/letters/confirm", url.Values{"action": {"requeue"}, "id": {id}}).want(t, 200)
	before := g.cookies
	g.ask("GET", "/signin/again?next=/letters/"+id, nil).want(t, 200, "lena", `value="/letters/`+id+`"`)
	g.ask("POST", "/signin/again", url.Values{"password": {"wrong"}}).want(t, 401, "4 tries left")
	g.ask("POST", "/signin/again", url.Values{
		"password": {passphrase},
		"next":     {"/letters/" + id},
	}).want(t, 303).redirectsTo(t, "/letters/"+id)
	g.ask("POST", "/letters/confirm", purge).want(t, 200)
	renewed := g.cookies
	g.cookies = before
	g.ask("GET", "/account", nil).want(t, 303)
	g.cookies = renewed
	g.late.Store(-int64(24 * time.Hour)) // the clock is set back, so that nobody knows how old the session is
	g.ask("POST", "/letters/confirm", purge).want(t, 401, "sign in")
}

// TestChangingThePassword checks that a new password ends all other sessions.
func TestChangingThePassword(t *testing.T) {
	t.Parallel()
	g := openGuests(t)
	g.signIn("lena", passphrase)
	other := g.cookies
	g.signIn("lena", passphrase)
	fresh := "another four words here"
	g.ask("POST", "/account/password", url.Values{
		"old":      {"wrong"},
		"new":      {fresh},
		"repeated": {fresh},
	}).want(t, 401, "4 tries left")
	g.ask("POST", "/account/password", url.Values{
		"old":      {passphrase},
		"new":      {fresh},
		"repeated": {"x"},
	}).want(t, 400, "The two passwords differ.")
	g.ask("POST", "/account/password", url.Values{
		"old":      {passphrase},
		"new":      {"lena lena lena"},
		"repeated": {"lena lena lena"},
	}).want(t, 400, "contains the name")
	g.ask("POST", "/account/password", url.Values{
		"old":      {passphrase},
		"new":      {fresh},
		"repeated": {fresh},
	}).want(t, 303)
	g.ask("GET", "/account", nil).want(t, 200)
	g.cookies = other
	g.ask("GET", "/account", nil).want(t, 303)
	g.signIn("lena", passphrase).want(t, 401)
	g.signIn("lena", fresh).want(t, 303)
}

// TestSecureCookies checks the cookie of a dlo that people reach by HTTPS.
func TestSecureCookies(t *testing.T) {
	t.Parallel()
	g := openGuests(t)
	g.Secure = true
	r := httptest.NewRequest("POST", "/signin", strings.NewReader(url.Values{
		"name":     {"lena"},
		"password": {passphrase},
	}.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	a := g.do(r).want(t, 303)
	set := a.Cookies()
	if len(set) != 1 {
		t.Fatalf("%d cookies", len(set))
	}
	c := set[0]
	if c.Name != "__Host-dlo" || !strings.HasPrefix(c.Value, "dlo_") || !c.Secure || !c.HttpOnly ||
		c.SameSite != http.SameSiteLaxMode || c.Path != "/" || c.Domain != "" {
		t.Error(c)
	}
	if a.Header.Get("Strict-Transport-Security") == "" {
		t.Errorf("%v", a.Header)
	}
}
