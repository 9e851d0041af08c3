package web_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/rules"
	"github.com/deadletteroffice/dlo/web"
)

// wait stores n letters that died in a queue, and has the rules of the house decide about them.
func (h *house) wait(queue string, n int) []deadletter.ID {
	h.t.Helper()
	h.window++
	w := deadletter.Window{Session: 1, Number: h.window, Broker: "main", VHost: "/", Inbox: "dlo.letters", Uncertain: deadletter.UncertainKeep, Horizon: time.Minute, HorizonRows: 1000}
	for i := range n {
		a := deadletter.Arrival{Exchange: "dlo.dlx", RoutingKey: queue, Tag: uint64(i + 1), Body: []byte(fmt.Sprint(queue, h.window, i)), Properties: deadletter.Properties{Headers: deadletter.Table{
			"x-death": []any{deadletter.Table{"queue": queue, "exchange": "events", "reason": "rejected", "count": int64(1), "routing-keys": []any{"k"}, "time": start.Add(-time.Minute)}},
		}}}
		print, err := a.Print()
		if err != nil {
			h.t.Fatal(err)
		}
		a.Fingerprint = print
		w.Arrivals = append(w.Arrivals, a)
	}
	r, err := h.store.Receive(context.Background(), w)
	if err == nil {
		err = h.store.Settle(context.Background(), r.Window)
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
	h.postJSON("/api/v1/rules/apply", `{}`).want(t, 200, `{"dry_run":false,"looked_at":7,"unchanged":7,"left_alone":{},"changes":[],"stopped":false}`)
	h.postJSON("/api/v1/operations", `{"action":"reschedule","ids":["`+string(sms[4])+`"],"due_at":"2026-11-22T09:00:00Z"}`).want(t, 202)
	h.advance()
	h.book.Replace(&rules.Set{Default: rules.Rule{Name: rules.DefaultName, Retry: &rules.Retry{}, Severity: deadletter.SeverityPage}})
	change := `"changes":[{"from":{"rule":"default","outcome":"retry"},"to":{"rule":"default","outcome":"dead"},"letters":4,"examples":["` + string(sms[0]) + `","` + string(sms[1]) + `","` + string(sms[2]) + `"]}]`
	h.postJSON("/api/v1/rules/apply", `{"q":"queue:sms","dry_run":true}`).want(t, 200, `{"dry_run":true,"looked_at":5,"unchanged":0,"left_alone":{"a person chose when it is due":1},`+change)
	h.get("/api/v1/letters/count?q=state:scheduled").want(t, 200, `"count":7`)
	h.postJSON("/api/v1/rules/apply", `{"q":"queue:sms","reason":"the carrier is gone"}`).want(t, 200, `{"dry_run":false,"looked_at":5,"unchanged":0,"left_alone":{"a person chose when it is due":1},`+change)
	h.get("/api/v1/letters/count?q=state:dead+severity:page").want(t, 200, `"count":4`)
	h.get("/api/v1/audit?kind=rules+applied").want(t, 200, `"detail":"to 5 letters, those that wait of queue:sms: 0 retried otherwise, 4 dead, 0 discarded, 0 unchanged, 1 left alone: the carrier is gone"`)
	h.get("/audit?kind=rules+applied").want(t, 200, "the carrier is gone")

	h.postJSON("/api/v1/rules/apply", `{"q":"state:daed"}`).want(t, 400, `"position":6`)
	h.postJSON("/api/v1/rules/apply", `{"rules":[]}`).want(t, 400, "unknown field")
	h.postJSON("/api/v1/rules/apply", `{"reason":"`+strings.Repeat("x", 501)+`"}`).want(t, 400, "500 bytes")
	h.Drain()
	h.postJSON("/api/v1/rules/apply", `{}`).want(t, 503)
}

func TestWhoMayNotRescheduleMayNotApply(t *testing.T) {
	t.Parallel()
	h := open(t, func(o *web.Options) {
		o.Actor = func(*http.Request) (deadletter.Principal, error) { return deadletter.Principal{Name: "mallory"}, nil }
	})
	h.wait("sms", 1)
	h.book.Replace(&rules.Set{Default: rules.Rule{Name: rules.DefaultName, Retry: &rules.Retry{}}})
	h.postJSON("/api/v1/rules/apply", `{}`).want(t, 403, "may not reschedule letters of queue sms")
}
