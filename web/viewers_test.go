package web_test

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/web"
)

// TestViewersReadNothing checks that a viewer gets no byte of a body, a header or a property, and
// cannot find letters by their values.
//
// The test also uses a person who may read the letters of one queue. In other queues, this person
// may only see that there are letters. The person must be able to read the letters of the one
// queue. The person must also be able to read letters of unknown origin, if they are in an inbox
// for which the person has the right. All other letters must stay unreadable.
func TestViewersReadNothing(t *testing.T) {
	t.Parallel()
	h := &teams{n: map[string]int{}, said: "kanarie"}
	h.house = open(
		t, withRetries, withLibrary, withUsers, knownAs(&h.who),
		func(o *web.Options) { o.Fields = []string{"note"} },
	)
	h.b = h.die("orders", "olive", 40)
	h.a = h.die("own", "apple", 10)
	h.b = append(h.b, h.arrive("inbox", "", "olive", 5)...) // of unknown origin
	h.a = append(h.a, h.arrive("own.inbox", "", "apple", 3)...)
	h.who = deadletter.Principal{Name: "root", Grants: teamB.Grants}
	id, own := string(h.b[0]), string(h.a[0])
	h.postJSON("/api/v1/letters/"+id+"/revisions", `{"body":"a2FuYXJpZQ==","reason":"edit"}`).want(t, 201)
	h.postJSON("/api/v1/operations", `{"action":"hold","ids":["`+string(h.b[7])+`"],"reason":"why"}`).want(t, 202)
	h.advance()

	viewer := deadletter.Principal{Name: "vera", Grants: []deadletter.Grant{{Role: deadletter.RoleViewer}}}
	h.who = viewer
	shown := 0
	for _, path := range h.routePaths() {
		a := h.get(path)
		if a.StatusCode == 200 {
			shown++
		}
		h.clean("GET "+path, path, a)
	}
	if shown < 150 {
		t.Errorf("only %d responses show anything", shown)
	}
	lost := string(h.b[len(h.b)-1])
	for _, id := range []string{id, lost} {
		h.get("/letters/"+id).want(t, 200, "not its content", "olive failed")
		h.get("/api/v1/letters/"+id).want(t, 200, `"withheld":true`, `"body":null`)
	}

	for _, who := range []deadletter.Principal{
		viewer,
		{
			Name: "ana",
			Grants: []deadletter.Grant{
				{Role: deadletter.RoleViewer},
				{Role: deadletter.RoleReader, Places: deadletter.Places{Queues: []string{"own", "own.inbox"}}},
			},
		},
	} {
		h.who = who
		for _, id := range []string{id, lost} {
			for _, path := range []string{
				"/letters/" + id + "/body", "/letters/" + id + "/copy", "/api/v1/letters/" + id + "/body",
			} {
				h.clean(path, path, h.get(path).want(t, 403, "role reader"))
			}
			h.clean("a letter", "", h.get("/letters/"+id).want(t, 200))
			h.clean("a letter", "", h.get("/api/v1/letters/"+id).want(t, 200, `"withheld":true`))
		}
	}
	for q, want := range map[string]int{
		"kanarie": 13, "body.note:kanarie": 13, "header.x-tenant:kanarie": 13, "app:kanarie-app": 0, "-kanarie": 0,
		"state:dead,held": 58,
	} {
		var n struct{ Count int }
		if h.get("/api/v1/letters/count?q="+url.QueryEscape(q)).want(t, 200).json(t, &n); n.Count != want {
			t.Errorf("%s finds %d letters for somebody who reads 13 of 58, want %d", q, n.Count, want)
		}
	}
	h.get("/letters/"+own).want(t, 200, "kanarie")
	h.get("/letters/"+string(h.a[len(h.a)-1])).want(t, 200, "kanarie")
	if lines := strings.Split(
		strings.TrimSpace(h.get("/api/v1/letters/export").want(t, 200).text), "\n",
	); len(lines) != 58 {
		t.Errorf("%d letters are exported", len(lines))
	} else {
		for _, line := range lines {
			if readable := strings.Contains(line, `"queue":"own"`) ||
				strings.Contains(line, `"inbox":"own.inbox"`); strings.Contains(line, "kanarie") != readable {
				t.Errorf("exported: %s", line)
			} else if !readable && !(strings.Contains(line, `"masked":true`) && strings.Contains(line, `"body":null`)) {
				t.Errorf("exported as a letter without a body: %s", line)
			}
		}
	}
	h.who = viewer
	for _, q := range []string{
		"kanarie", "body.note:kanarie", "header.x-tenant:kanarie", "app:kanarie-app", "message_id:k*",
		"-correlation_id:x",
	} {
		h.get("/api/v1/letters?q="+url.QueryEscape(q)).want(t, 403, "role reader")
	}
}

// TestPeopleToAssign covers a person with a grant for some queues. It checks which names the person
// is offered as the owner of a group: first their own, then the owners of groups that they may see,
// and no others. The note of a group must name its author.
func TestPeopleToAssign(t *testing.T) {
	t.Parallel()
	h := twoTeams(t)
	h.who = teamA(deadletter.RoleOperator)
	h.who.Name = "bob"
	h.patchJSON("/api/v1/groups/G-1", `{"owner":"cleo","note":"ask cleo"}`).want(t, 200)
	h.get("/api/v1/groups/G-1").want(t, 200, `"note_by":"bob"`)
	h.who.Name = "ana"
	for _, path := range []string{"/groups/G-1", "/triage"} {
		page := h.get(path).want(t, 200, "ask cleo", "bob")
		_, list, _ := strings.Cut(page.text, `<datalist id="people">`)
		list, _, _ = strings.Cut(list, "</datalist>")
		var offered []string
		for _, m := range regexp.MustCompile(`value="([^"]*)"`).FindAllStringSubmatch(list, -1) {
			offered = append(offered, m[1])
		}
		if len(offered) < 2 || offered[0] != "ana" || !slices.Contains(offered, "cleo") {
			t.Errorf("%s offers %q", path, offered)
		}
		h.clean(path, "", page)
	}
	h.get("/groups/G-1").want(t, 200, "by bob")
}
