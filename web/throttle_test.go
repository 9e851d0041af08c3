package web_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/web"
)

// TestLimits checks that nobody can keep dlo so busy that dlo serves no other requests. The limits
// apply to each principal, and to each address from which only unknown callers send requests.
func TestLimits(t *testing.T) {
	t.Parallel()
	var who deadletter.Principal
	h := open(t, knownAs(&who), func(o *web.Options) { o.Requests = 2 })
	from := func(address string) answer {
		r := httptest.NewRequest("GET", "/api/v1/me", nil)
		r.RemoteAddr = address + ":4711"
		return h.do(r)
	}
	refused := func(name, address string, most int, usual int) {
		t.Helper()
		who = deadletter.Principal{Name: name, Grants: deadletter.Local.Grants}
		codes := map[int]int{}
		for range most + 20 {
			a := from(address)
			if codes[a.StatusCode]++; a.StatusCode == http.StatusTooManyRequests {
				a.want(t, 429, "try again in 1 s")
				if a.Header.Get("Retry-After") != "1" {
					t.Errorf("%v", a.Header)
				}
			}
		}
		if codes[usual] < most || codes[429] < 10 || len(codes) != 2 {
			t.Errorf("%q from %s: %v", name, address, codes)
		}
	}
	refused("ana", "192.0.2.1", 10, 200)
	refused("bob", "192.0.2.1", 10, 200) // the limit of ana, at the same address, must not count for bob
	refused("", "192.0.2.2", 50, 401)
	refused("", "192.0.2.3", 50, 401)
	for i := range 10_050 { // more addresses than dlo remembers
		who = deadletter.Principal{}
		from(fmt.Sprintf("198.51.%d.%d", 100+i/250, i%250)).want(t, 401)
	}
	local := open(t, func(o *web.Options) { o.Requests = 1 })
	for range 100 {
		local.get("/api/v1/me").want(t, 200)
	}
}
