package web_test

import (
	"context"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/rules"
	"github.com/deadletteroffice/dlo/web"
)

// wait stores n letters that died in a queue. The rules of dlo decide on them.
func (h *house) wait(queue string, n int) []deadletter.ID {
	h.t.Helper()
	h.window++
	w := deadletter.Window{
		Session: 1, Number: h.window, Broker: "main", VHost: "/", Inbox: "dlo.letters",
		Uncertain: deadletter.UncertainKeep, Horizon: time.Minute, HorizonRows: 1000,
	}
	for i := range n {
		a := deadletter.Arrival{
			Exchange:   "dlo.dlx",
			RoutingKey: queue,
			Tag:        uint64(i + 1),
			Body:       []byte(fmt.Sprint(queue, h.window, i)),
			Properties: deadletter.Properties{Headers: deadletter.Table{
				"x-death": []any{
					deadletter.Table{
						"queue":        queue,
						"exchange":     "events",
						"reason":       "rejected",
						"count":        int64(1),
						"routing-keys": []any{"k"},
						"time":         start.Add(-time.Minute),
					},
				},
			}},
		}
		print, err := a.Print()
		if err != nil {
			h.t.Fatal(err)
		}
		a.Fingerprint = print
		w.Arrivals = append(w.Arrivals, a)
	}
	r, err := h.store.Receive(context.Background(), w)
	if err == nil {
		err = h.store.SettleWindow(context.Background(), r.Window)
	}
	for n := 1; err == nil && n > 0; {
		n, err = h.classifier.Step(context.Background())
	}
	if err != nil {
		h.t.Fatal(err)
	}
	return r.New
}

func TestRulesAreAppliedByTheAPI(t *testing.T) {
	t.Parallel()
	h := open(t)
	sms := h.wait("sms", 5)
	h.wait("email", 2)
	h.postJSON("/api/v1/rules/apply", `{}`).want(
		t, 200, `{"dry_run":false,"looked_at":7,"unchanged":7,"left_alone":{},"changes":[],"stopped":false}`,
	)
	h.postJSON(
		"/api/v1/operations", `{"action":"reschedule","ids":["`+string(sms[4])+`"],"due_at":"2026-11-22T09:00:00Z"}`,
	).want(t, 202)
	h.advance()
	h.book.Replace(&rules.Set{
		Default: rules.Rule{Name: rules.DefaultName, Retry: &rules.Retry{}, Severity: deadletter.SeverityPage},
	})
	change := `"changes":[{"from":{"rule":"default","outcome":"retry"},"to":{"rule":"default","outcome":"dead"},"letters":4,"examples":["` + string(
		sms[0],
	) + `","` + string(sms[1]) + `","` + string(sms[2]) + `"]}]`
	h.postJSON("/api/v1/rules/apply", `{"q":"queue:sms","dry_run":true}`).want(
		t, 200, `{"dry_run":true,"looked_at":5,"unchanged":0,"left_alone":{"someone set its due time":1},`+change,
	)
	h.get("/api/v1/letters/count?q=state:scheduled").want(t, 200, `"count":7`)
	h.postJSON("/api/v1/rules/apply", `{"q":"queue:sms","reason":"the carrier is gone"}`).want(
		t, 200, `{"dry_run":false,"looked_at":5,"unchanged":0,"left_alone":{"someone set its due time":1},`+change,
	)
	h.get("/api/v1/letters/count?q=state:dead+severity:page").want(t, 200, `"count":4`)
	h.get("/api/v1/audit?kind=rules+applied").want(
		t, 200,
		`"detail":"to 5 letters, those scheduled of queue:sms: 0 retried otherwise, 4 dead, 0 discarded, 0 unchanged, 1 left alone: the carrier is gone"`,
	)
	h.get("/audit?kind=rules+applied").want(t, 200, "the carrier is gone")

	h.postJSON("/api/v1/rules/apply", `{"q":"state:daed"}`).want(t, 400, `"position":6`)
	h.postJSON("/api/v1/rules/apply", `{"rules":[]}`).want(t, 400, `there is no member \"rules\" here`)
	h.postJSON("/api/v1/rules/apply", `{"reason":"`+strings.Repeat("x", 501)+`"}`).want(t, 400, "500 bytes")
	h.Drain()
	h.postJSON("/api/v1/rules/apply", `{}`).want(t, 503)
}

// hidden returns the value of a hidden field of a page.
func hidden(t *testing.T, a answer, name string) string {
	t.Helper()
	_, rest, ok := strings.Cut(a.text, `name="`+name+`" value="`)
	value, _, _ := strings.Cut(rest, `"`)
	if !ok {
		t.Fatalf("no field %s in: %.2000s", name, a.text)
	}
	return html.UnescapeString(value)
}

// TestRulesAreAppliedByThePage checks the form on the Rules page, the page that shows the changes
// in advance, and the button that makes the changes. Mistakes must be shown at their fields. If
// there are mistakes, nothing may change.
func TestRulesAreAppliedByThePage(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.Rules = h.book
	sms := h.wait("sms", 5)
	h.wait("email", 2)
	waiting := func(n int) {
		t.Helper()
		h.get("/api/v1/letters/count?q=state:scheduled").want(t, 200, fmt.Sprintf(`"count":%d`, n))
	}
	h.get("/rules").want(t, 200, "Apply to scheduled letters", `action="/rules/apply/confirm"`)
	h.post("/rules/apply/confirm", nil).want(
		t, 200, "Nothing would change", "0 of 7 scheduled letters would change, 7 already match the rules.",
		"All scheduled letters.",
	)
	h.postJSON(
		"/api/v1/operations", `{"action":"reschedule","ids":["`+string(sms[4])+`"],"due_at":"2026-11-22T09:00:00Z"}`,
	).want(t, 202)
	h.advance()

	set := func(d rules.Rule, loaded time.Duration) {
		d.Name = rules.DefaultName
		h.book.Replace(&rules.Set{Default: d, Loaded: start.Add(loaded)})
	}
	set(rules.Rule{Retry: &rules.Retry{}, Severity: deadletter.SeverityPage}, 0)
	plan := h.post("/rules/apply/confirm", url.Values{"q": {" queue:sms since:24h "}}).want(t, 200,
		"Apply the rules to 4 letters", "4 of 5 scheduled letters would change, 0 already", "Nothing is changed yet.",
		"default: retried", "default: dead", "/letters/"+string(sms[0]), "1 letter:", "someone set its due time",
		"Apply to 4 letters")
	q, loaded := hidden(t, plan, "q"), hidden(t, plan, "loaded")
	if !strings.HasPrefix(q, "queue:sms since:2026-11-19T09:01:00") || loaded != "2026-11-20T09:00:00Z" {
		t.Errorf("the plan is for %q, rules of %q", q, loaded)
	}
	waiting(7)

	form := func(changes ...string) url.Values {
		v := url.Values{"q": {q}, "loaded": {loaded}, "reason": {"the <carrier> is gone"}}
		for i := 0; i < len(changes); i += 2 {
			v.Set(changes[i], changes[i+1])
		}
		return v
	}
	h.post("/rules/apply", form("reason", strings.Repeat("x", 501))).want(
		t, 400, "Nothing was changed: see the marked field.", "at most 500 bytes", `id="rule-reason-wrong"`,
		"Apply to 4 letters", strings.Repeat("x", 501),
	)
	h.post("/rules/apply", form("loaded", "")).want(
		t, 409, "Nothing was changed: the rules have been reloaded since; below is what they would change now.",
		"the &lt;carrier&gt; is gone",
	)
	h.post("/rules/apply", form("q", "state:daed")).want(
		t, 400, `value="state:daed"`, `id="rule-q-wrong"`, "did you mean",
	)
	h.post("/rules/apply/confirm", url.Values{"q": {"state:<b>"}}).want(
		t, 400, `value="state:&lt;b&gt;"`, `aria-describedby="rule-q-wrong"`,
	)
	waiting(7)

	h.post("/rules/apply", form()).want(
		t, 200, "The rules were applied: 4 letters have changed", "4 of 5 scheduled letters changed", "default: dead",
		"Skipped", "Back to the rules",
	)
	waiting(3)
	h.get("/api/v1/letters/count?q=state:dead+severity:page").want(t, 200, `"count":4`)
	h.get("/audit?kind=rules+applied").want(
		t, 200, "to 5 letters, those scheduled of queue:sms",
		"0 retried otherwise, 4 dead, 0 discarded, 0 unchanged, 1 left alone: the &lt;carrier&gt; is gone",
	)
	if n := strings.Count(h.get("/api/v1/audit?kind=rules+applied").text, `"kind":"rules applied"`); n != 1 {
		t.Errorf("%d entries in the audit: who only asks leaves none", n)
	}

	set(rules.Rule{Discard: true, Retry: &rules.Retry{}}, time.Minute)
	h.post("/rules/apply", form("q", "")).want(
		t, 409, "the rules have been reloaded since",
		"2 letters would be discarded, as known noise, and can be restored for 7 d.", "Apply to 2 letters, discard 2",
	)
	waiting(3)
	h.Drain()
	h.post("/rules/apply/confirm", nil).want(t, 503)
	h.post("/rules/apply", form()).want(t, 503)
}

// TestALargeDiscardByARuleIsTyped checks that people must type the number of letters before a rule
// discards many of them, as for every large discard.
func TestALargeDiscardByARuleIsTyped(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.Rules = h.book
	h.wait("sms", 150)
	h.book.Replace(&rules.Set{Default: rules.Rule{Name: rules.DefaultName, Discard: true, Retry: &rules.Retry{}}})
	plan := h.post("/rules/apply/confirm", nil).want(
		t, 200, "Type 150, the number of letters to be discarded, to confirm", "discard 150",
	)
	form := url.Values{
		"loaded":   {hidden(t, plan, "loaded")},
		"discards": {hidden(t, plan, "discards")},
		"count":    {"15"},
	}
	h.post("/rules/apply", form).want(t, 400, "Type 150 to discard 150 letters.", `value="15"`)
	form.Set("count", "150")
	h.post("/rules/apply", form).want(
		t, 200, "The rules were applied: 150 letters have changed", "150 letters were discarded",
	)
	h.get("/api/v1/letters/count?q=state:discarded").want(t, 200, `"count":150`)
}

func TestOnlyOurPagesApplyRules(t *testing.T) {
	t.Parallel()
	h := open(t)
	for _, path := range []string{"/rules/apply", "/rules/apply/confirm"} {
		r := httptest.NewRequest("POST", path, nil)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Site", "cross-site")
		h.do(r).want(t, 403)
		h.get(path).want(t, 405)
	}
}

func TestWhoMayNotRescheduleMayNotApply(t *testing.T) {
	t.Parallel()
	h := open(t, func(o *web.Options) {
		o.Actor = func(*http.Request) (deadletter.Principal, error) {
			return deadletter.Principal{Name: "mallory", Grants: []deadletter.Grant{{Role: deadletter.RoleReader}}}, nil
		}
	})
	h.wait("sms", 1)
	h.book.Replace(&rules.Set{Default: rules.Rule{Name: rules.DefaultName, Retry: &rules.Retry{}}})
	h.postJSON("/api/v1/rules/apply", `{}`).want(t, 403, "may not reschedule letters")
	h.post("/rules/apply/confirm", nil).want(t, 403, "may not reschedule letters")
	h.post("/rules/apply", nil).want(t, 403)
}
