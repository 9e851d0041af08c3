package web_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/web"
)

// TestFactsAreEditedInPlace checks that each fact of a group has a form of its own on the group's
// page, which changes only this fact. A form that was opened before another person changed the fact
// must not take the change back when it is saved unchanged.
func TestFactsAreEditedInPlace(t *testing.T) {
	t.Parallel()
	who := deadletter.Local
	h := open(t, func(o *web.Options) {
		o.Actor = func(*http.Request) (deadletter.Principal, error) { return who, nil }
	})
	h.receive("mail", 2, "x")
	h.failure = "second"
	h.receive("mail", 1, "x")
	page := h.get("/groups/G-1").want(t, 200).text
	facts := page[strings.Index(page, `<dl class="kv">`):strings.Index(page, "</dl>")]
	save := func(form url.Values) answer {
		form.Set("groups", "G-1")
		form.Set("do", "change")
		return h.post("/triage", form)
	}
	for _, c := range []struct{ fact, was, value string }{
		{"owner", "", "bo"},
		{"ticket", "", "T-4"},
		{"note", "", "the template was renamed"},
		{"severity", "", "page"},
	} {
		n := strings.Count(page, ` name="`+c.fact+`"`)
		if was := ` name="was_` + c.fact + `" value="` + c.was + `"`; n != 1 || !strings.Contains(facts, was) {
			t.Errorf("%s: %d fields", c.fact, n)
		}
		save(url.Values{c.fact: {c.value}, "was_" + c.fact: {c.was}}).want(t, 303)
	}
	var g api.GroupDetail
	h.get("/api/v1/groups/G-1").want(t, 200).json(t, &g)
	if g.Owner != "bo" || g.Ticket != "T-4" || g.Note != "the template was renamed" ||
		g.Severity != deadletter.SeverityPage {
		t.Errorf("%+v", g.GroupRow)
	}
	save(url.Values{"owner": {""}, "was_owner": {""}}).want(t, 400, "say what to change")
	h.get("/groups/G-1").want(t, 200, `name="was_owner" value="bo"`)
	h.post("/groups/merge", url.Values{"id": {"G-1"}, "groups": {"G-2"}}).want(t, 303)
	h.get("/groups/G-1").want(t, 200, `id="h-merged"`, `Split off<span class="sr"> G-2`)
	h.get("/groups/G-2").want(t, 200, "Merged into", `Split off<span class="sr"> G-2`)
	reader := deadletter.Principal{Name: "eve", Grants: []deadletter.Grant{{Role: deadletter.RoleReader}}}
	for address, by := range map[string]deadletter.Principal{
		"/groups/G-2": who, "/groups/G-1?peek=1": who, "/triage": who, "/groups/G-1": reader,
	} {
		who = by
		if text := h.get(address).want(t, 200).text; strings.Contains(text, ` name="was_`) {
			t.Errorf("%s for %s has the forms that change facts", address, by.Name)
		}
	}
	h.get("/groups/G-1").want(t, 200, "T-4", "the template was renamed", ">Page<")
}
