package web_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/identity"
	"github.com/deadletteroffice/dlo/internal/testenv"
	"github.com/deadletteroffice/dlo/web"
)

// ranks contains principals in the order of their rights, beginning with the fewest rights. Each
// has the name that testdata/access.txt uses.
var ranks = []struct {
	name   string
	grants []deadletter.Grant
}{
	{"viewer", []deadletter.Grant{{Role: deadletter.RoleViewer}}},
	{"reader", []deadletter.Grant{{Role: deadletter.RoleReader}}},
	{"reader with reveal", []deadletter.Grant{{Role: deadletter.RoleReader, Reveal: true}}},
	{"operator", []deadletter.Grant{{Role: deadletter.RoleOperator}}},
	{"editor", []deadletter.Grant{{Role: deadletter.RoleEditor}}},
	{"admin", []deadletter.Grant{{Role: deadletter.RoleAdmin}}},
	{"admin with reveal and purge", deadletter.Local.Grants},
}

// knownAs makes every request come from the given principal. If the principal has no name, the
// request comes from nobody.
func knownAs(principal *deadletter.Principal) func(*web.Options) {
	return func(o *web.Options) {
		o.Actor = func(*http.Request) (deadletter.Principal, error) {
			if principal.Name == "" {
				return *principal, fmt.Errorf("%w: say who you are", deadletter.ErrSignIn)
			}
			return *principal, nil
		}
	}
}

// withUsers gives dlo local users.
func withUsers(o *web.Options) { o.Users = identity.NewAccounts(o.Store, o.Now) }

// TestWhoReachesEachRoute sends a request to every route of the router, as nobody and as each rank.
// testdata/access.txt lists the lowest rank that each route lets in. It also says whether the grant
// of that rank has to be for all queues. Each rank is also tried with a grant for one queue. It
// must then reach an object of its own queue. An object of another queue must look like one that
// does not exist. The list says "hidden" if the response for an object of another queue is 404.
// Otherwise it contains the status of that response. Only static files, probes and the sign-in
// pages may let in somebody without a grant. A route that lets in a rank without reveal must not
// deny a higher rank. A new route changes the list.
func TestWhoReachesEachRoute(t *testing.T) {
	t.Parallel()
	var who deadletter.Principal
	h := open(t, knownAs(&who), withUsers, func(o *web.Options) {
		o.Metrics = http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { fmt.Fprintln(rw, "dlo_up 1") })
	})
	who = deadletter.Local
	own, others := string(h.receive("own", 1, "x")[0]), string(h.receive("sms", 1, "x")[0])
	for i, id := range []string{own, others} {
		h.postJSON(
			"/api/v1/operations", `{"action":"hold","ids":["`+id+`"],"reason":"x"}`,
		).want(t, 202, fmt.Sprintf(`"id":"O-%d"`, i+1))
	}
	h.advance()
	// The map "kinds" holds three ids for each kind of object that belongs to a queue. The first
	// object belongs to a queue that the person may act on, the second one belongs to another
	// queue, and the third one does not exist.
	kinds := map[string][3]string{
		"/letters/{id}":    {own, others, "01a1f82f-1e80-7001-ae47-919b9669db7d"},
		"/groups/{id}":     {"G-1", "G-2", "G-99"},
		"/operations/{id}": {"O-1", "O-2", "O-99"},
	}
	bodies := map[string]string{
		"PATCH /api/v1/groups/{id}": `{"note":"x"}`, "POST /api/v1/groups/{id}/merge": `{"groups":["G-1"]}`,
		"POST /api/v1/groups/{id}/pause": `{"reason":"x"}`, "POST /api/v1/groups/{id}/resume": `{}`,
		"PATCH /api/v1/operations/{id}": `{"rate":1}`, "POST /api/v1/letters/{id}/reveal": `{"header":"tries"}`,
		"POST /api/v1/letters/{id}/revisions": `{"text":"y","reason":"x"}`,
		"POST /queues/pause":                  "place=broker%3Dmain%26vhost%3D%252F%26queue%3Down",
		"POST /queues/resume":                 "place=broker%3Dmain%26vhost%3D%252F%26queue%3Down",
	}
	paths := strings.NewReplacer("{id}", "1", "{set}", "shop", "{name}", "main", "*", "x.css")
	var list []string
	asked := 0
	if err := chi.Walk(
		h.Routes(), func(method, route string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
			if strings.HasPrefix(route, "/static/") && method != http.MethodGet {
				return nil
			}
			var text string // the body of the latest response
			var status int
			ask := func(p deadletter.Principal, path string) bool {
				who = p
				body := bodies[method+" "+route]
				r := httptest.NewRequest(method, "https://dlo.example"+path, strings.NewReader(body))
				if strings.HasPrefix(body, "{") {
					r.Header.Set("Content-Type", "application/json")
				} else if body != "" {
					r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
				}
				r.Header.Set("Sec-Fetch-Site", "same-origin")
				if strings.HasSuffix(route, "/events") { // an event stream, whose reader leaves at once
					left, leave := context.WithCancel(t.Context())
					leave()
					r = r.WithContext(left)
				}
				asked++
				// dlo would soon refuse requests that all come from one address
				r.RemoteAddr = fmt.Sprintf("192.0.2.%d:4711", asked%250)
				answer := httptest.NewRecorder()
				h.ServeHTTP(answer, r)
				text, status = answer.Body.String(), answer.Code
				denied := answer.Code == http.StatusForbidden && strings.Contains(text, "concerns all queues") ||
					answer.Code == http.StatusUnauthorized && strings.Contains(text, "say who you are") ||
					answer.Header().Get("Location") == "/signin?next="+url.QueryEscape(r.URL.Path) ||
					answer.Code == http.StatusForbidden && strings.Contains(text, "that needs")
				if denied && strings.Contains(text, "sms") {
					t.Errorf("%s %s tells %q about a queue", method, route, p.Name)
				}
				return !denied
			}
			let := func(p deadletter.Principal) bool { return ask(p, paths.Replace(route)) }
			lowest := ""
			if let(deadletter.Principal{}) {
				lowest = "everybody"
			}
			if !strings.HasPrefix(route, "/static/") && route != "/healthz" && route != "/readyz" && !strings.HasPrefix(route, "/sign") && route != "/welcome" && let(deadletter.Principal{Name: "stranger"}) {
				t.Errorf("%s %s lets in somebody without a grant", method, route)
			}
			for _, rank := range ranks {
				switch in := let(deadletter.Principal{Name: "ana", Grants: rank.grants}); {
				case in && lowest == "":
					lowest = rank.name
				case !in && lowest != "" && lowest != "reader with reveal":
					t.Errorf("%s %s lets in %s, and not %s", method, route, lowest, rank.name)
				}
			}
			where := ", for all queues"
			bounded := slices.Clone(deadletter.Local.Grants)
			bounded[0].Queues = []string{"own"}
			if lowest == "everybody" || let(deadletter.Principal{
				Name: "ana", Grants: bounded,
			}) || !strings.Contains(text, "concerns all queues") {
				where = ""
			}
			hidden := ""
			for _, rank := range ranks {
				bounded := deadletter.Principal{Name: "ana", Grants: slices.Clone(rank.grants)}
				bounded.Grants[0].Queues = []string{"own"}
				whole := let(deadletter.Principal{Name: "ana", Grants: rank.grants})
				// the person saves a view of their own, for which no role is needed
				ownView := method+" "+route == "POST /views"
				if in := let(bounded); in != (whole && where == "") && !ownView {
					t.Errorf("%s %s lets in %s with a grant for one queue: %t", method, route, rank.name, in)
				}
				for kind, ids := range kinds {
					before, after, ok := strings.Cut(route, kind)
					if !ok || where != "" || !whole {
						continue
					}
					path := func(id string) string {
						return paths.Replace(
							before + strings.Replace(kind, "{id}", id, 1) + after,
						)
					}
					if !ask(bounded, path(ids[0])) || status == http.StatusNotFound {
						t.Errorf(
							"%s %s gives %s %d for an object of the own queue: %.200s", method, route, rank.name,
							status,
							text,
						)
					}
					ask(bounded, path(ids[2]))
					missing, said := status, strings.ReplaceAll(text, ids[2], "ID")
					ask(bounded, path(ids[1]))
					if status != missing || strings.ReplaceAll(text, ids[1], "ID") != said &&
						!strings.Contains(text, "<html") {
						t.Errorf(
							"%s %s gives %s %d for an object of others, and %d for none: %.200s", method, route,
							rank.name,
							status, missing, text,
						)
					}
					if hidden = "; of others: hidden"; status != http.StatusNotFound {
						hidden = fmt.Sprintf("; of others: %d, as if it did not exist", status)
					}
				}
			}
			list = append(list, fmt.Sprintf("%-8s %s %s%s%s", method, route, cmp.Or(lowest, "nobody"), where, hidden))
			return nil
		},
	); err != nil {
		t.Fatal(err)
	}
	slices.Sort(list)
	testenv.GoldenText(t, "access.txt", strings.Join(list, "\n")+"\n")
}

// TestNobodyLearnsAnything checks the responses to requests whose sender has not signed in. They
// must contain no number, no name and no part of a page. They must say what to do.
func TestNobodyLearnsAnything(t *testing.T) {
	t.Parallel()
	var who deadletter.Principal
	h := open(t, knownAs(&who))
	h.receive("sms", 3, "x")
	for _, path := range []string{
		"/", "/letters", "/nowhere", "/palette", "/api/v1/letters", "/api/v1/nowhere", "/metrics",
	} {
		a := h.get(path).want(t, 401, "say who you are")
		if strings.Contains(a.text, "sms") || strings.Contains(a.text, "<nav") ||
			a.Header.Get("WWW-Authenticate") == "" {
			t.Errorf("%s: %v %.300s", path, a.Header, a.text)
		}
	}
	h.post("/letters", nil).want(t, 401, "say who you are") // this method does not exist for the route
	r := httptest.NewRequest("POST", "/letters/confirm", nil)
	r.Header.Set("Content-Encoding", "gzip")
	if a := h.do(r).want(t, 415); strings.Contains(a.text, "<nav") {
		t.Errorf("%.300s", a.text)
	}
	if a := h.get("/readyz").want(t, 200); a.text != "{\"ready\":true}\n" {
		t.Errorf("readyz tells nobody %s", a.text)
	}
	who = deadletter.Principal{Name: "ana", Grants: []deadletter.Grant{{Role: deadletter.RoleReader}}}
	h.get("/readyz").want(t, 200, `"brokers":[{"name":"main"`)
}

// TestNobodyGetsAnEvent checks that dlo refuses event streams to a sender who has not signed in,
// and to somebody without a grant.
func TestNobodyGetsAnEvent(t *testing.T) {
	t.Parallel()
	var who deadletter.Principal
	h := open(t, knownAs(&who))
	for _, path := range []string{"/events", "/api/v1/events"} {
		h.get(path).want(t, 401)
	}
	who.Name = "stranger"
	for _, path := range []string{"/events", "/api/v1/events"} {
		h.get(path).want(t, 403)
	}
}

// TestPurgeAndRevealAreApart checks that no role includes the rights to purge and to reveal, and
// that a grant can add them.
func TestPurgeAndRevealAreApart(t *testing.T) {
	t.Parallel()
	who := deadletter.Principal{Name: "ana", Grants: []deadletter.Grant{{Role: deadletter.RoleAdmin}}}
	h := open(t, knownAs(&who))
	id := string(h.receive("sms", 1, "x")[0])
	h.postJSON("/api/v1/operations", `{"action":"purge","ids":["`+id+`"]}`).want(
		t, 403, "ana may not purge letters of queue sms; that needs a grant with purge: true",
	)
	h.postJSON("/api/v1/letters/"+id+"/reveal", `{"header":"a"}`).want(t, 403, "that needs a grant with reveal: true")
	h.postJSON(
		"/api/v1/tokens", `{"name":"ci","role":"reader","reveal":true}`,
	).want(t, 403, "that needs a grant with reveal: true")
	h.postJSON(
		"/api/v1/tokens", `{"name":"ci","role":"operator","purge":true}`,
	).want(t, 403, "that needs a grant with purge: true")
	who.Grants[0].Purge = true
	h.postJSON("/api/v1/operations", `{"action":"purge","ids":["`+id+`"]}`).want(t, 202)
}

// TestTokensOfTheAPI adds, lists and revokes tokens.
func TestTokensOfTheAPI(t *testing.T) {
	t.Parallel()
	h := open(t)
	for body, want := range map[string]string{
		`{"name":"a b","role":"reader"}`:                                    "1 to 64 letters, digits, dots, hyphens and underscores",
		`{"name":"","role":"reader"}`:                                       "1 to 64 letters",
		`{"name":"ci","role":"root"}`:                                       "the roles are viewer, reader, operator, editor, admin",
		`{"name":"ci","role":"reader","purge":true}`:                        "purge needs the role operator or more",
		`{"name":"ci","role":"reader","expires_at":"2020-01-01T00:00:00Z"}`: "expired already",
	} {
		h.postJSON("/api/v1/tokens", body).want(t, 400, want)
	}
	var added api.NewSecret
	a := h.postJSON(
		"/api/v1/tokens", `{"name":"ci","role":"operator","reveal":true,"expires_at":"2027-01-01T00:00:00Z"}`,
	).want(t, 201)
	a.json(t, &added)
	if !strings.HasPrefix(added.Secret, "dlo_") || len(added.Secret) != 47 ||
		a.Header.Get("Location") != "/api/v1/tokens/ci" || added.CreatedBy != "local" {
		t.Errorf("%+v %v", added, a.Header)
	}
	h.postJSON("/api/v1/tokens", `{"name":"ci","role":"reader"}`).want(t, 409, "there is a token ci already")
	if a := h.get("/api/v1/tokens").want(t, 200, `"role":"operator"`); strings.Contains(a.text, added.Secret) {
		t.Error("the list contains the secret")
	}
	known, err := h.store.TokenBy(deadletter.FromAddress(t.Context(), "192.0.2.7"), deadletter.SecretHash(added.Secret))
	if err != nil || known.Name != "ci" || !known.Grant.Reveal || known.Principal().Name != "token:ci" {
		t.Errorf("%+v %v", known, err)
	}
	h.get("/api/v1/tokens").want(t, 200, `"used_at":"`, `"used_from":"192.0.2.7"`)
	h.late.Store(int64(365 * 24 * 60 * 60 * 1e9))
	if _, err := h.store.TokenBy(
		t.Context(), deadletter.SecretHash(added.Secret),
	); !errors.Is(err, deadletter.ErrNotFound) {
		t.Errorf("an expired token: %v", err)
	}
	h.late.Store(0)
	h.sendJSON("DELETE", "/api/v1/tokens/ci", "").want(t, 204)
	h.sendJSON("DELETE", "/api/v1/tokens/ci", "").want(t, 404, "token ci")
	if _, err := h.store.TokenBy(
		t.Context(), deadletter.SecretHash(added.Secret),
	); !errors.Is(err, deadletter.ErrNotFound) {
		t.Errorf("a revoked token: %v", err)
	}
	h.get("/audit").want(
		t, 200, "token added", "token at new address", "192.0.2.7", "token revoked",
		"operator, reveal, until 2027-01-01 00:00 UTC",
	)
	h.get("/api/v1/me").want(t, 200, `"name":"local"`, `"role":"admin"`)
}

// TestAllowNamesTheMethods checks the Allow header of responses with status 405.
func TestAllowNamesTheMethods(t *testing.T) {
	t.Parallel()
	h := open(t)
	for path, want := range map[string]string{
		"/letters": "GET, HEAD", "/api/v1/views": "GET, HEAD, POST", "/api/v1/groups/G-1": "GET, HEAD, PATCH",
		"/operations": "GET, HEAD, POST",
	} {
		if a := h.sendJSON("DELETE", path, "").want(t, 405); a.Header.Get("Allow") != want {
			t.Errorf("%s: %q, want %q", path, a.Header.Get("Allow"), want)
		}
	}
}

// TestTheAddressForProbes sends probes with different Host headers to the address for probes. It
// checks which hosts get an answer. All responses must have the security headers.
func TestTheAddressForProbes(t *testing.T) {
	t.Parallel()
	h := open(t)
	for host, code := range map[string]int{
		"127.0.0.1:8673": 200, "[::1]:8673": 200, "localhost": 200, "10.1.2.3": 200, "attacker.example:8673": 421,
	} {
		for open, want := range map[bool]int{false: code, true: 200} {
			r := httptest.NewRequest("GET", "/healthz", nil)
			r.Host = host
			answer := httptest.NewRecorder()
			if h.Operations(open).ServeHTTP(answer, r); answer.Code != want ||
				answer.Header().Get("X-Content-Type-Options") == "" {
				t.Errorf("%s, open %t: %d", host, open, answer.Code)
			}
		}
	}
}

// TestAConfiguredNameIsNoWayUp covers a configuration that grants rights to a name for which there
// is no user or token yet. A person who adds a user or a token with this name would get these
// rights. dlo must refuse this if the person does not have these rights.
func TestAConfiguredNameIsNoWayUp(t *testing.T) {
	t.Parallel()
	who := deadletter.Principal{Name: "ana", Grants: []deadletter.Grant{{Role: deadletter.RoleAdmin}}}
	more := identity.New(identity.Options{
		Grants: []identity.Grant{
			{
				To:    []string{"user:root", "token:ci"},
				Grant: deadletter.Grant{Role: deadletter.RoleAdmin, Reveal: true, Purge: true},
			},
		},
	})
	h := open(t, knownAs(&who), withUsers, func(o *web.Options) { o.Granted = more.Granted })
	for path, name := range map[string]string{"/api/v1/users": "root", "/api/v1/tokens": "ci"} {
		h.postJSON(path, `{"name":"`+name+`","role":"reader"}`).want(t, 403, "that needs a grant with reveal: true")
		h.postJSON(path, `{"name":"other","role":"reader"}`).want(t, 201)
	}
}

// TestMe checks the response to GET /me for a grant that RabbitMQ limits to some queues. The
// response must not look as if the grant were for all queues.
func TestMe(t *testing.T) {
	t.Parallel()
	who := deadletter.Principal{
		Name: "ana",
		Grants: []deadletter.Grant{
			{
				Role: deadletter.RoleOperator,
				Places: deadletter.Places{
					FromRabbitMQ: true,
					Written:      []deadletter.Written{{Broker: "main", VHost: "/", Name: "own"}},
				},
			},
		},
	}
	h := open(t, knownAs(&who))
	h.get("/api/v1/me").want(t, 200, `"queues":[],"vhosts":[],"brokers":[],"from_rabbitmq":true`)
}
