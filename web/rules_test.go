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
	open(t).get("/rules?whatif=1&letter=x&facts=1").want(t, 200, "Their content is not known here")
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
		"name: noise", "discards at once", "1 min × 2, 1,000 times, at most 1 h", "Copy YAML",
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

func TestWhichRuleAppliesToALetter(t *testing.T) {
	t.Parallel()
	asked := 0
	h := open(t, withRetries, func(o *web.Options) {
		o.RuleFacts = func(l *deadletter.Letter) rules.Facts {
			asked++
			return rules.Facts{
				Queue: l.Origin.Queue, Reason: l.Reason, Error: "masked ••••", Attempts: 1, Serial: 3,
				Header: func(string) (string, bool) { return "secret", true },
			}
		}
	})
	id := h.receive("sms", 1, "secret")[0]
	for _, name := range []string{string(id), " " + string(id) + " "} {
		a := h.get("/rules?letter="+url.QueryEscape(name)).want(
			t, 200, `data-testid="answer"`, "Letter <a class=\"link mono\" href=\"/letters/"+string(id),
			"applies: retry 2, in 1 min", "(between 1 min 30 s and 1 min 50 s)", "masked ••••",
		)
		if strings.Contains(a.text, "secret") {
			t.Error("a value of a header is on the page")
		}
	}
	if asked != 2 {
		t.Errorf("the facts were asked for %d times", asked)
	}
	h.get("/rules?letter=01a1f82e-3420-7001-8000-000000000009").want(
		t, 404, "There is no letter with this id.", `value="01a1f82e`,
	)
	h.get("/rules?letter=%3Cb%3E").want(t, 404, "There is no letter with this id.", `value="&lt;b&gt;"`)

	var answer struct {
		Rule, Letter string
		Decision     struct {
			Action, Delay, Earliest, Latest, Severity, Why string
			Retry                                          int
		}
		Steps []struct {
			Rule             string
			Matched, Applies bool
		}
	}
	h.postJSON("/api/v1/rules/test", `{"letter":"`+string(id)+`"}`).want(t, 200).json(t, &answer)
	d := answer.Decision
	if answer.Rule != "default" || answer.Letter != string(id) || d.Action != "retry" || d.Retry != 2 ||
		d.Earliest != "1m30s" || d.Latest != "1m50s" || d.Severity != "digest" || len(
		answer.Steps,
	) != 1 || !answer.Steps[0].Applies {
		t.Errorf("%+v", answer)
	}
	if delay, err := time.ParseDuration(d.Delay); err != nil || delay < 90*time.Second || delay > 110*time.Second {
		t.Error(d.Delay, err)
	}
}

func TestWhichRuleAppliesToFacts(t *testing.T) {
	t.Parallel()
	h := open(t, withRetries)
	h.get("/rules?facts=1&queue=sms&reason=expired&attempts=0&headers=a%3A+b%0D%0Ac%3A").want(
		t, 200, "queue <code>sms</code>", "applies: dead, severity digest: reason expired", `value="expired"`,
	)
	h.get("/rules?facts=1&reason=rejected").want(t, 200, "applies: retry 1, between 9 s and 11 s", "0 attempts used")
	h.get("/rules?facts=1&attempts=many&headers=x&queue=%3Cb%3E").want(
		t, 400, "Attempts must be a number", "A header is written as", `value="many"`, `value="&lt;b&gt;"`,
	)
	h.get("/rules?facts=1&attempts=-1").want(t, 400, "Attempts must be a number")
	a := h.postJSON(
		"/api/v1/rules/test",
		`{"facts":{"reason":"rejected","attempts":1,"age":"2h","headers":{"a":"b"},"fields":{"p":["v"]}}}`,
	).want(
		t, 200,
		`"action":"retry","retry":2,"earliest":"1m30s","latest":"1m50s","severity":"digest","why":"retry 2 of 2"`,
	)
	if strings.Contains(a.text, `"delay"`) {
		t.Error("a delay was drawn for no letter")
	}
	h.postJSON(
		"/api/v1/rules/test", `{"facts":{"reason":"rejected","attempts":2}}`,
	).want(t, 200, `"action":"dead"`, "retries used up: 2 of 2")
	for body, detail := range map[string]string{
		`{}`:                                        "one of letter, facts and q",
		`{"letter":"x","facts":{}}`:                 "one of letter, facts and q",
		`{"letter":"x"}`:                            "",
		`{"facts":{"attempts":-1}}`:                 "attempts is a number",
		`{"facts":{"age":"soon"}}`:                  "age must be a duration",
		`{"facts":{"colour":"red"}}`:                "unknown field",
		`{"facts":{},"limit":3}`:                    "limit goes with q",
		`{"q":"","limit":501}`:                      "limit goes with q",
		`{"q":"state:deaf"}`:                        "did you mean",
		`{"facts":{"headers":{"a":["not","one"]}}}`: "cannot be read",
	} {
		if a := h.postJSON(
			"/api/v1/rules/test", body,
		); a.StatusCode != 400 || a.Header.Get("Content-Type") != "application/problem+json" ||
			!strings.Contains(a.text, detail) {
			t.Errorf("%s: %d %s", body, a.StatusCode, a.text)
		}
	}
	h.postJSON("/api/v1/rules/test", `{"letter":"01a1f82e-3420-7001-8000-000000000009"}`).want(t, 404)
	open(t).postJSON("/api/v1/rules/test", `{"facts":{}}`).want(t, 404)
}

func TestWhatTheRulesWouldDo(t *testing.T) {
	t.Parallel()
	looked := 0
	h := open(t, withRetries, func(o *web.Options) {
		o.RuleFacts = func(l *deadletter.Letter) rules.Facts {
			looked++
			return rules.Facts{
				Reason:   map[string]string{"sms": "rejected"}[l.Origin.Queue],
				Attempts: map[string]int{"sms": 0, "email": 2}[l.Origin.Queue],
			}
		}
	})
	h.receive("sms", 5, "x")
	h.receive("email", 4, "x")
	if h.get("/rules"); looked > 0 {
		t.Error("letters were read that nobody asked for")
	}
	h.get("/rules?whatif=1").want(
		t, 200, "Looked at 9 of 9 letters that are dead, held or scheduled, newest first.", "Nothing was changed.",
		"5 retried, 4 dead",
	)
	h.postJSON("/api/v1/rules/test", `{"q":"queue:sms","limit":3}`).want(
		t, 200,
		`"matching":5,"exact":true,"looked":3,"late":0,"left_out":0,"notes":[],"rules":[{"rule":"default","delays":"9 s to 11 s, 1 min 30 s to 1 min 50 s, then dead: digest","letters":3,"retry":3,"dead":0,"discard":0}]`,
	)
	if looked != 12 {
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

func TestOthersLettersAreNotTested(t *testing.T) {
	t.Parallel()
	h := open(t, withRetries, func(o *web.Options) {
		o.Actor = func(*http.Request) (deadletter.Principal, error) {
			return deadletter.Principal{
				Name: "ann",
				Grants: []deadletter.Grant{
					{Role: deadletter.RoleAdmin, Places: deadletter.Places{Queues: []string{"other"}}},
				},
			}, nil
		}
	})
	id := h.receive("sms", 1, "x")[0]
	h.get("/rules?letter="+string(id)).want(t, 403)
	h.postJSON("/api/v1/rules/test", `{"letter":"`+string(id)+`"}`).want(t, 403)
}

func TestAPIRules(t *testing.T) {
	t.Parallel()
	h := open(t, withRetries)
	h.get("/api/v1/rules").want(
		t, 200,
		`"file":"dlo.yaml","loaded_at":"2026-11-20T09:00:00Z","rules":[],"default":{"name":"default","when":[],"retry":{"delays":["10s","1m40s"],"jitter":0.1,"waiter":"store"},"discard":false,"severity":"digest"`,
	)
	h.get("/api/v1/rules?x=1").want(t, 400)
	open(t).get("/api/v1/rules").want(t, 404)
}
