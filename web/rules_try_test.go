package web_test

import (
	"encoding/json"
	"fmt"
	"html"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/config"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/rules"
	"github.com/deadletteroffice/dlo/web"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const triedRules = `- name: sms
  match: {queue: sms}
  retry: {delays: [5s, 30s, 5m]}
  dead: {severity: page}
- name: noise
  match: {queue: email}
  discard: true
`

// try asks the API what the given rules would have decided about the letters of a query.
func (h *house) try(tried, q string) rules.WhatIf {
	h.t.Helper()
	body := map[string]any{"rules": tried}
	if q != "" {
		body["q"] = q
	}
	text, err := json.Marshal(body)
	if err != nil {
		h.t.Fatal(err)
	}
	var a rules.WhatIf
	h.postJSON("/api/v1/rules/test", string(text)).want(h.t, 200).json(h.t, &a)
	return a
}

// TestRulesAreTried checks that the results of the tried rules are shown beside what really
// happened. Trying rules must change nothing in the store.
func TestRulesAreTried(t *testing.T) {
	t.Parallel()
	h := open(t, withRetries)
	sms, email := h.receive("sms", 5, "x"), h.wait("email", 2)
	held := h.receive("held", 1, "x")
	h.postJSON("/api/v1/operations", `{"action":"hold","ids":["`+string(held[0])+`"],"hold":"0s"}`).want(t, 202)
	h.advance()
	before := h.get("/api/v1/letters").text
	a := h.try(triedRules, "")
	const otherwise = "9 s to 11 s, 1 min 30 s to 1 min 50 s, then dead: digest"
	if a.Matching != 8 || a.Looked != 8 || !a.Exact || len(a.Notes) != 1 ||
		a.Notes[0] != "The text has no default; the one in use applies." {
		t.Errorf("%+v", a)
	}
	want := []rules.Fate{
		{
			Was:      rules.Outcome{State: "dead", Severity: "digest"},
			Would:    rules.Outcome{Rule: "sms", Action: "retry", Delays: "5 s, 30 s, 5 min, then dead: page"},
			Letters:  5,
			Examples: []deadletter.ID{sms[4], sms[3], sms[2]},
		},
		{
			Was:      rules.Outcome{State: "scheduled", Rule: "default", Delays: otherwise},
			Would:    rules.Outcome{Rule: "noise", Action: "discard", Delays: "discarded at once"},
			Letters:  2,
			Examples: []deadletter.ID{email[1], email[0]},
		},
		{
			Was:      rules.Outcome{State: "held"},
			Would:    rules.Outcome{Rule: "default", Action: "retry", Delays: otherwise},
			Same:     true,
			Letters:  1,
			Examples: held,
		},
	}
	got := make([]rules.Fate, len(a.Fates))
	for i, f := range a.Fates {
		got[i] = f
		got[i].Query = ""
		var page api.Letters
		h.get("/api/v1/letters?q="+url.QueryEscape(f.Query)).want(t, 200).json(t, &page)
		if len(page.Letters) != f.Letters || page.Letters[0].ID != f.Examples[0] {
			t.Errorf("%d letters are behind %s: %d", f.Letters, f.Query, len(page.Letters))
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if after := h.get("/api/v1/letters").text; after != before {
		t.Errorf("trying has changed something:\n%s\n%s", before, after)
	}
	if set := h.Rules.Set(); len(set.Rules) != 0 {
		t.Error("what was tried is in use")
	}
}

// TestWhatIsAsItWasIsSaid checks when the result of tried rules counts as unchanged. The outcome
// and the severity must be equal to the real ones. For waiting letters, the delays must be equal
// too.
func TestWhatIsAsItWasIsSaid(t *testing.T) {
	t.Parallel()
	h := open(t, withRetries)
	h.receive("sms", 3, "x")
	h.wait("email", 2)
	for text, want := range map[string]string{
		"default: {retry: {delays: []}}":                                                  "dead-dead true, scheduled-dead false",
		"default: {retry: {delays: []}, dead: {severity: page}}":                          "dead-dead false, scheduled-dead false",
		"default: {retry: {delays: [10s, 100s], jitter: 0.1}}":                            "dead-retry false, scheduled-retry true",
		"default: {retry: {delays: [10s, 100s]}}":                                         "dead-retry false, scheduled-retry false",
		"- {name: a, match: {queue: sms}, retry: {delays: []}, dead: {severity: digest}}": "dead-dead true, scheduled-retry true",
	} {
		fates := map[string]bool{}
		for _, f := range h.try(text, "").Fates {
			fates[string(f.Was.State)+"-"+string(f.Would.Action)] = f.Same
		}
		got := map[string]bool{}
		for one := range strings.SplitSeq(want, ", ") {
			name, same, _ := strings.Cut(one, " ")
			got[name] = same == "true"
		}
		if diff := cmp.Diff(got, fates); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

// TestRulesAreTriedAsOfTheDeath tries rules on a letter that has died. The rules must see the age
// that the letter had when it died. They must not count attempts that were made after the death.
func TestRulesAreTriedAsOfTheDeath(t *testing.T) {
	t.Parallel()
	h := open(t, withRetries)
	h.wait("sms", 1)
	h.late.Store(int64(2 * time.Hour))
	due, err := h.store.ClaimDue(t.Context(), "main", start.Add(2*time.Hour), 10, deadletter.Allowance{
		Allow: func(deadletter.Origin, string) (int, bool) { return 10, false },
	})
	if err != nil || len(due) != 1 {
		t.Fatal(due, err)
	}
	if err := h.store.Mark(t.Context(), []deadletter.Mark{
		{
			Letter: due[0].Letter.ID, Token: due[0].Attempt.Token, Outcome: deadletter.OutcomeConfirmed,
			DueAt: start.Add(3 * time.Hour),
		},
	}, deadletter.Noted{}); err != nil {
		t.Fatal(err)
	}
	h.late.Store(int64(240 * time.Hour))
	const text = "- {name: old, match: {age: '>1d'}, discard: true}\n- {name: sent, match: {attempts: '>0'}, discard: true}\n- {name: first, match: {attempts: 0}, retry: {delays: [1s]}}\n"
	for _, f := range h.try(text, "state:requeued").Fates {
		if f.Was.State != "requeued" || f.Would.Rule != "first" || f.Would.Action != "retry" {
			t.Errorf("%+v", f)
		}
	}
	if n := h.try(text, "state:requeued").Looked; n != 1 {
		t.Errorf("%d letters were looked at", n)
	}
}

// TestManyLettersHaveALink checks that the result of a rule test links to the list of the affected
// letters, even if there are 150 of them. There is no link if the list would contain further
// letters too. This is so if other letters have the same state and the same rule, or if the rules
// were not tried on all letters of the query.
func TestManyLettersHaveALink(t *testing.T) {
	t.Parallel()
	h := open(t, withRetries)
	h.wait("sms", 150)
	fate := func(tried, q string, limit int) rules.Fate {
		t.Helper()
		var a rules.WhatIf
		h.postJSON(
			"/api/v1/rules/test", fmt.Sprintf(`{"rules":%q,"q":%q,"limit":%d}`, tried, q, limit),
		).want(t, 200).json(t, &a)
		return a.Fates[0]
	}
	if f := fate(
		"default: {retry: {delays: []}}", "queue:sms state:dead,scheduled", 500,
	); f.Letters != 150 || f.Query != "queue:sms state:scheduled rule:default" {
		t.Errorf("%+v", f)
	}
	if f := fate("default: {retry: {delays: []}}", "queue:sms", 149); f.Letters != 149 || f.Query != "" {
		t.Errorf("not all were looked at, and yet: %+v", f)
	}
	h.wait("email", 20)
	if f := fate("- {name: a, match: {queue: sms}, discard: true}", "", 500); f.Letters != 150 || f.Query != "" {
		t.Errorf("others have the same state and rule: %+v", f)
	}
}

// TestRulesWithMistakesAreNotTried checks that each mistake in the text of rules has a position.
// The log must contain no part of the text.
func TestRulesWithMistakesAreNotTried(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	h := open(t, withRetries, func(o *web.Options) {
		o.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	h.receive("sms", 1, "x")
	a := h.postJSON(
		"/api/v1/rules/test", `{"rules":"- name: kanarie\n  mach: {}\n- name: b\n  dead: {notify: [kanarie]}\n"}`,
	).want(
		t, 400, `"mistakes":[{"line":2,"column":3,"text":"there is no key \"mach\" in rules; the keys are dead`,
		`{"line":4,"column":19,"text":"there is no channel \"kanarie\": define it under channels"}]`,
	)
	if kind := a.Header.Get("Content-Type"); kind != "application/problem+json" {
		t.Error(kind)
	}
	h.post("/rules/try", url.Values{"rules": {"- name: kanarie\n  mach: {}\n"}}).want(t, 400)
	if strings.Contains(log.String(), "kanarie") ||
		!strings.Contains(log.String(), "mistakes in rules that were to be tried") {
		t.Error(log.String())
	}
	for body, want := range map[string]string{
		`{"rules":""}`: `"mistakes":[{"text":"there are no rules in this text"}]`,
		`{"rules":"` + strings.Repeat("#", config.MaxPasted) + `#"}`: "rules to try have at most 64 KiB",
		`{"rules":"[]","q":"state:deaf"}`:                            `"position":6`,
		`{"limit":0}`:                                                "limit is a number from 1 to 500",
		`{"limit":501}`:                                              "limit is a number from 1 to 500",
		`{"letter":"x"}`:                                             `there is no member \"letter\" here`,
		`{"rules":["x"]}`:                                            "cannot be read",
	} {
		h.postJSON("/api/v1/rules/test", body).want(t, 400, want)
	}
	h.postJSON("/api/v1/rules/test", `{"rules":"`+strings.Repeat("#", 1<<20)+`"}`).want(t, 413)
}

// TestRulesAreTriedOnOneLetter checks that a query by id tries the rules on one letter. The id may
// be the short id that pages show.
func TestRulesAreTriedOnOneLetter(t *testing.T) {
	t.Parallel()
	h := open(t, withRetries)
	ids := h.receive("sms", 2, "x")
	h.indexed()
	for _, id := range []string{string(ids[0]), ids[0].Short()} {
		if a := h.try(triedRules, "id:"+id); len(a.Fates) != 1 || a.Fates[0].Would.Rule != "sms" ||
			!slices.Equal(a.Fates[0].Examples, ids[:1]) {
			t.Errorf("%s: %+v", id, a)
		}
	}
	if a := h.try(triedRules, "id:01a1f82e-3420-7001-8000-000000000009"); a.Looked != 0 || len(a.Fates) != 0 {
		t.Errorf("a letter that is not there: %+v", a)
	}
}

// TestTheTimeOfOneLetterIsBounded tries hostile rules on hostile letters, so that it takes very
// long to decide about one letter. dlo must give up on each letter after a time limit.
func TestTheTimeOfOneLetterIsBounded(t *testing.T) {
	t.Parallel()
	values := make([]string, 5000)
	for i := range values {
		values[i] = strings.Repeat("a", 4096)
	}
	h := open(t, withRetries, func(o *web.Options) {
		o.RuleFacts = func(*deadletter.Letter) rules.Facts {
			return rules.Facts{Field: func(string) ([]string, bool) { return values, true }}
		}
	})
	h.receive("sms", 3, "x")
	var globs []string
	for i := range 25 {
		globs = append(globs, fmt.Sprintf("'*%sb%d'", strings.Repeat("a", 2000), i))
	}
	text, _ := json.Marshal("- {name: a, match: {field: {p: [" + strings.Join(globs, ", ") + "]}}, discard: true}")
	var a rules.WhatIf
	h.postJSON("/api/v1/rules/test", `{"rules":`+string(text)+`}`).want(t, 200).json(t, &a)
	if a.Looked != 0 || a.Late != 3 {
		t.Errorf("%+v", a)
	}
}

// TestNoRuleIsAskedAboutATrial checks a letter that dlo made for a trial. The rules of the
// configuration must not be tried on such a letter, because dlo decides about it by a rule of its
// own.
func TestNoRuleIsAskedAboutATrial(t *testing.T) {
	t.Parallel()
	h := open(t, withRetries)
	id := h.storeTrial()
	h.receive("sms", 1, "x")
	if a := h.try(
		triedRules, "",
	); a.Matching != 2 || a.Looked != 1 || a.Left != 1 || len(a.Fates) != 1 || a.Fates[0].Letters != 1 {
		t.Errorf("%+v", a)
	}
	var l api.Letter
	h.get("/api/v1/letters/"+string(id)).want(t, 200).json(t, &l)
	if l.Rules != nil {
		t.Errorf("%+v", l.Rules)
	}
	h.get("/letters/"+string(id)+"?tab=history").want(t, 200).wantNot(t, "Why this rule?")
}

// TestOthersLettersAreNotTried checks that tried rules disclose nothing about a letter that the
// caller may not see.
func TestOthersLettersAreNotTried(t *testing.T) {
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
	h.receive("sms", 2, "x")
	// rules name queues that this caller may not see
	h.postJSON("/api/v1/rules/test", `{"q":""}`).want(t, 403, "concerns all queues")
	h.post("/rules/try", url.Values{"rules": {triedRules}}).want(t, 403, "concerns all queues")
}

// TestMaskedValuesCannotBeProbedByRules checks that the patterns of tried rules disclose nothing
// about masked values, whether they match or not.
func TestMaskedValuesCannotBeProbedByRules(t *testing.T) {
	t.Parallel()
	h, letters, _ := maskedHouse(t)
	fits := func(a rules.WhatIf) (n int) {
		for _, f := range a.Fates {
			if f.Would.Rule == "probe" {
				n += f.Letters
			}
		}
		return n
	}
	for _, clause := range []string{
		"field: {customer.email: 'kanarie*'}", "field: {card.number: '*'}", "field: {pin: 'k*'}",
		"field: {note: '*kanarie*'}", "header: {authorization: '*'}", "error: '*kanarie*'", "type: '*kanarie*'",
	} {
		a := h.try(
			"- {name: probe, match: {"+clause+"}, discard: true}",
			"id:"+letters["field"]+","+letters["redacted"]+","+letters["json"]+","+letters["pattern"]+","+
				letters["header"]+","+letters["type"]+","+letters["content type"],
		)
		if a.Looked != 7 || fits(a) != 0 {
			t.Errorf("%s fits %d of %d letters", clause, fits(a), a.Looked)
		}
	}
	if a := h.try(
		"- {name: probe, match: {field: {customer.name: 'Ann'}}, discard: true}", "id:"+letters["field"],
	); fits(a) != 1 {
		t.Errorf("what is not masked is not seen: %+v", a)
	}
}

// TestRulesAreTriedOnThePage checks that the form keeps the text of the rules, whatever the result
// is.
func TestRulesAreTriedOnThePage(t *testing.T) {
	t.Parallel()
	h := open(t, withRetries)
	ids := h.receive("sms", 5, "x")
	h.wait("email", 2)
	h.get("/rules").want(
		t, 200, `action="/rules/try"`,
		html.EscapeString("default:\n  retry: {delays: [10s, 1m40s], jitter: 0.1}\n  dead: {severity: digest}\n"),
		"<code>dlo.yaml</code>", "then run dlo reload", `href="#h-apply"`, "This changes nothing.",
	)
	a := h.post("/rules/try", url.Values{
		"rules": {strings.ReplaceAll(triedRules, "\n", "\r\n")},
		"q":     {" queue:sms,email "},
	}).want(
		t, 200, "Looked at 7 of 7 letters, newest first.", "Retried: rule sms", "5 s, 30 s, 5 min, then dead: page",
		"Discarded: rule noise",
		"9 s to 11 s, 1 min 30 s to 1 min 50 s, then dead: digest", "The text has no default",
		`value="queue:sms,email"`, html.EscapeString(triedRules), `href="/letters?q=id%3A`+string(ids[4]))
	if strings.Index(a.text, "h-rules") < strings.Index(a.text, `data-testid="tried"`) {
		t.Error("the answer does not stand first")
	}
	inUse := html.UnescapeString(
		regexp.MustCompile(`(?s)<textarea[^>]*>\n(.*?)</textarea>`).FindStringSubmatch(h.get("/rules").text)[1],
	)
	h.post("/rules/try", url.Values{"rules": {inUse}}).want(
		t, 200, "Looked at 7 of 7 letters", "Still retried: rule default", html.EscapeString(inUse),
	)
	h.post("/rules/try", url.Values{
		"rules": {"- name: <b>a\n  mach: {}\n"},
		"q":     {"queue:sms"},
	}).want(
		t, 400, "Line 2, column 3: there is no key &#34;mach&#34; in rules", `<code class="under">mach: {}</code>`,
		`data-line="2" data-column="3"`, "- name: &lt;b&gt;a\n  mach: {}\n", `value="queue:sms"`, `aria-invalid="true"`,
	)
	h.post("/rules/try", url.Values{
		"rules": {triedRules},
		"q":     {"queu:sms"},
	}).want(t, 400, "there is no field", `value="queu:sms"`, `id="rule-try-q-wrong"`, html.EscapeString(triedRules))
	h.post("/rules/try", url.Values{
		"rules": {strings.Repeat("x", config.MaxPasted+1)},
	}).want(t, 400, "rules to try have at most 64 KiB")
	long := open(t, withRetries, func(o *web.Options) {
		set := *o.Rules.Set()
		set.File, set.Rules = "", []rules.Rule{
			{Name: "long", YAML: "name: long # " + strings.Repeat("x", config.MaxPasted)},
		}
		o.Rules.Replace(&set)
	})
	long.receive("sms", 1, "x")
	const tooLong = "The rules in use are too long to be shown here: 64 KiB. Leave the field empty to test them"
	long.get("/rules").want(t, 200, tooLong, "dlo serve dlo.yaml")
	long.post("/rules/try", url.Values{"rules": {" \r\n"}}).want(t, 200, tooLong, "Retried: rule long")
}

// TestTheRulesInUseCanBePastedBack checks that the page contains exactly the rules in use. If they
// are pasted back, nothing changes.
func TestTheRulesInUseCanBePastedBack(t *testing.T) {
	t.Parallel()
	none := &rules.Set{Channels: []string{"a", "b"}}
	example, err := config.Load("../docs/examples/dlo.yaml", func(name string) string {
		return map[string]string{
			"DLO_AMQP_URL": "amqp://localhost", "DLO_MANAGEMENT_URL": "http://localhost",
		}[name]
	})
	if err != nil {
		t.Fatal(err)
	}
	check := func(text string, use *rules.Set) {
		t.Helper()
		h := open(t, func(o *web.Options) { o.Rules = rules.NewBook(use) })
		var a api.Rules
		h.get("/api/v1/rules").want(t, 200).json(t, &a)
		again, err := config.ReadRules(a.YAML, use)
		if diff := cmp.Diff(
			*use, again.Rules, cmpopts.IgnoreFields(rules.Rule{}, "YAML"), cmpopts.IgnoreFields(rules.Set{}, "File", "Loaded", "Digest", "Fields"),
		); err != nil || diff != "" {
			t.Errorf("%s became\n%s%v (-want +got):\n%s", text, a.YAML, err, diff)
		}
	}
	check("the example", &example.Rules)
	for _, text := range []string{
		"default: {}", "default: {retry: {delays: []}}",
		"default: {retry: {first: 1s, attempts: 4, factor: 1, max: 1h, jitter: 0.25}}",
		"default: {retry: {first: 1s, attempts: 4}}", "default: {retry: {waiter: message-ttl}}",
		"default: {dead: {severity: page, notify: [a, b]}, in_doubt: hold, watch: 30m, rate: 0, mirror_x_death: true}",
		"default: {rate: 2.5}",
	} {
		p, err := config.ReadRules(text, none)
		if err != nil {
			t.Fatal(err)
		}
		check(text, &p.Rules)
	}
}

// TestRulesLeftOutAreNamed tries a text of rules that lacks some of the rules in use. The result
// must name these rules, because the text replaces the whole list.
func TestRulesLeftOutAreNamed(t *testing.T) {
	t.Parallel()
	h := open(t, withRetries, func(o *web.Options) {
		set := *o.Rules.Set()
		set.Rules = []rules.Rule{
			{Name: "noise", Discard: true},
			{Name: "billing", Retry: &rules.Retry{Attempts: 0}},
			{Name: "sms", Retry: &rules.Retry{Attempts: 0}},
		}
		o.Rules = rules.NewBook(&set)
	})
	h.receive("sms", 1, "x")
	if notes := h.try(triedRules, "").Notes; !slices.Contains(
		notes, "The text replaces all rules. It leaves out 1 rule that is in use: billing.",
	) {
		t.Errorf("%q", notes)
	}
}
