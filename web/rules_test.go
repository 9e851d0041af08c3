package web_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/rules"
	"github.com/deadletteroffice/dlo/web"
)

// withRetries gives dlo a default rule with two retries and jitter.
func withRetries(o *web.Options) {
	o.Rules = rules.NewBook(&rules.Set{
		File: "dlo.yaml", Loaded: start, Seed: 7,
		Default: rules.Rule{
			Name: rules.DefaultName,
			Retry: &rules.Retry{
				Delays: []time.Duration{10 * time.Second, 100 * time.Second},
				Jitter: .1,
				Waiter: rules.WaiterStore,
			},
			Severity: deadletter.SeverityDigest,
		},
	})
}

func TestTheRulesPage(t *testing.T) {
	t.Parallel()
	h := open(t, withRetries, func(o *web.Options) {
		set := *o.Rules.Set()
		rate := 2.5
		set.Rules = []rules.Rule{
			{Name: "noise", Discard: true, YAML: "name: noise\ndiscard: true"},
			{
				Name: `<b>"bad"`,
				Retry: &rules.Retry{
					Attempts: 1000, First: time.Minute, Factor: 2, Max: time.Hour, Waiter: rules.WaiterTTL,
				},
				Severity: deadletter.SeverityPage, Rate: &rate, Watch: time.Hour, InDoubt: "hold", MirrorXDeath: true,
			},
		}
		o.Rules.Replace(&set)
	})
	h.get("/rules").want(
		t, 200, "Read from", "<code>dlo.yaml</code>", "loaded 20 November 09:00 UTC", "Rule noise", "It discards",
		"name: noise", "discards at once", "1 min, 2 min, 4 min, 997 more", "Copy YAML",
		"rules:\n  - name: noise\n    discard: true\n",
	)
	h.get("/rules?rule=2").want(
		t, 200, "Rule &lt;b&gt;&#34;bad&#34;", "then dead: page.", "At most 2.5 retries per queue and second.",
		"Watched for 1 h before it is quiet.", "If the broker does not answer a requeue: hold.", "x-death for workers",
		"Letters wait in the broker, in one queue for all delays: a letter cannot leave before the letters ahead of it",
	)
	h.get("/rules?rule=3").want(
		t, 200, "Rule default", "Delays: 9 s to 11 s, 1 min 30 s to 1 min 50 s, then dead: digest.",
	)
	h.get("/rules?rule=4").want(t, 200, "Rule noise")
}

func TestPausedRetriesAreOnTheRulesPage(t *testing.T) {
	t.Parallel()
	h := open(t, withRetries)
	h.receive("sms", 1, "x")
	if _, err := h.store.Pause(t.Context(), deadletter.Guard{
		Origin: deadletter.Origin{Broker: "main", VHost: "/", Queue: "sms"},
		Why:    "the <carrier> is down",
		By:     "lena",
	}); err != nil {
		t.Fatal(err)
	}
	h.get("/rules").want(t, 200, "Paused", "<code>sms</code>", "the &lt;carrier&gt; is down", "lena")
}

// TestTheLetterPageSaysWhyItsRule checks the part of a letter's page that lists the rules in use.
// Each rule that does not apply must show the condition that does not match. The page must contain
// no value that the rules read. Someone who may not see all queues must not see the rules.
func TestTheLetterPageSaysWhyItsRule(t *testing.T) {
	t.Parallel()
	asked := 0
	var by deadletter.Principal
	h := open(t, withRetries, func(o *web.Options) {
		o.Actor = func(*http.Request) (deadletter.Principal, error) { return by, nil }
		set := *o.Rules.Set()
		set.Rules = []rules.Rule{
			{Name: "email", Match: rules.Match{Queue: rules.Patterns{"email"}}},
			{Name: "<b>tries", Match: rules.Match{Header: []rules.Named{{Name: "x-a", Want: rules.Patterns{"sec*"}}}}},
		}
		o.Rules.Replace(&set)
		o.RuleFacts = func(l *deadletter.Letter) rules.Facts {
			asked++
			return rules.Facts{
				Queue: l.Queue, Reason: l.Reason,
				Header: func(string) (string, bool) { return "secret-value", true },
			}
		}
	})
	by = deadletter.Local
	id := h.wait("sms", 1)[0]
	const link = "Why this rule?</a>"
	why := "/letters/" + string(id) + "?tab=history"
	h.get("/letters/"+string(id)).want(t, 200, link, `href="`+why+`#why"`)
	if asked != 0 {
		t.Error("the rules were tested, and nobody asked for it")
	}
	h.get(why).want(
		t, 200, `id="why"`, "1 email: ", "queue is not <code>email</code>", "<b>2 &lt;b&gt;tries</b> applies",
		"default: ", "would match, but comes later",
	).wantNot(t, "secret-value")
	if asked != 1 {
		t.Errorf("the facts were asked for %d times", asked)
	}
	by = deadletter.Principal{
		Name:   "ann",
		Grants: []deadletter.Grant{{Role: deadletter.RoleAdmin, Places: deadletter.Places{Queues: []string{"sms"}}}},
	}
	h.get(why).want(t, 200, "Attempts and history").wantNot(t, link, `id="why"`, "tries")
	h.get("/api/v1/letters/"+string(id)).want(t, 200, `"rules":null`)
}

func TestWhatTheRulesWouldDo(t *testing.T) {
	t.Parallel()
	looked := 0
	h := open(t, withRetries, func(o *web.Options) {
		o.RuleFacts = func(l *deadletter.Letter) rules.Facts {
			looked++
			return rules.Facts{
				Reason:   map[string]string{"sms": "rejected"}[l.Queue],
				Attempts: map[string]int{"sms": 0, "email": 2}[l.Queue],
			}
		}
	})
	h.receive("sms", 5, "x")
	h.receive("email", 4, "x")
	if h.get("/rules"); looked > 0 {
		t.Error("letters were read that nobody asked for")
	}
	const delays = "9 s to 11 s, 1 min 30 s to 1 min 50 s, then dead: digest"
	h.post("/rules/try", url.Values{"rules": {""}, "q": {""}}).want(
		t, 200, "Looked at 9 of 9 letters that are dead, held or scheduled, newest first.", "Nothing was changed.",
		"Retried: rule default", "Still dead: rule default, severity digest", delays,
	)
	h.postJSON("/api/v1/rules/test", `{}`).want(t, 200, `"matching":9,"exact":true,"looked":9`)
	h.postJSON("/api/v1/rules/test", `{"q":"queue:sms","limit":3}`).want(
		t, 200,
		`"matching":5,"exact":true,"looked":3,"late":0,"left_out":0,"notes":[],"fates":[{"was":{"state":"dead","rule":"","severity":"digest","delays":""},"would":{"rule":"default","action":"retry","severity":"","delays":"`+delays+`"},"same":false,"letters":3,`,
	)
	if looked != 21 {
		t.Errorf("%d letters were looked at", looked)
	}
	if _, rows := h.get("/letters?q=state:dead"), h.get(
		"/api/v1/letters/count?q=state:dead",
	); !strings.Contains(rows.text, `"count":9`) {
		t.Error("asking changed something:", rows.text)
	}
}

// TestTheTimeForWhatIfIsBounded checks that the result says how many letters were not examined
// because the time was over.
func TestTheTimeForWhatIfIsBounded(t *testing.T) {
	t.Parallel()
	h := open(t, withRetries, func(o *web.Options) {
		o.RuleFacts = func(*deadletter.Letter) rules.Facts {
			time.Sleep(1100 * time.Millisecond)
			return rules.Facts{Reason: "rejected"}
		}
	})
	h.receive("sms", 20, "x")
	var a struct{ Matching, Looked, Late int }
	h.postJSON("/api/v1/rules/test", `{"q":""}`).want(t, 200).json(t, &a)
	if a.Looked < 1 || a.Looked > 2 || a.Looked+a.Late != 20 || a.Matching != 20 {
		t.Errorf("%+v", a)
	}
}

func TestAPIRules(t *testing.T) {
	t.Parallel()
	h := open(t, withRetries)
	h.get("/api/v1/rules").want(
		t, 200,
		`"file":"dlo.yaml","loaded_at":"2026-11-20T09:00:00Z","rules":[],"default":{"name":"default","retry":{"delays":["10s","1m40s"],"jitter":0.1,"waiter":"store"},"discard":false,"severity":"digest"`,
	)
	h.get("/api/v1/rules?x=1").want(t, 400)
}
