package web_test

import (
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/identity"
	"github.com/deadletteroffice/dlo/web"
)

// TestDeniedRequestsAreRecorded checks that the audit records each kind of denied request once a
// minute, with the address. It must not record anything that somebody unknown wrote.
func TestDeniedRequestsAreRecorded(t *testing.T) {
	t.Parallel()
	h := open(t, func(o *web.Options) {
		who := identity.New(identity.Options{
			Proxy:  identity.Proxy{From: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, User: "X-User"},
			Tokens: o.Store,
			Grants: []identity.Grant{
				{To: []string{"user:root"}, Grant: deadletter.Grant{Role: deadletter.RoleAdmin}},
				{To: []string{"user:rita"}, Grant: deadletter.Grant{Role: deadletter.RoleOperator, Reveal: true}},
			},
		})
		o.Actor, o.Address = who.Of, who.Address
	})
	id := string(h.receive("sms", 1, "x")[0])
	ask := func(from, method, path string, headers ...string) answer {
		r := httptest.NewRequest(method, path, strings.NewReader(`{"field":"a"}`))
		r.RemoteAddr = from + ":4711"
		r.Header.Set("Content-Type", "application/json")
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		return h.do(r)
	}
	const proxy, stranger = "10.0.0.1", "203.0.113.7"
	rows := func() int {
		text := ask(proxy, "GET", "/api/v1/audit?kind=denied", "X-User", "root").want(t, 200).text
		if strings.Contains(text, "mallory") || strings.Contains(text, "dlo_abc") ||
			strings.Contains(text, "secret-path") {
			t.Errorf("the audit has words of somebody unknown: %s", text)
		}
		return strings.Count(text, `"kind":"denied"`)
	}
	for name, c := range map[string]struct {
		from, method, path string
		headers            []string
		status             int
		recorded           string // the actor; "" = nothing is recorded
	}{
		"a token that is not valid": {
			stranger,
			"GET",
			"/api/v1/letters?q=secret-path",
			[]string{"Authorization", "Bearer " + deadletter.TokenPrefix + "abc"},
			401,
			`"actor":"unknown"`,
		},
		"a name from somebody else": {
			"203.0.113.8",
			"GET",
			"/api/v1/letters",
			[]string{"X-User", "mallory"},
			401,
			`"actor":"unknown"`,
		},
		"a name that the proxy may not": {
			proxy,
			"GET",
			"/api/v1/letters",
			[]string{"X-User", deadletter.TokenName + "x"},
			401,
			`"actor":"unknown"`,
		},
		"a person without a grant": {
			proxy,
			"GET",
			"/api/v1/letters",
			[]string{"X-User", "bob"},
			403,
			`"actor":"bob"`,
		},
		"a role that is too low": {
			proxy,
			"GET",
			"/api/v1/tokens",
			[]string{"X-User", "rita"},
			403,
			`"actor":"rita"`,
		},
		"a password that nobody can give": {
			proxy,
			"POST",
			"/api/v1/letters/" + id + "/reveal",
			[]string{"X-User", "rita"},
			403,
			"without_step_up",
		},
		"nobody, through the proxy": {proxy, "GET", "/api/v1/letters", nil, 401, ""},
		"nobody":                    {"203.0.113.9", "GET", "/api/v1/letters", nil, 401, ""},
	} {
		h.late.Add(int64(2 * time.Minute))
		before := rows()
		want := before
		if c.recorded != "" {
			want++
		}
		for range 3 {
			ask(c.from, c.method, c.path, c.headers...).want(t, c.status)
		}
		if got := rows(); got != want {
			t.Errorf("%s: %d rows after %d, want %d", name, got, before, want)
		}
		ask(proxy, "GET", "/api/v1/audit?kind=denied", "X-User", "root").want(t, 200, c.recorded)
	}
}
