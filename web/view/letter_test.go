package view

import (
	"fmt"
	"html"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/payload"
)

func plainText(all []piece) string {
	var b strings.Builder
	for _, p := range all {
		b.WriteString(p.Text)
	}
	return b.String()
}

func TestTheDumpIsTheRowsWithOneRangeMarked(t *testing.T) {
	t.Parallel()
	h := *sampleHex("", 56, 72)
	var want strings.Builder
	for _, r := range h.Rows {
		fmt.Fprintf(&want, "%s  %-48s  %s\n", r.Offset, r.Hex, r.ASCII)
	}
	dump := h.dump(nil)
	if diff := cmp.Diff(want.String(), plainText(dump)); diff != "" {
		t.Error(diff)
	}
	var got []string
	for _, p := range dump {
		if p.Look == marked {
			got = append(got, p.Text)
		}
	}
	// The bytes 56 to 71 are the second half of row 0030 and the first half of row 0040, in hex and
	// in ASCII.
	if len(got) != 4 || strings.Count(got[0], " ") != 7 || len(got[0]) != 23 || len([]rune(got[1])) != 8 ||
		len(got[2]) != 23 || len([]rune(got[3])) != 8 {
		t.Errorf("%q", got)
	}
	masked := Hex{
		Marked: payload.Range{From: 8, To: 10},
		Hex:    payload.Hex{Rows: []payload.HexRow{{Offset: "0000", Hex: "61 62 •• •• 65 66 67 68  69 6a 6b", ASCII: "ab••efghijk"}}},
	}
	for _, p := range masked.dump(nil) {
		if p.Look == marked && p.Text != "69 6a" && p.Text != "ij" {
			t.Errorf("marked %q", p.Text)
		}
	}
}

func FuzzJSONPiecesKeepTheText(f *testing.F) {
	for _, seed := range []string{
		`{"a": [1, -2.5e+3, true, null, "x\"y"]}`, `"`, `{"a":`, "\x1b\u202e", "é\xff", `"\`, "12-",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		pieces, left := tokens(text, 1<<20)
		if left == 0 && len(text) < 4096 && plainText(pieces) != deadletter.VisibleLines(text) &&
			strings.ToValidUTF8(text, "") == text && !strings.Contains(
			text, "\r",
		) {
			t.Errorf("%q became %q", text, plainText(pieces))
		}
		few, left := tokens(text, 40)
		cost := 0
		for _, p := range few {
			cost += len(html.EscapeString(p.Text))
		}
		if cost > 40 || left < 0 || left > len(text) {
			t.Errorf("%q: %d bytes of 40, %d left of %d", text, cost, left, len(text))
		}
	})
}

func TestATreeIsCutAtItsEnd(t *testing.T) {
	t.Parallel()
	fields := []payload.Node{{Name: "a", Children: []payload.Node{{Name: "b"}, {Name: "c"}}}, {Name: "d"}}
	kept := func(nodes []treeNode) (n int) {
		for ; len(nodes) > 0; nodes = append(nodes[1:], nodes[0].Below...) {
			n++
		}
		return n
	}
	for room, want := range map[int]int{10_000: 0, 3*(rowCost+1) + 1: 1, 2*(rowCost+1) + 1: 2, 0: 4} {
		tree := tree{room: room}
		if n := kept(tree.fit(fields, nil)); tree.omitted != want || n+tree.omitted != 4 {
			t.Errorf("room %d: %d kept, %d omitted, want %d", room, n, tree.omitted, want)
		}
	}
	deep := payload.Node{Name: "x"}
	for range 200 {
		deep = payload.Node{Name: "x", Children: []payload.Node{deep}}
	}
	tree := tree{room: treeBudget}
	if n := kept(tree.fit([]payload.Node{deep}, nil)); n != maxDepth || tree.omitted != 201-maxDepth {
		t.Errorf("%d kept, %d omitted", n, tree.omitted)
	}
}

func TestATreeMarksWhatTheErrorQuotes(t *testing.T) {
	t.Parallel()
	tree := tree{room: treeBudget, errorText: `template "welcome_v3" of tenant 48213 not found`}
	nodes := tree.fit([]payload.Node{
		{Name: "id", Value: "4821", Kind: payload.Number},
		{Name: "template", Kind: payload.Message, Children: []payload.Node{
			{Name: "name", Value: `"welcome_v3"`, Kind: payload.String},
			{Name: "again", Value: `"welcome_v3"`, Kind: payload.String, Masked: true},
		}},
	}, nil)
	below := nodes[1].Below
	if nodes[0].InError || !below[0].InError || below[1].InError || below[1].At != "1.1" {
		t.Errorf("%+v", nodes)
	}
}

func TestHeadersShowTypeAndSource(t *testing.T) {
	t.Parallel()
	rows := headerRows(deadletter.Properties{
		ContentType: "text/plain", DeliveryMode: 1, Priority: 4, Timestamp: now,
		Headers: deadletter.Table{
			"x-death": []any{},
			"dlo-id":  "i",
			"n":       nil,
			"b":       true,
			"i8":      int8(-1),
			"u8":      uint8(2),
			"i16":     int16(3),
			"u16":     uint16(4),
			"i32":     int32(5),
			"u32":     uint32(6),
			"i64":     int64(7),
			"f32":     float32(1.5),
			"f64":     math.NaN(),
			"dec":     deadletter.Decimal{Scale: 2, Value: 1995},
			"raw":     []byte{1, 255},
			"at":      now,
			"list":    []any{"a\"b", int64(1)},
			"table":   deadletter.Table{"k": "v"},
			"text":    "\xff",
		},
	})
	var got []string
	for _, r := range rows {
		got = append(got, strings.Join([]string{r.Name, r.Value, r.Type, r.From}, "|"))
	}
	want := []string{
		"content-type|text/plain|shortstr|property", "delivery-mode|1 (transient)|octet|property",
		"priority|4|octet|property", "timestamp|2026-11-20 09:14:00 UTC|timestamp|property",
		"at|2026-11-20 09:14:00 UTC|timestamp|header", "b|true|bool|header", "dec|1995e-2|decimal|header",
		"dlo-id|i|longstr|header, set by dlo", "f32|1.5|float32|header", "f64|NaN|float64|header",
		"i16|3|int16|header", "i32|5|int32|header", "i64|7|int64|header", "i8|-1|int8|header",
		`list|["a\"b", 1]|array|header`, "n|void|void|header", "raw|01ff|bytes|header", "table|{k: \"v\"}|table|header",
		`text|\xff|longstr|header`, "u16|4|uint16|header", "u32|6|uint32|header", "u8|2|uint8|header",
		"x-death|[]|array|header, set by the broker",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	deep := any("x")
	for range 200 {
		deep = []any{deep}
	}
	if rows := headerRows(deadletter.Properties{Headers: deadletter.Table{"deep": deep}}); rows[0].Cut == 0 {
		t.Error("a cut value does not say so")
	}
	if kept, left := fitHeaders(slicesRepeat(headerRow{
		Name: "n", Value: strings.Repeat("<", 5000),
	}, 100), headerBudget); len(kept)+left != 100 || left == 0 || kept[0].Cut != 5000-maxValue {
		t.Errorf("%d kept, %d left", len(kept), left)
	}
}

func TestTheTimelineIsInTheOrderInWhichItHappened(t *testing.T) {
	t.Parallel()
	p := sampleLetter(TabTimeline)
	var got []string
	for _, h := range timeline(p.Letter, p.Attempts) {
		got = append(got, h.Title)
	}
	want := []string{
		"Published", "Rejected by a consumer of email-queue", "Received", "Attempt 1: to the tail of email-queue",
		"Rejected by a consumer of email-queue", "Attempt 2: to the tail of email-queue",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	// Two deaths of the letter are in the same second, and one is at an unknown time. The time at
	// which the letter arrived comes from another clock, which is behind the clock of the broker.
	// Nevertheless the entries must be in the right order.
	at := now.Truncate(time.Second)
	l := deadletter.Letter{
		Row: deadletter.Row{
			ReceivedAt: at.Add(-3 * time.Second),
		},
		Properties: deadletter.Properties{Headers: deadletter.Table{"x-death": []any{
			deadletter.Table{"queue": "third", "reason": "expired", "time": at},
			deadletter.Table{"queue": "second", "reason": "maxlen", "time": at},
			deadletter.Table{"queue": "first", "reason": "something new"},
		}}},
	}
	got = nil
	for _, h := range timeline(l, nil) {
		got = append(got, h.Title)
	}
	if diff := cmp.Diff([]string{
		"Died in first", "Received", "Pushed out of a full second", "Expired in third",
	}, got); diff != "" {
		t.Error(diff)
	}
}

func TestProgressAddsUp(t *testing.T) {
	t.Parallel()
	p := progressOf(map[deadletter.Result]int{
		deadletter.ResultConfirmed: 99_990, deadletter.ResultFailed: 1, deadletter.ResultCameBack: 2,
		deadletter.ResultSkipped: 3, deadletter.ResultPending: 4, deadletter.ResultCancelled: 5,
	})
	if p.Total != 100_005 || p.Done != 99_996 || p.ToGo != 4 || p.Cancelled != 5 ||
		p.Good+p.Back+p.Bad+p.Skipped != p.Done {
		t.Errorf("%+v", p)
	}
	x := 0.0
	for _, s := range p.segments() {
		var at, width float64
		fmt.Sscan(s.X, &at)
		fmt.Sscan(s.Width, &width)
		if math.Abs(at-x) > 0.02 || at+width > 100.01 {
			t.Errorf("%+v overlaps", s)
		}
		x = at + width
	}
	if len(progressOf(nil).segments()) != 0 {
		t.Error("an empty operation has segments")
	}
}

// TestALetterOffersWhatItsStateAllows checks that a page offers the actions that the state of the
// letter allows. It must offer no action for a letter that waits in the broker.
func TestALetterOffersWhatItsStateAllows(t *testing.T) {
	t.Parallel()
	for state, want := range map[deadletter.State]string{
		deadletter.StateReceived: "purge", deadletter.StateScheduled: "hold purge discard reschedule retry_now requeue",
		deadletter.StateDead: "hold purge discard requeue",
		deadletter.StateHeld: "release purge discard requeue", deadletter.StatePublishing: "",
		deadletter.StateRequeued: "purge", deadletter.StateQuiet: "purge",
		deadletter.StateDiscarded: "purge restore", deadletter.StatePurged: "",
	} {
		p := LetterPage{Letter: deadletter.Letter{Row: deadletter.Row{State: state}}}
		var got []string
		for _, v := range p.verbs() {
			got = append(got, string(v))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %s", state, got, want)
		}
		p.Letter.WaitsIn = "work-queue.retry"
		if len(p.verbs()) > 0 {
			t.Errorf("%s, in the broker: %v", state, p.verbs())
		}
		if p.Now = p.Letter.DueAt.Add(deadletter.Overdue); len(p.verbs()) != len(got) {
			t.Errorf("%s, its time in the broker long over: %v", state, p.verbs())
		}
	}
}

func TestAttemptsTellTheirWait(t *testing.T) {
	t.Parallel()
	p := sampleLetter(TabHistory)
	if first, second := p.waitBefore(0), p.waitBefore(1); first != "10.1 s" || second != "1 min 44 s" {
		t.Errorf("%q %q", first, second)
	}
	if got, want := cameBack(
		p.Attempts[0],
	), "died in email-queue, reason rejected, 0.5 s after it was sent, and 1 more copy"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	p.Letter.ReceivedAt = time.Time{}
	p.Attempts[1].At = p.Attempts[0].At
	if first, second := p.waitBefore(0), p.waitBefore(1); first != "" || second != "" || cameBack(p.Attempts[1]) != "" {
		t.Errorf("%q %q: what is not known is said", first, second)
	}
	p.Letter.State, p.Letter.DueAt, p.Letter.WaitsIn = deadletter.StateScheduled, now.Add(time.Minute), "dlo.wait.1000"
	page := render(t, Letter(p))
	for _, want := range []string{
		"The next attempt is due", "in 1 min", "dlo.wait.1000", "Why this rule?",
		`href="/letters/` + string(p.Letter.ID) + `?q=state%3Adead&amp;tab=history#why"`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is missing", want)
		}
	}
	p.Letter.State = deadletter.StateDead
	if strings.Contains(render(t, Letter(p)), "next attempt") {
		t.Error("a dead letter has a next attempt")
	}
}

// TestALetterThatWaitsInTheBrokerSaysWhatThatMeans checks the page of a letter that waits in the
// broker. It must say that the broker has the letter, when the wait ends, and which actions are
// impossible. It must also say that a letter with a longer wait can delay this letter.
func TestALetterThatWaitsInTheBrokerSaysWhatThatMeans(t *testing.T) {
	t.Parallel()
	const longer = "A letter ahead of it that waits longer delays it."
	page := render(t, Letter(sampleWaiting(TabHistory, "dlo.wait.1000000")))
	for _, want := range []string{
		"This letter waits in the broker, in <code>dlo.wait.1000000</code>, until 2026-11-20 09:18:00 UTC (in 4 min).",
		"even while dlo is down", "Attempt 3 is due in its queue",
		"cannot be edited, rescheduled, held, requeued or discarded",
		"Waited in <code>dlo.wait.100000</code> until 2026-11-20 06:55:49 UTC",
		"Waits in <code>dlo.wait.1000000</code> until 2026-11-20 09:18:00 UTC",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if strings.Contains(page, longer) || strings.Contains(page, "data-verb=") {
		t.Error("it can be held up, or acted on")
	}
	if ttl := render(
		t, Letter(sampleWaiting(TabTimeline, "dlo.wait.ttl")),
	); !strings.Contains(ttl, longer) || !strings.Contains(ttl, "Waits in <code>dlo.wait.ttl</code> until") ||
		!strings.Contains(ttl, "Waited in <code>dlo.wait.100000</code>") {
		t.Error("a letter in front of it can hold it up, and that is not said")
	}
	p := sampleWaiting(TabHistory, "")
	p.Letter.State, p.Letter.Unverified = deadletter.StateQuiet, true
	settled := render(t, Letter(p))
	for _, want := range []string{
		"Unverified:", "dlo could not see what became of it. The reason is in its history.",
		"Waited in <code>dlo.wait.1000000</code>",
	} {
		if !strings.Contains(settled, want) {
			t.Errorf("%q is missing", want)
		}
	}
	p.Letter.Unverified = false
	if strings.Contains(render(t, Letter(p)), "nverified") {
		t.Error("what was verified is doubted")
	}
}
