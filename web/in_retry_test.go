package web_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/rules"
	"github.com/deadletteroffice/dlo/web"
)

// retries sets the rule by which letters are retried 10 s, 100 s and 1000 s after a death.
func (h *house) retries() {
	h.book.Replace(&rules.Set{Default: rules.Rule{
		Name: rules.DefaultName, Severity: deadletter.SeverityNotify,
		Retry: &rules.Retry{Delays: []time.Duration{10 * time.Second, 100 * time.Second, 1000 * time.Second}},
	}})
}

// inRetry is the query of exactly the letters in retry, as links have it.
const inRetry = "/letters?q=state%3Ascheduled%2Cpublishing%2Crequeued"

// TestLettersOnTheirWayCount checks what pages say while no letter is dead, and letters wait for a
// retry or were sent and are watched. Each page must say how many there are, and when the first of
// them can die or count as quiet. Queues without consumers must be named, if they are known.
func TestLettersOnTheirWayCount(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.retries()
	ids := h.wait("orders", 3)
	sentence := []string{
		`<a href="` + inRetry + `">3 letters are being retried</a>; the first can die at `, `>09:18</time>`,
	}
	h.get("/").want(t, 200, append(sentence, "In retry", "Nothing needs a person yet.", "Open the 3 letters")...).
		wantNot(t, "nobody consumes", "Scheduled for retry")
	h.get("/triage").want(t, 200, append(sentence, "Inbox zero", `href="/triage?tab=retrying"`, "Show 1 group")...)
	h.get("/triage?tab=retrying").want(t, 200, `value="G-1"`, "next retry 09:00", `<span class="strong">3</span>`).
		wantNot(t, `value="requeue"`, `value="discard"`)
	h.get("/letters").redirectsTo(t, "/letters?q=")
	h.get("/letters?q=").want(t, 200, append(sentence, "3 match", "No letter is dead or held, so letters in all states")...)
	h.get(inRetry).want(t, 200, "3 match").wantNot(t, "No letter is dead or held, so")
	h.get("/api/v1/groups?tab=retrying").want(
		t, 200, `"id":"G-1"`, `"waiting":3`, `"retrying":3`, `"next_at":"2026-11-20T09:00:10Z"`,
	)

	h.late.Add(int64(10 * time.Second))
	h.sent(ids, start.Add(2*time.Minute))
	h.late.Add(int64(10 * time.Second))
	quiet := []string{"3 letters are being retried</a>; the first can count as quiet at ", `>09:02</time>`}
	for _, page := range []string{"/", "/triage", "/letters?q="} {
		h.get(page).want(t, 200, quiet...)
	}
	h.get("/letters/"+string(ids[0])).want(t, 200, "<dt>Watch ends</dt>").wantNot(t, "Watched in", "<dt>Due</dt>")
	h.get("/triage?tab=retrying").want(t, 200, "quiet from 09:02", `<span class="strong">3</span>`)
	h.get("/api/v1/groups?tab=retrying").want(t, 200, `"waiting":0`, `"retrying":3`, `"next_at":"2026-11-20T09:02:00Z"`)

	h.receive("sms", 1, "x") // a dead letter of another group
	h.get("/").want(t, 200, "sms is failing", `<a href="`+inRetry+`">3 letters are being retried</a>.`)
	h.get("/letters").redirectsTo(t, "/letters?q=state%3Adead%2Cheld")
	h.get("/letters?q=").wantNot(t, "No letter is dead or held")
	h.get("/triage?tab=retrying").want(t, 200, `value="G-1"`).wantNot(t, `value="G-2"`)
}

// TestPagesNameQueuesThatNobodyConsumes checks that the sentence about letters in retry names a
// queue only if the broker says that the queue has no consumer.
func TestPagesNameQueuesThatNobodyConsumes(t *testing.T) {
	t.Parallel()
	for says, facts := range map[string]deadletter.QueueFacts{
		"nobody consumes orders": {Known: true, Exists: true},
		"unknown":                deadletter.UnknownQueue,
		"gone":                   {Known: true},
	} {
		h := open(t, func(o *web.Options) {
			o.Facts = func(context.Context, deadletter.Origin) deadletter.QueueFacts { return facts }
		})
		h.retries()
		h.wait("orders", 1)
		if page := h.get("/").want(t, 200, "1 letter is being retried"); says == "nobody consumes orders" {
			page.want(t, 200, says)
		} else {
			page.wantNot(t, "nobody consumes")
		}
	}
}

// TestLettersInRetryOfOtherQueues checks that a reader of one queue learns nothing about the
// letters in retry of other queues.
func TestLettersInRetryOfOtherQueues(t *testing.T) {
	t.Parallel()
	reader := deadletter.Principal{Name: "lena", Grants: []deadletter.Grant{
		{Role: deadletter.RoleReader, Places: deadletter.Places{Queues: []string{"sms"}}},
	}}
	h := open(t, func(o *web.Options) {
		o.Actor = func(*http.Request) (deadletter.Principal, error) { return reader, nil }
	})
	h.retries()
	h.wait("kanarie", 3)
	for _, page := range []string{"/", "/triage", "/triage?tab=retrying", "/letters?q="} {
		h.get(page).wantNot(t, "being retried", "kanarie", "G-1")
	}
	h.wait("sms", 2)
	h.get("/").want(t, 200, "2 letters are being retried", `>09:18</time>`).wantNot(t, "kanarie")
	h.get("/triage?tab=retrying").want(t, 200, `value="G-2"`).wantNot(t, `value="G-1"`)
}

// sent marks waiting letters as sent and confirmed, watched until a time.
func (h *house) sent(ids []deadletter.ID, until time.Time) {
	h.t.Helper()
	now := start.Add(time.Duration(h.late.Load()))
	due, err := h.store.ClaimDue(h.t.Context(), "main", now, len(ids), deadletter.Allowance{
		Allow: func(deadletter.Origin, string) (int, bool) { return len(ids), false },
	})
	if err != nil || len(due) != len(ids) {
		h.t.Fatalf("%d of %d letters are due: %v", len(due), len(ids), err)
	}
	var marks []deadletter.Mark
	for _, d := range due {
		marks = append(marks, deadletter.Mark{
			Letter: d.Letter.ID, Token: d.Attempt.Token, Outcome: deadletter.OutcomeConfirmed, DueAt: until,
		})
	}
	if err := h.store.Mark(h.t.Context(), marks, deadletter.Noted{}); err != nil {
		h.t.Fatal(err)
	}
}
