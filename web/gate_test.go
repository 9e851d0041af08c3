package web_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/payload"
	"github.com/deadletteroffice/dlo/web"
)

// TestAnEncodedSlashIsGated checks that a name with a slash does not bypass the gate of its route.
// The router chi uses the encoded path, in which %2F is part of a parameter.
func TestAnEncodedSlashIsGated(t *testing.T) {
	t.Parallel()
	var who deadletter.Principal
	h := open(t, knownAs(&who), withUsers)
	who = teamB
	h.postJSON("/api/v1/users", `{"name":"ops/root","role":"admin"}`).want(t, 201)
	who = deadletter.Principal{
		Name:   "token:low",
		Grants: []deadletter.Grant{{Role: deadletter.RoleViewer, Places: deadletter.Places{Queues: []string{"a"}}}},
	}
	for _, c := range [][2]string{
		{"POST", "/api/v1/users/ops%2Froot/reset"},
		{"DELETE", "/api/v1/users/ops%2Froot"},
		{"DELETE", "/api/v1/tokens/a%2Fb"},
		{"DELETE", "/api/v1/types/a%2Fb"},
		{"POST", "/api/v1/brokers/a%2Fb/connect"},
	} {
		h.sendJSON(c[0], c[1], "").want(t, 403)
	}
	h.sendJSON("PUT", "/api/v1/users/ops%2Froot", "").want(t, 405)
	who = teamB
	h.sendJSON("POST", "/api/v1/users/ops%2Froot/reset", "").want(t, 200, "/welcome?code=")
}

// TestAPathNamesOneUser removes users with names such as x/y and x%2Fy, which look alike in an
// encoded path. dlo must decode the path of a request only once, so that the request removes no
// other user.
func TestAPathNamesOneUser(t *testing.T) {
	t.Parallel()
	h := open(t, withUsers)
	names := []string{"x/y", "x%2Fy", "x%252Fy", "100%", "50%25"}
	for _, name := range names {
		h.postJSON("/api/v1/users", `{"name":"`+name+`","role":"viewer"}`).want(t, 201)
	}
	for len(names) > 0 {
		last := len(names) - 1
		path := "/api/v1/users/" + url.PathEscape(names[last])
		h.postJSON(path+"/reset", ``).want(t, 200, `"name":"`+names[last]+`"`)
		h.sendJSON("DELETE", path, "").want(t, 204)
		h.sendJSON("DELETE", path, "").want(t, 404)
		names = names[:last]
		text := h.get("/api/v1/users").want(t, 200).text
		for _, name := range names {
			if !strings.Contains(text, `"name":"`+name+`"`) {
				t.Errorf("%s removed the user %s: %s", path, name, text)
			}
		}
	}
}

// TestAPurgeOfAnyQueueAsksAgain starts a purge without requesting a plan first. dlo must ask for
// the password, no matter whether the grant covers one queue or all queues.
func TestAPurgeOfAnyQueueAsksAgain(t *testing.T) {
	t.Parallel()
	var who deadletter.Principal
	h := open(t, withRetries, knownAs(&who), withUsers)
	who = teamB
	id := string(h.receive("sms", 1, `{"x":1}`)[0])
	for _, places := range []deadletter.Places{{}, {Queues: []string{"sms"}}} {
		who = deadletter.Principal{
			Name: "ana",
			Grants: []deadletter.Grant{
				{Role: deadletter.RoleAdmin, Purge: true, Again: "give your password again", Places: places},
			},
		}
		h.postJSON(
			"/api/v1/operations", `{"action":"purge","ids":["`+id+`"],"hold":"0s"}`,
		).want(t, 403, "give your password again")
	}
	who.Grants[0].Again = ""
	h.postJSON("/api/v1/operations", `{"action":"purge","ids":["`+id+`"],"hold":"0s"}`).want(t, 202)
}

// TestAnEditReplacesNoMaskedValueOfOthers checks when an operation that edits letters may replace a
// masked value. The author of the operation must have the right to reveal the value. If this right
// depends on a password that was given recently, the author must first give the password.
func TestAnEditReplacesNoMaskedValueOfOthers(t *testing.T) {
	t.Parallel()
	pin, err := deadletter.ParseFieldPath("pin")
	if err != nil {
		t.Fatal(err)
	}
	masks := payload.Masks{JSON: []deadletter.FieldPath{pin}}
	decoder := &payload.Decoder{Mask: masks.Body()}
	editor := deadletter.Grant{Role: deadletter.RoleEditor}
	at := func(queue string) deadletter.Grant {
		return deadletter.Grant{
			Role:   deadletter.RoleReader,
			Reveal: true,
			Places: deadletter.Places{Queues: []string{queue}},
		}
	}
	for name, c := range map[string]struct {
		grants   []deadletter.Grant
		replaced bool
	}{
		"nowhere":   {[]deadletter.Grant{editor}, false},
		"elsewhere": {[]deadletter.Grant{editor, at("other")}, false},
		"again": {
			[]deadletter.Grant{{Role: deadletter.RoleEditor, Reveal: true, Again: "give your password again"}},
			false,
		},
		"there": {[]deadletter.Grant{editor, at("json.plain")}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var who deadletter.Principal
			h := open(t, withRetries, knownAs(&who), func(o *web.Options) {
				o.Decoder, o.Header = func() *payload.Decoder { return decoder }, masks.Header
			})
			who = teamB
			id := string(h.receive("json.plain", 1, `{"pin":"s3cret"}`)[0])
			who = deadletter.Principal{Name: "ana", Grants: c.grants}
			h.postJSON(
				"/api/v1/operations",
				`{"action":"edit","ids":["`+id+
					`"],"patch":[{"op":"replace","path":"/pin","value":"mine"}],"reason":"x","hold":"0s"}`,
			).want(t, 202)
			for range 5 {
				h.advance()
			}
			who = teamB
			results := h.get("/api/v1/operations/O-1").text
			if replaced := !strings.Contains(results, "masked"); replaced != c.replaced {
				t.Errorf("replaced %v: %s", replaced, results)
			}
		})
	}
}

// TestViewAsAsksAgain checks the function "View as". If an admin has to enter the password again,
// this function must not be a way around that. A request that needs the password must be rejected,
// even if it has the cookie of this function.
func TestViewAsAsksAgain(t *testing.T) {
	t.Parallel()
	who := deadletter.Principal{
		Name:   "root",
		Grants: []deadletter.Grant{{Role: deadletter.RoleAdmin, Again: "give your password again"}},
	}
	h := open(t, knownAs(&who), withUsers)
	for _, cookie := range []string{"", "eyJyb2xlIjoiYWRtaW4ifQ"} { // {"role":"admin"}
		r := httptest.NewRequest("POST", "https://dlo.example/view-as", strings.NewReader("role=reader"))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.AddCookie(&http.Cookie{Name: "dlo-view-as", Value: cookie})
		h.do(r).want(t, 403)
	}
}

// TestLettersOfUnknownOriginAreActedOn covers letters of unknown origin in an inbox. A person with
// a right for this inbox must be able to act on the letters, on their group and on operations with
// them. A person who has a right only for another queue must get the same responses as if the
// letters, the group and the operations did not exist.
func TestLettersOfUnknownOriginAreActedOn(t *testing.T) {
	t.Parallel()
	who := teamB
	h := open(t, withRetries, knownAs(&who), withUsers)
	other := string(h.receive("sms", 1, `{"x":1}`)[0])
	ids := h.receive("", 2, `{"x":2}`)
	operator := func(queue string) deadletter.Principal {
		return deadletter.Principal{
			Name: "ana",
			Grants: []deadletter.Grant{
				{Role: deadletter.RoleOperator, Places: deadletter.Places{Queues: []string{queue}}},
			},
		}
	}
	who = operator("dlo.letters")
	h.get("/letters/"+string(ids[0])).want(t, 200)
	h.get("/letters/"+other).want(t, 404)
	h.get("/groups/G-2").want(t, 200)
	h.get("/groups/G-1").want(t, 404)
	h.sendJSON("PATCH", "/api/v1/groups/G-2", `{"note":"ours"}`).want(t, 200)
	h.postJSON(
		"/api/v1/operations", `{"action":"discard","ids":["`+string(ids[0])+`"],"reason":"x","hold":"0s"}`,
	).want(t, 202)
	h.advance()
	h.get("/api/v1/letters/"+string(ids[0])).want(t, 200, `"state":"discarded"`)
	h.postJSON(
		"/api/v1/operations", `{"action":"discard","ids":["`+string(ids[1])+`"],"reason":"x","hold":"1h"}`,
	).want(t, 202)
	who = operator("sms")
	h.get("/api/v1/letters/"+string(ids[0])).want(t, 404)
	h.get("/api/v1/groups/G-2").want(t, 404)
	h.sendJSON("PATCH", "/api/v1/groups/G-2", `{"note":"theirs"}`).want(t, 404)
	h.get("/api/v1/operations/O-1").want(t, 404)
	h.postJSON("/api/v1/operations/O-2/cancel", `{}`).want(t, 404)
	who = operator("dlo.letters")
	h.postJSON("/api/v1/operations/O-2/cancel", `{}`).want(t, 200)
}
