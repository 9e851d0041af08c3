package web_test

import (
	"encoding/base64"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/payload"
	"github.com/deadletteroffice/dlo/internal/rules"
	"github.com/deadletteroffice/dlo/web"
)

// sendJSON sends a text as JSON, with the given method.
func (h *house) sendJSON(method, path, body string) answer {
	h.t.Helper()
	r := request(method, path, body)
	r.Header.Set("Content-Type", "application/json")
	return h.do(r)
}

func TestAPILetters(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.receive("sms", 7, "x")
	h.receive("email", 2, "x")
	type row map[string]any
	var page struct {
		Letters []row
		Next    string
	}
	seen := map[string]bool{}
	after := ""
	for range 10 {
		h.get("/api/v1/letters?q=queue:sms&limit=3&after="+after).want(t, 200).json(t, &page)
		for _, l := range page.Letters {
			seen[l["id"].(string)] = true
			if l["queue"] != "sms" || l["state"] != "dead" || l["group"] != "G-1" || l["attempts"] != 0.0 ||
				l["received_at"] != "2026-11-20T09:00:00Z" {
				t.Fatalf("%v", l)
			}
			if _, ok := l["due_at"]; ok {
				t.Error("a letter without a due time has one")
			}
		}
		if after = page.Next; after == "" {
			break
		}
	}
	if len(seen) != 7 {
		t.Errorf("%d letters", len(seen))
	}
	h.get("/api/v1/letters?q=queue:nope").want(t, 200, `"letters":[]`, `"next":""`)
	h.get("/api/v1/letters/count?q=queue:sms").want(t, 200, `{"count":7,"exact":true}`)
	h.get("/api/v1/letters/facets").want(
		t, 200, `"queue":[{"value":"sms","count":7},{"value":"email","count":2}]`,
		`"state":[{"value":"dead","count":9}]`,
	)
}

func TestAPILetter(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.receive("sms", 1, `{"a": 1}`)[0]
	var l struct {
		ID       string
		Queue    string
		Body     []byte
		Attempts []any
		Headers  map[string]json.RawMessage
		Deaths   []map[string]any
		Decoded  struct {
			Kind string
			JSON map[string]any
		}
		History []map[string]any
	}
	h.get("/api/v1/letters/"+string(id)).want(
		t, 200, `"body":"`+base64.StdEncoding.EncodeToString([]byte(`{"a": 1}`))+`"`, `"attempts_used":0`,
	).json(t, &l)
	if l.ID != string(id) || l.Queue != "sms" || string(l.Body) != `{"a": 1}` || l.Attempts == nil ||
		string(l.Headers["tries"]) != `{"t":"int32","v":3}` || l.Deaths[0]["reason"] != "rejected" ||
		l.Decoded.Kind != "json" || l.Decoded.JSON["a"] != 1.0 || len(l.History) == 0 {
		t.Errorf("%+v", l)
	}
}

// TestAPILetterSaysWhyItsRule checks that a letter lists each rule in use with its clauses. The
// clauses must show what the rule requires. They must never show the values of the letter, masked
// or not.
func TestAPILetterSaysWhyItsRule(t *testing.T) {
	t.Parallel()
	const card = "4111111111111111"
	masks := payload.Masks{
		Headers:  []string{"x-error-message"},
		Patterns: []*regexp.Regexp{regexp.MustCompile(`\b[0-9]{16}\b`)},
	}
	h := open(t, withRetries, func(o *web.Options) {
		decoder := &payload.Decoder{Mask: masks.Body()}
		o.Decoder, o.Header = func() *payload.Decoder { return decoder }, masks.Header
	})
	set := *h.Rules.Set()
	set.Rules = []rules.Rule{
		{Name: "email", Match: rules.Match{Queue: rules.Patterns{"email"}}},
		{
			Name: "tries",
			Match: rules.Match{
				Queue:  rules.Patterns{"sms"},
				Header: []rules.Named{{Name: "x-error-message", Want: rules.Patterns{"*4?? Gone*"}}},
				Field:  []rules.Named{{Name: "card", Want: rules.Patterns{"*"}}},
			},
		},
		{
			Name:  "gone",
			Match: rules.Match{Header: []rules.Named{{Name: "x-error-message", Want: rules.Patterns{"*Gone*"}}}},
		},
	}
	h.Rules.Replace(&set)
	id := h.receive("sms", 1, `{"card": "`+card+`"}`)[0]
	a := h.get("/api/v1/letters/"+string(id)).want(
		t, 200, `"rule":""`,
		`"rules":[{"rule":"email","matched":false,"applies":false,"clauses":[{"field":"queue","want":"email","fits":false}]},{"rule":"tries","matched":false,"applies":false,`,
		`{"rule":"gone","matched":true,"applies":true,"clauses":[{"field":"header x-error-message","want":"*Gone*","fits":true}]},{"rule":"default","matched":true,"applies":false,"clauses":[]}]`,
	)
	if strings.Contains(a.text, card) || strings.Contains(a.text, `"v":"endpoint answered`) {
		t.Errorf("the rules tell a masked value: %s", a.text)
	}
}

func TestAPILetterSaysWhereAnAttemptWaited(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.receive("sms", 1, "x")[0]
	for n, values := range []string{"'came back', $2, '', NULL", "'confirmed', $2, 'dlo.wait.10000', $3"} {
		h.exec(
			`INSERT INTO attempts (letter, n, number, token, queue, outcome, at, waits_in, wait_until)
			SELECT id, $1, $1, randomblob(16), 'sms', `+values+` FROM letters`,
			n+1, start.UnixMilli(), start.Add(10*time.Second).UnixMilli(),
		)
	}
	h.get("/api/v1/letters/"+string(id)).want(
		t, 200, `"at":"2026-11-20T09:00:00Z"},{"number":2,`,
		`"waits_in":"dlo.wait.10000","wait_until":"2026-11-20T09:00:10Z"}]`,
	)
	for _, tab := range []string{"timeline", "history"} {
		h.get("/letters/"+string(id)+"?tab="+tab).want(
			t, 200, "aited in <code>dlo.wait.10000</code> until 2026-11-20 09:00:10 UTC",
		)
	}
}

func TestAPIOperations(t *testing.T) {
	t.Parallel()
	h := open(t)
	ids := h.receive("sms", 3, "x")
	body := `{"action":"requeue","ids":["` + string(ids[0]) + `","` + string(ids[1]) + `"],"reason":"fixed"`
	h.postJSON("/api/v1/operations", body+`,"dry_run":true}`).want(
		t, 200, `"eligible":2`, `"exists":null,"consumers":null,"ready":null`, `"skipped":[]`,
	)
	h.get("/api/v1/operations").want(t, 200, `{"operations":[],"next":""}`)

	a := h.postJSON(
		"/api/v1/operations", body+"}", "Idempotency-Key", "k", "User-Agent", "dlo/1.0",
	).want(t, 202, `"id":"O-1"`, `"total":2`, `"pending":2`, `"through":"cli"`)
	if a.Header.Get("Location") != "/api/v1/operations/O-1" {
		t.Error(a.Header)
	}
	h.postJSON("/api/v1/operations", body+"}", "Idempotency-Key", "k").want(t, 202, `"id":"O-1"`)
	h.postJSON("/api/v1/operations", body+"}").want(t, 202, `"id":"O-2"`, `"through":"api"`)
	h.get("/api/v1/operations?limit=1").want(t, 200, `"id":"O-2"`, `"next":"O-2"`)
	h.get("/api/v1/operations?limit=1&after=O-2").want(t, 200, `"id":"O-1"`, `"next":""`)
	h.advance()
	h.get("/api/v1/operations/O-1?result=released").want(t, 200, `"released":2`, `"letter":"`+string(ids[0])+`"`)
	h.get("/api/v1/operations/O-1").want(t, 200, `"letters":[]`, `"came_back":0`)
	h.postJSON("/api/v1/operations/O-1/cancel", "").want(t, 200, `"state":"cancelled"`)
	h.postJSON("/api/v1/operations/O-1/cancel", "").want(t, 409, `"status":409`)
}

// TestAPIOperationsByQuery requests a plan and starts exactly that plan. It then pauses, resumes
// and cancels the operation.
func TestAPIOperationsByQuery(t *testing.T) {
	t.Parallel()
	h := open(t)
	ids := h.receive("sms", 4, "x")
	var plan struct {
		Query  string
		Until  string
		Total  int
		Queues []map[string]any
		Pace   map[string]any
	}
	h.postJSON(
		"/api/v1/operations",
		`{"action":"requeue","q":"state:dead since:1h","except":["`+string(ids[0])+`"],"dry_run":true,"to":"repair"}`,
	).
		want(t, 200, `"eligible":3`, `"target":"repair"`, `"came_back":0`, `"warnings":[]`).json(t, &plan)
	if plan.Total != 3 || plan.Query != "state:dead since:2026-11-20T08:01:00.000Z" || plan.Until == "" ||
		plan.Pace["canary"] != 10.0 || plan.Pace["hold"] != "10s" || plan.Pace["canary_wait"] != "2m0s" {
		t.Fatalf("%+v", plan)
	}
	h.postJSON(
		"/api/v1/operations",
		`{"action":"requeue","q":"`+plan.Query+`","except":["`+string(ids[0])+
			`"],"to":"repair","canary":1,"canary_wait":"0s","order":"newest","rate":2.5,"stop_at":0,"max_depth":7}`,
	).
		want(
			t, 202, `"phase":"holding"`, `"phase_until":`, `"query":"`+plan.Query+`"`, `"except":1`, `"to":"repair"`,
			`"rate":2.5`, `"order":"newest"`, `"phase":"holding"`, `"new_failures":{`,
		)
	h.sendJSON("PATCH", "/api/v1/operations/O-1", `{"rate":400}`).want(t, 200, `"rate":400`)
	h.sendJSON("PATCH", "/api/v1/operations/O-1", `{"rate":-1}`).want(t, 400)
	h.sendJSON("PATCH", "/api/v1/operations/O-1", `{}`).want(t, 400, "a rate is a number")
	h.postJSON("/api/v1/operations/O-1/resume", "").want(t, 409)
	h.postJSON("/api/v1/operations/O-1/pause", "").want(t, 200, `"state":"paused"`)
	h.advance()
	h.get("/api/v1/operations/O-1").want(t, 200, `"released":0`)
	h.postJSON("/api/v1/operations/O-1/resume", "").want(t, 200, `"state":"running"`)
	h.advance()
	// the newest letter is sent first
	h.get("/api/v1/operations/O-1?result=released").want(t, 200, `"released":1`, string(ids[3]))
	h.get("/api/v1/operations/O-1?result=twice").want(t, 200, `"letters":[]`)
	h.postJSON("/api/v1/operations/O-1/cancel", "").want(t, 200, `"state":"cancelled"`, `"phase":"over"`)
	for _, c := range []struct{ action, result string }{
		{"hold", "held"},
		{"release", "dead"},
		{"discard", "discarded"},
		{"restore", "dead"},
		{"purge", "purged"},
	} {
		h.postJSON(
			"/api/v1/operations", `{"action":"`+c.action+`","ids":["`+string(ids[1])+`"],"hold":"0s"}`,
		).want(t, 202)
		h.advance()
		h.get("/api/v1/letters/"+string(ids[1])).want(t, 200, `"state":"`+c.result+`"`)
	}
}

func TestAPIErrorsAreProblems(t *testing.T) {
	t.Parallel()
	h := open(t)
	id, other := string(h.receive("sms", 1, "x")[0]), string(h.receive("sms", 1, "y")[0])
	for _, c := range []struct {
		name   string
		answer answer
		status int
		detail string
	}{
		{"query with a mistake", h.get("/api/v1/letters?q=state:daed"), 400, `"position":6`},
		{"unknown parameter", h.get("/api/v1/letters?queue=sms"), 400, "there is no parameter"},
		{"bad limit", h.get("/api/v1/letters?limit=501"), 400, "limit: expected number <= 500"},
		{"bad order", h.get("/api/v1/letters?order=loudest;drop"), 400, "must be escaped"},
		{"bad order, quietly", h.get("/api/v1/letters?order=loudest"), 400, "order: expected value to be one of"},
		{"bad cursor", h.get("/api/v1/letters?after=zz"), 400, ""},
		{
			"no such letter", h.get("/api/v1/letters/019a9f3e-5b1e-7ac0-9d3f-44e279c3aeae"), 404,
			`"detail":"there is no letter 019a9f3e-5b1e-7ac0-9d3f-44e279c3aeae"`,
		},
		{"no id", h.get("/api/v1/letters/7"), 404, `"detail":"there is no letter 7"`},
		{"no such path", h.get("/api/v1/nonsense"), 404, `"detail":"there is no call GET /api/v1/nonsense"`},
		{"no such version", h.get("/api/v2/letters"), 404, ""},
		{"wrong method", h.do(request("DELETE", "/api/v1/letters", "")), 405, ""},
		{"no such operation", h.get("/api/v1/operations/O-9"), 404, `"detail":"there is no operation O-9"`},
		{"bad result", h.get("/api/v1/operations/O-9?result=good"), 400, "came_back"},
		{"no JSON", h.postJSON("/api/v1/operations", "{"), 400, "cannot be read"},
		{
			"two values", h.postJSON("/api/v1/operations", `{"action":"requeue","ids":["`+id+`"]}{}`), 400,
			"after top-level value",
		},
		{
			"requeue at a time",
			h.postJSON("/api/v1/operations", `{"action":"requeue","q":"state:dead","due_at":"2026-11-20T09:00:00Z"}`),
			400, `a reschedule needs due_at`,
		},
		{
			"reschedule without a time", h.postJSON("/api/v1/operations", `{"action":"reschedule","q":"state:dead"}`),
			400, `a reschedule needs due_at`,
		},
		{
			"reschedule beyond the end of time",
			h.postJSON(
				"/api/v1/operations", `{"action":"reschedule","q":"state:dead","due_at":"2036-11-20T09:00:00Z"}`,
			),
			400, `365 days`,
		},
		{
			"again without a requeue",
			h.postJSON("/api/v1/operations", `{"action":"discard","q":"state:dead","reset_attempts":true}`), 400,
			`only a requeue`,
		},
		{
			"query with a mistake in an action",
			h.postJSON("/api/v1/operations", `{"action":"requeue","q":"state:daed"}`), 400, `"position":6`,
		},
		{
			"query and ids", h.postJSON("/api/v1/operations", `{"action":"requeue","q":"state:dead","ids":["`+id+`"]}`),
			400, "not both",
		},
		{"neither", h.postJSON("/api/v1/operations", `{"action":"requeue"}`), 400, "no letter is selected"},
		{
			"bad duration", h.postJSON("/api/v1/operations", `{"action":"requeue","q":"","hold":"soon"}`), 400,
			"is not a duration",
		},
		{
			"duration without unit", h.postJSON("/api/v1/operations", `{"action":"requeue","q":"","canary_wait":120}`),
			400, "a duration is written as a string",
		},
		{
			"bad order of sending", h.postJSON("/api/v1/operations", `{"action":"requeue","q":"","order":"biggest"}`),
			400, "oldest or newest",
		},
		{
			"rate of nothing", h.postJSON("/api/v1/operations", `{"action":"requeue","q":"","rate":0}`), 400,
			"rate is above 0",
		},
		{
			"redirect of a discard", h.postJSON("/api/v1/operations", `{"action":"discard","q":"","to":"x"}`), 400,
			"only a requeue",
		},
		{
			"redirect into dlo itself",
			h.postJSON("/api/v1/operations", `{"action":"requeue","q":"","to":"dlo.letters"}`), 400, "",
		},
		{
			"more than were shown",
			h.postJSON("/api/v1/operations", `{"action":"discard","ids":["`+id+`","`+other+`"],"expect":1}`), 409,
			"but 1 were shown",
		},
		{"rate of no operation", h.sendJSON("PATCH", "/api/v1/operations/O-9", `{"rate":5}`), 404, ""},
		{
			"unknown action", h.postJSON("/api/v1/operations", `{"action":"bury","ids":["`+id+`"]}`), 400,
			"requeue, edit, retry_now, reschedule, discard",
		},
		{"no ids", h.postJSON("/api/v1/operations", `{"action":"requeue","ids":[]}`), 400, "no letter is selected"},
		{"no content type", h.do(request("POST", "/api/v1/operations", "{}")), 415, ""},
		{"too large", h.postJSON("/api/v1/operations", `{"reason":"`+strings.Repeat("x", 1<<20)+`"}`), 413, ""},
		{"compressed", h.postJSON("/api/v1/operations", "{}", "Content-Encoding", "gzip"), 415, ""},
	} {
		if c.answer.StatusCode != c.status || c.answer.Header.Get("Content-Type") != "application/problem+json" ||
			!strings.Contains(c.answer.text, c.detail) {
			t.Errorf("%s: %d %s %s", c.name, c.answer.StatusCode, c.answer.Header.Get("Content-Type"), c.answer.text)
		}
		var p struct {
			Type, Title string
			Status      int
		}
		if err := json.Unmarshal(
			[]byte(c.answer.text), &p,
		); err != nil || p.Status != c.status || p.Title == "" || p.Type == "" {
			t.Errorf("%s: %v %s", c.name, err, c.answer.text)
		}
	}
	if n, _, _ := h.store.Count(t.Context(), deadQuery(t), 0); n != 2 {
		t.Errorf("%d letters are dead", n)
	}
}
