package identity

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// kept is a double of the store. It finds a token by its hash.
type kept map[[32]byte]deadletter.APIToken

func (k kept) TokenBy(_ context.Context, hash [32]byte) (deadletter.APIToken, error) {
	t, ok := k[hash]
	if !ok {
		return t, deadletter.NoSuch("token")
	}
	return t, nil
}

const good = "dlo_0123456789"

func newIdentity() *Identity {
	return New(Options{
		Proxy: Proxy{
			From:   []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("::1/128")},
			User:   "X-Forwarded-User",
			Email:  "X-Forwarded-Email",
			Groups: "X-Forwarded-Groups",
		},
		Tokens: kept{deadletter.SecretHash(good): {Name: "ci", Grant: deadletter.Grant{Role: deadletter.RoleOperator}}},
		Grants: []Grant{
			{To: []string{"group:payments", "group:ops"}, Grant: deadletter.Grant{Role: deadletter.RoleOperator}},
			{To: []string{"user:ana@example.com"}, Grant: deadletter.Grant{Role: deadletter.RoleAdmin, Purge: true}},
			{To: []string{"token:ci"}, Grant: deadletter.Grant{Role: deadletter.RoleReader, Reveal: true}},
			{To: []string{"user:Łucja 樹"}, Grant: deadletter.Grant{Role: deadletter.RoleEditor}},
			{To: []string{"user:ci"}, Grant: deadletter.Grant{Role: deadletter.RoleAdmin}},
		},
	})
}

func groups(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("team-%d", i)
	}
	return strings.Join(list, ",")
}

// TestWho checks which person or token dlo takes for the sender of a request. Some of the requests
// come through the proxy, some do not, and some contain a token.
func TestWho(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		from    string // remote address; "" = address of the proxy
		headers []string
		want    string // name and grants of the principal
		err     error
		says    string
	}{
		"user": {
			headers: []string{"X-Forwarded-User", "bob", "X-Forwarded-Groups", "x, payments"}, want: "bob operator",
		},
		"e-mail": {
			headers: []string{"X-Forwarded-User", "a1b2", "X-Forwarded-Email", "ana@example.com"},
			want:    "ana@example.com admin, purge",
		},
		"both": {
			headers: []string{"X-Forwarded-User", "ana", "X-Forwarded-Email", "ana@example.com", "X-Forwarded-Groups", "ops"},
			want:    "ana@example.com operator; admin, purge",
		},
		"other scripts": {headers: []string{"X-Forwarded-User", "Łucja 樹"}, want: "Łucja 樹 editor"},
		"IPv6": {
			from:    "[::1]:4",
			headers: []string{"X-Forwarded-User", "ana", "X-Forwarded-Email", "ana@example.com"},
			want:    "ana@example.com admin, purge",
		},
		"IPv4 in IPv6": {
			from:    "[::ffff:10.1.2.3]:4",
			headers: []string{"X-Forwarded-User", "ana", "X-Forwarded-Email", "ana@example.com"},
			want:    "ana@example.com admin, purge",
		},
		"500 groups": {
			headers: []string{"X-Forwarded-User", "bob", "X-Forwarded-Groups", groups(500) + ",ops"},
			want:    "bob operator",
		},
		"a prefix of grants": {
			headers: []string{"X-Forwarded-User", "user:Łucja 樹"},
			err:     deadletter.ErrForbidden,
			says:    "no grant names you",
		},
		"a group as user": {
			headers: []string{"X-Forwarded-User", "group:ops"},
			err:     deadletter.ErrForbidden,
			says:    "no grant names you",
		},
		"no grant": {
			headers: []string{"X-Forwarded-User", "bob"},
			err:     deadletter.ErrForbidden,
			says:    "dlo knows you as bob, and no grant names you (your proxy sends no groups)",
		},
		"no grant of a group": {
			headers: []string{"X-Forwarded-User", "bob", "X-Forwarded-Groups", "a,b,a"},
			err:     deadletter.ErrForbidden,
			says:    "or one of your 2 groups",
		},
		"too many groups": {
			headers: []string{"X-Forwarded-User", "bob", "X-Forwarded-Groups", groups(2001)},
			err:     deadletter.ErrSignIn,
			says:    "has 2001 groups",
		},
		"no user": {
			headers: []string{"X-Forwarded-Groups", "ops"},
			err:     deadletter.ErrSignIn,
			says:    "did not send the header X-Forwarded-User",
		},
		"empty user": {
			headers: []string{"X-Forwarded-User", " ", "X-Forwarded-Groups", "ops"},
			err:     deadletter.ErrSignIn,
			says:    "did not send",
		},
		"user twice": {
			headers: []string{"X-Forwarded-User", "bob", "X-Forwarded-User", "ana@example.com"},
			err:     deadletter.ErrSignIn,
			says:    "2 times",
		},
		"e-mail twice": {
			headers: []string{"X-Forwarded-User", "bob", "X-Forwarded-Email", "bob", "X-Forwarded-Email", "ana@example.com"},
			err:     deadletter.ErrSignIn,
			says:    "2 times",
		},
		"groups twice": {
			headers: []string{"X-Forwarded-User", "bob", "X-Forwarded-Groups", "x", "X-Forwarded-Groups", "ops"},
			err:     deadletter.ErrSignIn,
			says:    "2 times",
		},
		"hidden": {
			headers: []string{"X-Forwarded-User", "ana@example.com\u202e"},
			err:     deadletter.ErrSignIn,
			says:    "visible UTF-8",
		},
		"not UTF-8": {
			headers: []string{"X-Forwarded-User", "ana\xff"}, err: deadletter.ErrSignIn, says: "visible UTF-8",
		},
		"a user of 4 KiB": {
			headers: []string{"X-Forwarded-User", strings.Repeat("ana@example.com ", 256)},
			err:     deadletter.ErrSignIn,
			says:    "at most 256 bytes",
		},
		"an e-mail of 4 KiB": {
			headers: []string{"X-Forwarded-User", "ana", "X-Forwarded-Email", strings.Repeat("ana@example.com ", 256)},
			err:     deadletter.ErrSignIn,
			says:    "at most 256 bytes",
		},
		"a group of 4 KiB": {
			headers: []string{"X-Forwarded-User", "bob", "X-Forwarded-Groups", "payments," + strings.Repeat("o", 4096)},
			err:     deadletter.ErrSignIn,
			says:    "at most 256 bytes",
		},
		"long": {
			headers: []string{"X-Forwarded-User", strings.Repeat("a", 257)},
			err:     deadletter.ErrSignIn,
			says:    "at most 256 bytes",
		},
		"dlo":   {headers: []string{"X-Forwarded-User", "DLO"}, err: deadletter.ErrSignIn, says: "keeps for itself"},
		"local": {headers: []string{"X-Forwarded-User", "local"}, err: deadletter.ErrSignIn, says: "keeps for itself"},
		"a token's name": {
			headers: []string{"X-Forwarded-User", "token:ci"}, err: deadletter.ErrSignIn, says: "keeps for itself",
		},
		"a variable of Caddy": {
			headers: []string{
				"X-Forwarded-User", "ana@example.com", "X-Forwarded-Email",
				"{http.reverse_proxy.header.X-Auth-Request-Email}",
			},
			err:  deadletter.ErrSignIn,
			says: "did not fill in",
		},
		"a variable of Apache": {
			headers: []string{"X-Forwarded-User", "(null)"},
			err:     deadletter.ErrSignIn,
			says:    "did not fill in; correct the header X-Forwarded-User",
		},
		"a variable of nginx": {
			headers: []string{"X-Forwarded-User", "ana", "X-Forwarded-Email", "$upstream_http_x_email"},
			err:     deadletter.ErrSignIn,
			says:    "correct the header X-Forwarded-Email",
		},
		"a group of nginx": {
			headers: []string{"X-Forwarded-User", "bob", "X-Forwarded-Groups", "ops, $http_x_groups"},
			err:     deadletter.ErrSignIn,
			says:    "the group $http_x_groups in",
		},
		"a stranger": {
			from:    "192.0.2.1:4",
			headers: []string{"X-Forwarded-User", "ana@example.com"},
			err:     deadletter.ErrSignIn,
			says:    "open dlo through the proxy",
		},
		"a stranger in front": {
			from:    "192.0.2.1:4",
			headers: []string{"X-Forwarded-For", "10.0.0.1", "X-Forwarded-User", "ana@example.com"},
			err:     deadletter.ErrSignIn,
			says:    "open dlo through the proxy",
		},
		"a unix socket": {
			from:    "@",
			headers: []string{"X-Forwarded-User", "ana@example.com"},
			err:     deadletter.ErrSignIn,
			says:    "open dlo through the proxy",
		},

		"a token": {
			from:    "192.0.2.1:4",
			headers: []string{"Authorization", "Bearer " + good},
			want:    "token:ci operator; reader, reveal",
		},
		"a token, lower case": {
			from:    "192.0.2.1:4",
			headers: []string{"Authorization", "bearer  " + good},
			want:    "token:ci operator; reader, reveal",
		},
		"a token through a proxy": {
			headers: []string{"X-Forwarded-User", "ana@example.com", "Authorization", "Bearer " + good},
			want:    "token:ci operator; reader, reveal",
		},
		"a wrong token": {
			headers: []string{"X-Forwarded-User", "ana@example.com", "Authorization", "Bearer dlo_wrong"},
			err:     deadletter.ErrSignIn,
			says:    "the token is not valid",
		},
		"the proxy's own password": {
			headers: []string{"X-Forwarded-User", "ana", "X-Forwarded-Email", "ana@example.com", "Authorization", "Basic YTpi"},
			want:    "ana@example.com admin, purge",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			if r.RemoteAddr = c.from; c.from == "" {
				r.RemoteAddr = "10.9.8.7:65000"
			}
			for i := 0; i < len(c.headers); i += 2 {
				r.Header.Add(c.headers[i], c.headers[i+1])
			}
			p, err := newIdentity().Of(r)
			if !errors.Is(err, c.err) || c.err != nil && !strings.Contains(fmt.Sprint(err), c.says) {
				t.Fatalf("%v, want %v: %s", err, c.err, c.says)
			}
			var words []string
			for _, g := range p.Grants {
				words = append(words, g.Words())
			}
			if got := p.Name + " " + strings.Join(words, "; "); err == nil && got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// TestGrantsFromRabbitMQ checks grants that are limited to the permissions in RabbitMQ. Such a
// grant gives a person only the queues to which RabbitMQ lets the person write. It gives nothing to
// a token, or to a person without permissions.
func TestGrantsFromRabbitMQ(t *testing.T) {
	t.Parallel()
	o := newIdentity().Options
	o.Grants = []Grant{
		{
			To:    []string{Everyone},
			Grant: deadletter.Grant{Role: deadletter.RoleOperator, Places: deadletter.Places{FromRabbitMQ: true}},
		},
	}
	var asked []string
	o.Permissions = func(_ context.Context, name string) []deadletter.Written {
		asked = append(asked, name)
		if name != "bob" {
			return nil
		}
		return []deadletter.Written{{Broker: "main", VHost: "/", Name: "^sms$"}}
	}
	of := func(headers ...string) (deadletter.Principal, error) {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = "10.9.8.7:65000"
		for i := 0; i < len(headers); i += 2 {
			r.Header.Add(headers[i], headers[i+1])
		}
		return New(o).Of(r)
	}
	bob, err := of("X-Forwarded-User", "bob")
	if err != nil {
		t.Fatal(err)
	}
	for queue, want := range map[string]bool{"sms": true, "sms2": false, "": false} {
		if got := deadletter.Allow(bob, deadletter.VerbRequeue, deadletter.Origin{
			Broker: "main", VHost: "/", Queue: queue,
		}) == nil; got != want {
			t.Errorf("bob may requeue letters of %q: %t", queue, got)
		}
	}
	if bob.MayEverywhere(deadletter.VerbView) || deadletter.Allow(bob, deadletter.VerbRequeue, deadletter.Origin{
		Broker: "other", VHost: "/", Queue: "sms",
	}) == nil {
		t.Error("the permission is not only for its own broker")
	}
	if p, err := of("X-Forwarded-User", "eve"); !errors.Is(err, deadletter.ErrForbidden) {
		t.Errorf("%+v, %v", p, err)
	}
	if p, err := of("Authorization", "Bearer "+good); err != nil || len(p.Grants) != 1 || p.Grants[0].FromRabbitMQ {
		t.Errorf("a token has more than the grant with which it was added: %+v, %v", p, err)
	}
	if got := strings.Join(asked, " "); got != "bob eve" {
		t.Errorf("RabbitMQ was asked about %s", got)
	}
}

// TestTheSecretOfTheProxy checks that headers are trusted only if the secret of the proxy is right.
func TestTheSecretOfTheProxy(t *testing.T) {
	t.Parallel()
	i := newIdentity()
	i.Proxy.Secret = "open sesame"
	for name, c := range map[string]struct {
		secrets []string
		known   bool
	}{
		"right": {[]string{"open sesame"}, true},
		"none":  {nil, false},
		"wrong": {[]string{"open"}, false},
		"twice": {[]string{"open sesame", "open sesame"}, false},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = "10.9.8.7:65000"
		r.Header.Set("X-Forwarded-User", "bob")
		r.Header.Set("X-Forwarded-Groups", "ops")
		r.Header[SecretHeader] = c.secrets
		if _, err := i.Of(r); (err == nil) != c.known || err != nil && !errors.Is(err, deadletter.ErrSignIn) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestNoProxy checks that headers are ignored if no proxy is configured. It also checks that a
// grant to everyone adds nothing to the grant of a token, and that the grants can be replaced.
func TestNoProxy(t *testing.T) {
	t.Parallel()
	i := New(Options{
		Tokens: newIdentity().Tokens,
		Grants: []Grant{{To: []string{Everyone}, Grant: deadletter.Grant{Role: deadletter.RoleReader}}},
	})
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.RemoteAddr = "127.0.0.1:1"
	r.Header.Set("X-Forwarded-User", "ana@example.com")
	if _, err := i.Of(r); !errors.Is(err, deadletter.ErrSignIn) {
		t.Error(err)
	}
	r.Header.Set("Authorization", "Bearer "+good)
	if p, err := i.Of(r); err != nil || len(p.Grants) != 1 || p.Grants[0].Role != deadletter.RoleOperator {
		t.Errorf("%+v %v", p, err)
	}
	i.Replace([]Grant{{To: []string{deadletter.TokenName + "ci"}, Grant: deadletter.Grant{Role: deadletter.RoleAdmin}}})
	if p, err := i.Of(r); err != nil || len(p.Grants) != 2 {
		t.Errorf("%+v %v", p, err)
	}
	i.Tokens = nil
	if _, err := i.Of(r); !errors.Is(err, deadletter.ErrSignIn) {
		t.Error(err)
	}
}

// TestAProxyThatNamesNobody covers a proxy that does not authenticate people. dlo trusts the
// address that the proxy reports. It trusts no name in the headers of the proxy.
func TestAProxyThatNamesNobody(t *testing.T) {
	t.Parallel()
	i := New(Options{
		Proxy:  Proxy{From: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}},
		Users:  NewAccounts(nil, nil),
		Grants: newIdentity().Grants,
	})
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.RemoteAddr = "10.0.0.1:9"
	r.Header.Set("X-Forwarded-For", "198.51.100.7")
	for _, name := range []string{"X-Forwarded-User", "User", ""} {
		r.Header[name] = []string{"ana@example.com"}
	}
	if _, err := i.Of(r); !errors.Is(err, deadletter.ErrSignIn) {
		t.Error(err)
	}
	if got := i.Address(r); got != "198.51.100.7" {
		t.Error(got)
	}
}

// TestAddress checks when an address in a header is trusted.
func TestAddress(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		from string
		hops []string
		want string
	}{
		"through the proxy":   {"10.0.0.1:9", []string{"203.0.113.9, 198.51.100.7"}, "198.51.100.7"},
		"two headers":         {"10.0.0.1:9", []string{"203.0.113.9", "2001:db8::1"}, "2001:db8::1"},
		"the proxy itself":    {"10.0.0.1:9", nil, "10.0.0.1"},
		"not an address":      {"10.0.0.1:9", []string{"<script>"}, "10.0.0.1"},
		"a stranger who lies": {"192.0.2.1:9", []string{"10.0.0.1"}, "192.0.2.1"},
		"IPv4 in IPv6":        {"[::ffff:192.0.2.1]:9", nil, "192.0.2.1"},
		"no address":          {"@", []string{"10.0.0.1"}, ""},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr, r.Header["X-Forwarded-For"] = c.from, c.hops
		if got := newIdentity().Address(r); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
