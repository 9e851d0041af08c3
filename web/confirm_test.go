package web_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// TestAllThatMatch checks that "All that match" means the letters that were displayed. It must not
// include letters that arrive after the page was loaded, or letters that were unticked.
func TestAllThatMatch(t *testing.T) {
	t.Parallel()
	h := open(t)
	ids := h.receive("sms", 4, "x")
	page := h.get("/letters?q=state:dead").want(
		t, 200, `name="until" value="2026-11-20T09:01:00Z"`, `name="q" value="state:dead"`,
		"dlo letters requeue -q &#39;state:dead before:2026-11-20T09:01:00.000Z&#39;",
	)
	if strings.Contains(page.text, `name="scope"`) {
		t.Error("all that match is offered where the page has them all")
	}
	form := url.Values{
		"action": {"discard"},
		"scope":  {"all"},
		"q":      {"state:dead"},
		"until":  {"2026-11-20T09:01:00Z"},
		"except": {string(ids[0]) + " " + string(ids[1])},
		"id":     {string(ids[0])},
	}
	h.post("/letters/confirm", form).want(
		t, 200, "Discard 2 letters?", "2 letters matched at 09:01:00 UTC, 2 left out",
		`name="except" value="`+string(ids[0]),
	)
	form.Set("key", "k")
	h.post("/operations", form).redirectsTo(t, "/operations/O-1")
	h.advance()
	h.get("/operations/O-1").want(
		t, 200, "2 discarded", "state:dead", "Except 2 letters", "Undo: restore 2", `value="op:O-1/done"`,
		"dlo letters discard -q &#39;state:dead before:2026-11-20T09:00:00.000Z&#39;", "including the letters left out",
	)
	h.get("/letters?q=op:O-1/done").want(t, 200, "2 match")
	more := url.Values{
		"action": {"hold"},
		"scope":  {"all"},
		"q":      {"state:dead"},
		"until":  {"2026-11-20T09:01:00Z"},
		"expect": {"1"},
		"key":    {"k2"},
	}
	again := h.post("/operations", more).want(
		t, 409, "2 letters match now, but 1 were shown", "Hold 2 letters", `name="expect" value="2"`,
	)
	if strings.Contains(again.text, `value="k2"`) {
		t.Error("the refused key is used again")
	}
	for name, change := range map[string][2]string{
		"no instant":       {"until", ""},
		"an instant ahead": {"until", "2027-11-20T09:01:00Z"},
		"a wrong query":    {"q", "state:daed"},
		"a wrong id":       {"except", "x"},
	} {
		wrong := url.Values{
			"action": {"discard"},
			"scope":  {"all"},
			"q":      {"state:dead"},
			"until":  {"2026-11-20T09:01:00Z"},
		}
		wrong.Set(change[0], change[1])
		if a := h.post("/letters/confirm", wrong); a.StatusCode != 400 {
			t.Errorf("%s: %d", name, a.StatusCode)
		}
	}
}

// TestMistakesInAPlan checks that the form of a plan is shown again with its mistakes. The other
// fields must contain what was typed.
func TestMistakesInAPlan(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := string(h.receive("sms", 2, "x")[0])
	form := url.Values{
		"action":    {"requeue"},
		"id":        {id},
		"key":       {"k"},
		"canary":    {"ten"},
		"wait":      {"2"},
		"rate":      {"0"},
		"stop_at":   {"101%"},
		"first":     {"-1"},
		"max_depth": {"1,000"},
		"to":        {"other"},
		"order":     {"newest"},
		"reason":    {"because"},
	}
	h.post("/operations", form).want(
		t, 400, "Nothing was requeued",
		`value="ten" inputmode="numeric" autocomplete="off" aria-describedby="confirm-canary-wrong" aria-invalid="true"`,
		"A rate is a number of letters per second above 0",
		"A wait is written 30s", "from 0 to 100", "whole number of letters", `value="1,000"`, `value="other"`,
		`value="because"`, `<option value="newest" selected>`, `value="k"`,
	)
	for name, value := range map[string]string{
		"canary": "10", "wait": "2m", "rate": "20", "stop_at": "5%", "first": "", "to": "amq.gen-x",
	} {
		form.Set(name, value)
	}
	h.post("/operations", form).want(t, 400, `id="confirm-to-wrong"`, "belongs to the broker", `value="amq.gen-x"`)
	form.Set("to", "")
	h.post("/operations", form).redirectsTo(t, "/operations/O-1")
	h.get("/operations/O-1").want(
		t, 200, "20/s", "watched for 2 min", "5% that came back", "1,000 ready", "newest first",
	)

	h.post("/operations", url.Values{
		"action": {"requeue"},
		"id":     {string(h.receive("sms", 1, "x")[0])},
		"try":    {"1"},
		"key":    {"t"},
	}).redirectsTo(t, "/operations/O-2")
	h.get("/operations/O-2").want(t, 200, "Requeue 1 letter", "<dd>none</dd>")
	h.post("/operations", url.Values{
		"action": {"purge"},
		"id":     {string(h.receive("sms", 1, "x")[0])},
		"key":    {"p"},
	}).want(t, 400, "Type 1 to purge 1 letter")
}

func TestFromAChoiceToAnOperation(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.facts = deadletter.QueueFacts{Known: true, Exists: true, Consumers: 0, Ready: 7}
	ids := h.receive("sms", 3, "x")
	form := url.Values{
		"action": {"requeue"},
		"id":     {string(ids[0]), string(ids[1]), string(ids[0])},
		"return": {"/letters?q=state%3Adead"},
	}
	page := h.post("/letters/confirm", form).want(
		t, 200, "Requeue 2 letters to the tail", "7 ready", "nobody consumes it", `href="/letters?q=state%3Adead"`,
		"autofocus",
	)
	if n, _ := h.store.Operations(t.Context(), 0, 10); len(n) != 0 {
		t.Fatal("the confirm page started an operation")
	}
	_, rest, _ := strings.Cut(page.text, `name="key" value="`)
	key, _, _ := strings.Cut(rest, `"`)
	if len(key) < 20 {
		t.Fatalf("key %q", key)
	}
	go2 := url.Values{
		"action": {"requeue"},
		"ids":    {string(ids[0]) + " " + string(ids[1])},
		"key":    {key},
		"reason": {"fixed"},
	}
	h.post("/operations", go2).redirectsTo(t, "/operations/O-1")
	h.post("/operations", go2).redirectsTo(t, "/operations/O-1") // the button is pressed twice
	h.get("/operations/O-1").want(t, 200, "Requeue 2 letters to the tail", "fixed", "Nothing is sent yet", "Undo", "0%")
	h.get("/operations").want(t, 200, "O-1", "1 in progress")

	h.advance()
	h.get("/operations/O-1").want(t, 200, "2 of them on their way")
	h.post("/operations/O-1/cancel", nil).redirectsTo(t, "/operations/O-1")
	h.get("/operations/O-1").want(t, 200, "Cancelled", "2 cancelled, left as they were", " of 2", "0%").wantNot(
		t, "100%",
	)
	h.post("/operations/O-1/cancel", nil).want(t, 409, "The state has changed")
	h.get("/operations/O-99").want(t, 404)
	h.get("/operations/zzz").want(t, 404)
	h.post("/operations/O-99/cancel", nil).want(t, 404)
}

func TestDiscardAndRestore(t *testing.T) {
	t.Parallel()
	h := open(t)
	ids := h.receive("sms", 101, "x")
	var all []string
	for _, id := range ids {
		all = append(all, string(id))
	}
	form := url.Values{"action": {"discard"}, "ids": {strings.Join(all, " ")}, "key": {"k1"}}
	h.post("/letters/confirm", form).want(t, 200, "Discard 101 letters?", "Type 101 to confirm", "restored for 7 d")
	h.post("/operations", form).want(
		t, 400, "Nothing was discarded: see the marked field", "Type 101 to discard 101 letters", "Type 101 to confirm",
		`value="k1"`,
	)
	form.Set("count", "99")
	h.post("/operations", form).want(t, 400, `value="99"`)
	form.Set("count", "101")
	h.post("/operations", form).redirectsTo(t, "/operations/O-1")
	h.advance()
	h.get("/operations/O-1").want(t, 200, "101 discarded", "can be restored")
	h.post("/letters/confirm", form).want(t, 200, "None of the selected letters can be acted on", "it is discarded")
	h.get("/letters?q=state:discarded").want(t, 200, "101 match", `value="restore"`)
	h.post("/operations", url.Values{
		"action": {"restore"},
		"id":     all[:1],
		"key":    {"k2"},
	}).redirectsTo(t, "/operations/O-2")
	h.advance()
	h.get("/letters?q=state:dead").want(t, 200, "1 letter matches")

	h.get("/operations/O-1").want(t, 200, "Of these, 100 can still be restored", "Undo: restore 100 ")
	h.get("/audit").want(t, 200, "Restore what O-1 discarded")
	h.post("/operations", url.Values{
		"action": {"restore"},
		"scope":  {"all"},
		"q":      {"op:O-1/done"},
		"until":  {"2026-11-20T09:01:00Z"},
		"count":  {"100"},
		"key":    {"k3"},
	}).redirectsTo(t, "/operations/O-3")
	h.advance()
	h.get("/operations/O-1").want(t, 200, "None of them is discarded any more").wantNot(t, "Undo: restore")
	h.get("/audit").want(t, 200, "O-1").wantNot(t, "Restore what O-1 discarded")
	h.get("/operations").want(t, 200, "O-1").wantNot(t, "restorable")
}

// TestDiscardOfTheOldest discards the oldest few letters. The number in the plan, the number to
// type and the number of discarded letters must be the same.
func TestDiscardOfTheOldest(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.receive("sms", 80, "x")
	h.late.Add(int64(time.Second))
	newest := h.receive("sms", 80, "x")
	form := url.Values{
		"action": {"discard"},
		"scope":  {"all"},
		"q":      {"state:dead"},
		"until":  {"2026-11-20T09:01:00Z"},
		"key":    {"k"},
	}
	h.post("/letters/confirm", form).want(t, 200, "Discard 160 letters?", "Only some of them", "Type 160 to confirm")
	form.Set("first", "120")
	h.post("/letters/confirm", form).want(
		t, 200, "Discard 120 letters?", "Type 120 to confirm", `data-takes="160">120</span>`,
	)
	h.post("/operations", form).want(t, 400, "Type 120 to discard 120 letters")
	form.Set("first", "80")
	h.post("/letters/confirm", form).want(t, 200, "Discard 80 letters?").wantNot(t, "to confirm")
	h.post("/operations", form).redirectsTo(t, "/operations/O-1")
	h.advance()
	h.get("/letters?q=state:dead").want(t, 200, "80 match")
	h.get("/letters/"+string(newest[0])).want(t, 200, `value="discard"`)
	form.Set("order", "loudest")
	h.post("/operations", form).want(t, 400, "Nothing was discarded")
}

func TestWrongForms(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := string(h.receive("sms", 1, "x")[0])
	for name, form := range map[string]url.Values{
		"no letters":     {"action": {"requeue"}},
		"no action":      {"id": {id}},
		"unknown action": {"action": {"bury"}, "id": {id}},
		"no id":          {"action": {"requeue"}, "id": {"x"}},
		"long reason":    {"action": {"requeue"}, "id": {id}, "reason": {strings.Repeat("x", 501)}},
	} {
		if a := h.post("/operations", form); a.StatusCode != 400 {
			t.Errorf("%s: %d", name, a.StatusCode)
		}
	}
	h.post("/letters/confirm", url.Values{
		"action": {"requeue"},
		"id":     {"019a9f3e-5b1e-7ac0-9d3f-44e279c3aeae"},
	}).want(t, 404)
	h.post("/letters/confirm", url.Values{"action": {"requeue"}, "ids": {strings.Repeat(id+" ", 40_000)}}).want(t, 413)
	if n, _ := h.store.Operations(t.Context(), 0, 10); len(n) != 0 {
		t.Errorf("%d operations were started", len(n))
	}
}

// TestASmallRequeueAsksForLittle checks that the numbers of a requeue are under Options, that Enter
// confirms a requeue of a few letters, and that the browser remembers the numbers.
func TestASmallRequeueAsksForLittle(t *testing.T) {
	t.Parallel()
	h := open(t)
	ids := h.receive("sms", 12, "x")
	all := url.Values{"action": {"requeue"}, "id": {string(ids[0])}}
	const quick = `data-confirm-btn data-once autofocus>`
	h.post("/letters/confirm", all).want(t, 200, "<b>Options</b>: 50 a second</summary>", quick)
	for _, id := range ids[1:] {
		all.Add("id", string(id))
	}
	h.post("/letters/confirm", all).want(
		t, 200, "<b>Options</b>: 10 letters first, then a wait of 2m; the rest 50 a second; stops if more than 5% come back",
		"data-cancel autofocus>",
	).wantNot(t, quick)
	started := url.Values{
		"action": {"requeue"}, "id": {string(ids[0])}, "key": {"k"},
		"canary": {"3"}, "wait": {"30s"}, "rate": {"7"}, "stop_at": {"0"},
	}
	cookie := h.post("/operations", started).want(t, 303).Cookies()[0]
	all["id"] = all["id"][1:]
	h.post("/letters/confirm", all, cookie).want(
		t, 200, "<b>Options</b>: 3 letters first, then a wait of 30s; the rest 7 a second</summary>", `value="30s"`,
	)
	h.post("/letters/confirm", all, &http.Cookie{Name: "pace", Value: "rate=fast"}).want(
		t, 200, "A rate is a number of letters per second",
	)
}
