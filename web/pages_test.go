package web_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/web"
	"github.com/deadletteroffice/dlo/web/view"
)

func TestTheme(t *testing.T) {
	t.Parallel()
	h := open(t)
	a := h.post("/theme", url.Values{"theme": {"dark"}, "return": {"/operations"}})
	a.redirectsTo(t, "/operations")
	cookie := a.Cookies()[0]
	if cookie.Name != "theme" || cookie.Value != "dark" || !cookie.HttpOnly ||
		cookie.SameSite != http.SameSiteStrictMode {
		t.Errorf("%+v", cookie)
	}
	r := httptest.NewRequest("GET", "/operations", nil)
	r.AddCookie(cookie)
	h.do(r).want(t, 200, `<html lang="en" data-theme="dark">`)
	r = httptest.NewRequest("GET", "/operations", nil)
	r.AddCookie(&http.Cookie{Name: "theme", Value: `x" onload="y`})
	if h.do(r).want(t, 200, `<html lang="en">`); t.Failed() {
		t.Error("a foreign value of the cookie reached the page")
	}
	if a := h.post("/theme", url.Values{"theme": {"nonsense"}}); a.Cookies()[0].MaxAge >= 0 {
		t.Error("an unknown theme was kept")
	}
}

func TestNobodyIsSentAway(t *testing.T) {
	t.Parallel()
	h := open(t)
	for _, to := range []string{
		"//evil.example", `/\evil.example`, "https://evil.example/", "https:evil", "javascript:alert(1)", "evil", "",
		"/\t/evil.example", "\\\\evil",
	} {
		if got := h.post("/theme", url.Values{"return": {to}}).Header.Get("Location"); got != "/" {
			t.Errorf("return=%q leads to %q", to, got)
		}
		id := h.receive("sms", 1, "x")[0]
		page := h.post("/letters/confirm", url.Values{
			"action": {"requeue"},
			"id":     {string(id)},
			"return": {to},
		}).want(t, 200).text
		if strings.Contains(page, "evil") || strings.Contains(page, "javascript:") {
			t.Errorf("return=%q is on the confirm page", to)
		}
	}
	h.post("/theme", url.Values{"return": {"/letters?q=state%3Adead"}}).redirectsTo(t, "/letters?q=state%3Adead")
}

func TestABrokerThatIsDownIsABanner(t *testing.T) {
	t.Parallel()
	h := open(t, func(o *web.Options) {
		o.Problems = func() []deadletter.Problem {
			return []deadletter.Problem{{Title: "The disk is nearly full.", Text: "200 MiB free."}}
		}
	})
	h.receive("sms", 1, "x")
	h.brokers = []deadletter.BrokerStatus{
		{
			Name:    "main",
			VHost:   "/",
			Reached: true,
			Version: "4.3.6",
			Reason:  "connection refused",
			Since:   start,
			NextTry: start.Add(68 * time.Second),
			Inboxes: []deadletter.InboxStatus{{Queue: "dlo.letters"}},
		},
		{
			Name:      "second",
			Connected: true,
			Blocked:   "memory alarm",
			Inboxes:   []deadletter.InboxStatus{{Queue: "orders_error", Reason: "it has a delivery limit"}},
		},
	}
	h.get("/letters?q=").want(
		t, 200, "Connection to broker main lost 1 min ago.", "<code>dlo.letters</code>",
		"Error: connection refused. Retrying in 8 s.", "1 of 2 brokers connected",
		"Broker second accepts no messages now.", "memory alarm", "Inbox orders_error is not read.",
		"it has a delivery limit", "The disk is nearly full.", "1 letter matches",
	)
}

// TestABrokerThatWasNeverThereKeepsNothing covers a broker that has never been connected. Pages
// must say what to check, and must not claim that letters wait at that broker.
func TestABrokerThatWasNeverThereKeepsNothing(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.brokers = []deadletter.BrokerStatus{
		{
			Name:     "main",
			VHost:    "/",
			Exchange: "dlo.dlx",
			Setting:  "DLO_AMQP_URL",
			Reason:   "connection refused",
			Since:    start,
			Inboxes:  []deadletter.InboxStatus{{Queue: "dlo.letters"}},
		},
		{
			Name:    "second",
			VHost:   "shop",
			Setting: "<url>",
			Reason:  "refused",
			Since:   start,
			Inboxes: []deadletter.InboxStatus{{Queue: "orders_error"}},
		},
	}
	const never = "Until dlo has connected once, "
	for _, path := range []string{"/", "/letters?q="} { // one page with a list of letters, and one without
		h.get(path).want(
			t, 200, "Never connected to main:",
			"connection refused. Check DLO_AMQP_URL. "+never+"dead letters are dropped by the broker.",
			"refused. Check &lt;url&gt;. "+never+"it is not known whether",
		).wantNot(t, "Nothing is lost", "lost 1 min ago")
	}
	h.get("/").want(t, 200, "Connect the broker:", "not yet.")
	h.receive("sms", 1, "x")
	h.get("/").want(
		t, 200, "sms is failing", "It is not known what has died on broker main.", "was never read",
	).wantNot(t, "Nothing is lost")
	h.brokers[0].Reached = true
	h.get("/").want(
		t, 200, "Not connected to broker main since dlo started 1 min ago.", "Nothing is lost: dead letters wait in ",
		"It is not known what has died on broker main since it was last connected.",
	)
	h.get("/readyz").want(
		t, 503, "Broker main is not connected.", "Never connected to broker second.", "it is not known whether",
		`"cure":"Check <url>."`,
	)
}

// TestEveryPlaceHasItsPage checks that each navigation link has a page, and that no two links have
// the same key.
func TestEveryPlaceHasItsPage(t *testing.T) {
	t.Parallel()
	h := open(t)
	keys := map[string]string{}
	for _, p := range view.Places {
		path := p.Path
		if p.Section == view.SectionLetters {
			path += "?q=" // without a query, this page redirects to dead letters
		}
		a := h.get(path)
		if a.StatusCode != 200 {
			t.Errorf("%s: no page; see placePages in pages.go", p.Name)
			continue
		}
		a.want(t, 200, `href="`+p.Path+`" data-key="`+p.Key+`" aria-current="page"`)
		if keys[p.Key] != "" || p.Key == "" {
			t.Errorf("%s and %s have the key %q", p.Name, keys[p.Key], p.Key)
		}
		keys[p.Key] = p.Name
	}
}

// TestWhatIsNotThereIsNamed checks that the page for a missing object names the object. This must
// be safe for any name, and a long name must be cut.
func TestWhatIsNotThereIsNamed(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.receive("sms", 1, "x")
	none := "019a9f3e-5b1e-7ac0-9d3f-44e279c3aeae"
	const letter, operation = "A letter keeps its page, even after a purge.", "An operation keeps its page."
	for path, want := range map[string][2]string{
		"/groups/G-9999":               {"There is no group G-9999.", "A group keeps its number, even if it is merged"},
		"/groups/nonsense":             {"There is no group nonsense.", "A group keeps its number"},
		"/letters/" + none:             {"There is no letter " + none + ".", letter},
		"/letters/" + none + "/edit":   {"There is no letter " + none + ".", letter},
		"/letters/" + none + "/body":   {"There is no letter " + none + ".", letter},
		"/operations/O-9":              {"There is no operation O-9.", operation},
		queuePage("main", "/", "x"):    {"There is no queue x in vhost / of broker main.", "It may have been deleted"},
		"/nowhere":                     {"There is no page /nowhere.", "Check the address."},
		"/queues/x":                    {"There is no page /queues/x.", "Check the address."},
		"/a%00%3Cscript%3E":            {`There is no page /a\x00&lt;script&gt;.`, "Check the address."},
		"/" + strings.Repeat("x", 300): {"There is no page /" + strings.Repeat("x", 56) + "….", "Check the address."},
	} {
		h.get(path).want(t, 404, "Not found", want[0], want[1]).wantNot(t, "purged a letter", "of your grants")
	}
	for path, want := range map[string]string{
		"/operations/O-9/pause": "There is no operation O-9.", "/views/7/remove": "There is no view 7.",
		"/rules/overrides/x/remove": "There is no redirect x.",
	} {
		h.post(path, nil).want(t, 404, want)
	}
	h.post("/triage", url.Values{"groups": {"G-77"}, "do": {"resolve"}}).want(t, 404, "There is no group G-77.")
	h.postJSON(
		"/api/v1/operations", `{"action":"requeue","ids":["`+none+`"]}`,
	).want(t, 404, `"detail":"there is no letter `+none+`"`)
}

// TestADenialNamesTheMissingRight checks that pages and API say which role an action needs and
// which role the person has. If the person sees only some queues, the page of a missing object says
// so.
func TestADenialNamesTheMissingRight(t *testing.T) {
	t.Parallel()
	who := deadletter.Principal{Name: "ana", Grants: []deadletter.Grant{
		{Role: deadletter.RoleViewer, Places: deadletter.Places{Queues: []string{"orders"}}},
		{Role: deadletter.RoleOperator, Places: deadletter.Places{Queues: []string{"mail"}}},
	}}
	h := open(t, knownAs(&who))
	id := string(h.receive("orders", 1, "x")[0])
	const here = "ana may not requeue letters of queue orders; that needs the role operator, and ana has the role viewer"
	requeue := `{"action":"requeue","ids":["` + id + `"]}`
	h.postJSON("/api/v1/operations", requeue).want(t, 403, `"detail":"`+here+`"`)
	h.post("/operations", url.Values{"action": {"requeue"}, "id": {id}, "scope": {"page"}}).want(t, 403, here)
	h.post("/letters/confirm", url.Values{"action": {"requeue"}, "id": {id}, "scope": {"page"}}).want(
		t, 403, here, "See what you may do",
	).wantNot(t, "another site")
	h.get("/groups/G-9999").want(t, 404, "You see only the queues of your grants.")
	who.Grants = who.Grants[:1]
	h.postJSON("/api/v1/operations", requeue).want(
		t, 403, "ana may not requeue letters; that needs the role operator, and ana has the role viewer",
	)
}

// TestFullPagesStaySmall checks that full pages of ordinary letters do not exceed 150 KB: lists of
// more groups and letters than fit on a page, and each view of a letter of 1 MiB. Only the editor
// is larger, because it contains the whole text.
func TestFullPagesStaySmall(t *testing.T) {
	t.Parallel()
	h := open(t)
	for i := range 60 {
		h.receive(fmt.Sprintf("orders.service-%03d.created", i), 2, `{"id":7,"total":{"amount":12}}`)
	}
	items := strings.Repeat(`{"id":90417,"name":"'blue' & <green>","tags":["a","b"]},`, 1<<20/56)
	paths := []string{"/", "/triage", "/letters?q=", "/queues", "/connection", "/rules", "/schemas", "/audit", "/operations"}
	for _, body := range []string{`{"items":[` + items + `0]}`, strings.Repeat("'quoted' & <tagged>\n", 1<<20/20), items} {
		id := h.receive("orders", 1, body)[0]
		for _, tab := range []string{"", "?tab=json", "?tab=raw", "?tab=headers", "?tab=history"} {
			paths = append(paths, "/letters/"+string(id)+tab)
		}
	}
	for _, path := range append(paths, "/groups/G-1") {
		if size := len(h.get(path).want(t, 200).text); size > 150_000 {
			t.Errorf("%s takes %d bytes", path, size)
		}
	}
}
