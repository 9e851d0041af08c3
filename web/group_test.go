package web_test

import (
	"context"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/payload"
	"github.com/deadletteroffice/dlo/web"
)

// requeueQuietly requeues letters of a queue, and records that none of them came back.
func (h *house) requeueQuietly(queue string, ids []deadletter.ID) {
	h.t.Helper()
	confirmed := h.requeued(ids)
	if n, err := h.store.SettleQuiet(h.t.Context(), deadletter.Origin{
		Broker: "main", VHost: "/", Queue: queue,
	}, confirmed.Add(time.Hour), len(ids), deadletter.QueueFacts{
		Exists: true, Consumers: 1, Ready: 0,
	}); n != len(ids) || err != nil {
		h.t.Fatalf("%d of %d letters are quiet: %v", n, len(ids), err)
	}
}

// requeued requeues letters. It returns the time at which the broker confirmed them.
func (h *house) requeued(ids []deadletter.ID) time.Time {
	h.t.Helper()
	ctx := context.Background()
	var list []string
	for _, id := range ids {
		list = append(list, string(id))
	}
	h.post("/operations", url.Values{
		"action": {"requeue"},
		"ids":    {strings.Join(list, " ")},
		"key":    {string(ids[0])},
	}).want(h.t, 303)
	h.advance()
	now := start.Add(time.Duration(h.late.Load())).Add(time.Minute)
	due, err := h.store.ClaimDue(ctx, "main", now, len(ids), deadletter.Allowance{
		Allow: func(deadletter.Origin, string) (int, bool) { return len(ids), false },
	})
	if err != nil || len(due) != len(ids) {
		h.t.Fatalf("%d of %d letters are due: %v", len(due), len(ids), err)
	}
	var marks []deadletter.Mark
	for _, d := range due {
		marks = append(marks, deadletter.Mark{
			Letter: d.Letter.ID, Token: d.Attempt.Token, Outcome: deadletter.OutcomeConfirmed,
			DueAt: now.Add(time.Minute),
		})
	}
	if err := h.store.Mark(ctx, marks, deadletter.Noted{}); err != nil {
		h.t.Fatal(err)
	}
	return now
}

// TestAGroupSaysWhatIsDifferent checks how a group of dead letters differs from other letters of
// its queue. In the test, the letters of one tenant die, and requeued letters of other tenants have
// not come back. The page must name the tenant whose letters die. It must not compare masked
// values.
func TestAGroupSaysWhatIsDifferent(t *testing.T) {
	t.Parallel()
	masks := payload.Masks{Patterns: []*regexp.Regexp{regexp.MustCompile(`secret-[a-z]+`)}}
	h := open(t, func(o *web.Options) {
		decoder := &payload.Decoder{Mask: masks.Body()}
		o.Decoder, o.Header = func() *payload.Decoder { return decoder }, masks.Header
	})
	letter := func(i int, tenant string) string {
		return fmt.Sprintf(
			`{"event_id":"evt-%d","tenant":%q,"plan":%[2]q,"region":%[2]q,"zone":%[2]q,"currency":"EUR","key":%[3]q}`,
			i, tenant, "secret-"+tenant,
		)
	}
	h.failure = "first"
	for i := range 20 {
		h.requeueQuietly("mail", h.receive("mail", 1, letter(i, []string{"bolt", "core", "dune"}[i%3])))
	}
	h.failure = "second"
	for i := range 10 {
		h.receive("mail", 1, letter(100+i, "acme"))
	}
	var g api.GroupDetail
	h.get("/api/v1/groups/G-2").want(t, 200).json(t, &g)
	want := []deadletter.Different{ // the fourth, zone, is left out
		{Field: "plan", Value: "acme", Here: 10},
		{Field: "region", Value: "acme", Here: 10},
		{Field: "tenant", Value: "acme", Here: 10},
	}
	if g.Sampled != 10 || g.Quiet != 20 || !slices.Equal(g.Different, want) {
		t.Errorf("%d and %d letters: %+v", g.Sampled, g.Quiet, g.Different)
	}
	page := h.get("/groups/G-2").want(
		t, 200, "What is different",
		"The newest 10 letters here, compared with the newest 20 letters of this queue and type that did not come back",
	)
	if peek := h.get("/groups/G-2?peek=1").want(t, 200); strings.Contains(peek.text, "What is different") ||
		strings.Contains(peek.text, "Newest letter") {
		t.Error("a look beside the list has the whole page")
	}
	if !strings.Contains(page.text, "&#34;acme&#34;") || !strings.Contains(page.text, "••••") ||
		strings.Contains(page.text, "secret-") {
		t.Error("the newest letter is not decoded under its masks")
	}
	if none := h.get("/groups/G-1").want(t, 200); strings.Contains(none.text, "What is different") {
		t.Error("a group without letters is compared")
	}
}

// TestOneLetterIsTried checks that the page of a group offers to requeue a single letter, which is
// the newest one. The page of the operation must then show the result.
func TestOneLetterIsTried(t *testing.T) {
	t.Parallel()
	h := open(t)
	ids := h.receive("mail", 3, "x")
	newest := string(ids[2])
	h.get("/groups/G-1").want(t, 200, "Try this one", `name="id" value="`+newest+`"`)
	h.facts = deadletter.QueueFacts{Known: true, Exists: true, Consumers: 1, Unacked: 1}
	h.post("/letters/confirm", url.Values{"id": {newest}, "action": {"requeue"}}).want(t, 200, "1 letter")
	h.requeueQuietly("mail", ids[2:])
	h.get("/operations/O-1").want(t, 200, "This letter", "Requested", "Confirmed", "Quiet")
	h.post("/operations", url.Values{
		"action": {"requeue"},
		"ids":    {string(ids[0]) + " " + string(ids[1])},
		"key":    {"k"},
	}).want(t, 303)
	if two := h.get("/operations/O-2").want(t, 200); strings.Contains(two.text, "This letter") {
		t.Error("an operation of two letters has a letter of its own")
	}
}
