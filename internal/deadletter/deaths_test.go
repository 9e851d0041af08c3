package deadletter_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/testenv"
)

// death returns an entry of x-death as RabbitMQ writes it.
func death(queue string) deadletter.Table {
	return deadletter.Table{
		"queue":        queue,
		"exchange":     "events",
		"reason":       "rejected",
		"count":        int64(1),
		"routing-keys": []any{"k"},
		"time":         time.Unix(1763625600, 0).UTC(),
	}
}

// withValue returns an entry of x-death in which one value is replaced.
func withValue(key string, value any) deadletter.Table {
	d := death("q")
	d[key] = value
	return d
}

// TestHostileDeaths compares what is read from headers that no broker writes with
// testdata/hostile_deaths.golden. A case without lines has neither deaths nor an origin.
func TestHostileDeaths(t *testing.T) {
	t.Parallel()
	names := strings.Repeat("n", 255)
	var all strings.Builder
	for _, c := range []struct {
		name    string
		headers deadletter.Table
	}{
		{"no headers", nil},
		{"no x-death", deadletter.Table{"a": "b"}},
		{"a string", deadletter.Table{"x-death": "queue"}},
		{"an int", deadletter.Table{"x-death": int32(7)}},
		{"nil", deadletter.Table{"x-death": nil}},
		{"an empty array", deadletter.Table{"x-death": []any{}}},
		{"an array of strings", deadletter.Table{"x-death": []any{"q", "r"}}},
		{"a table instead of an array", deadletter.Table{"x-death": death("q")}},
		{"arrays in the array", deadletter.Table{"x-death": []any{[]any{death("q")}}}},
		{
			"rubbish before a death",
			deadletter.Table{"x-death": []any{nil, "x", int64(1), deadletter.Table{}, death("q")}},
		},
		{"no queue", deadletter.Table{"x-death": []any{withValue("queue", nil)}}},
		{"an empty queue", deadletter.Table{"x-death": []any{withValue("queue", "")}}},
		{"a queue of bytes", deadletter.Table{"x-death": []any{withValue("queue", []byte("q"))}}},
		{"only a queue", deadletter.Table{"x-death": []any{deadletter.Table{"queue": "q"}}}},
		{"a count of text", deadletter.Table{"x-death": []any{withValue("count", "x")}}},
		{"a count of int32", deadletter.Table{"x-death": []any{withValue("count", int32(9))}}},
		{"a count of -1", deadletter.Table{"x-death": []any{withValue("count", int64(-1))}}},
		{"a count of 2^63-1", deadletter.Table{"x-death": []any{withValue("count", int64(math.MaxInt64))}}},
		{"an exchange of int", deadletter.Table{"x-death": []any{withValue("exchange", int64(1))}}},
		{"a reason of nil", deadletter.Table{"x-death": []any{withValue("reason", nil)}}},
		{"an unknown reason", deadletter.Table{"x-death": []any{withValue("reason", "eaten")}}},
		{"a time of text", deadletter.Table{"x-death": []any{withValue("time", "yesterday")}}},
		{"the year 5138", deadletter.Table{"x-death": []any{withValue("time", time.Unix(100_000_000_000, 0).UTC())}}},
		{"keys of text", deadletter.Table{"x-death": []any{withValue("routing-keys", "k")}}},
		{
			"keys of any type",
			deadletter.Table{"x-death": []any{withValue("routing-keys", []any{nil, int64(1), "k", []any{"l"}})}},
		},
		{
			"a queue name with NUL, RTL and invalid UTF-8 stays as it is",
			deadletter.Table{"x-death": []any{withValue("queue", "a\x00\u202eb\xff")}},
		},
		{"names of 255 bytes", deadletter.Table{"x-death": []any{withValue("queue", names)}}},
		{"ours only", deadletter.Table{"x-death": []any{withValue("queue", "dlo.wait.1")}}},
		{
			"x-last-death-queue where x-death says nothing",
			deadletter.Table{"x-death": "x", "x-last-death-queue": "q", "x-last-death-exchange": "events"},
		},
		{"x-last-death-queue of ours", deadletter.Table{"x-last-death-queue": "dlo.letters"}},
		{"x-last-death-queue of int", deadletter.Table{"x-last-death-queue": int64(1)}},
		{"x-first-death-queue is no origin", deadletter.Table{"x-first-death-queue": "q"}},
	} {
		deaths, origin := deadletter.ReadDeaths(c.headers, deadletter.OwnQueue)
		fmt.Fprintf(&all, "%s\n", c.name)
		for _, d := range deaths {
			fmt.Fprintf(&all, "    %q\n", fmt.Sprintf("%+v", d))
		}
		if origin != (deadletter.Origin{}) {
			fmt.Fprintf(&all, "    origin %q\n", fmt.Sprintf("%+v", origin))
		}
	}
	testenv.GoldenText(t, "hostile_deaths.golden", all.String())
}

func TestTenThousandDeathsAreBounded(t *testing.T) {
	t.Parallel()
	entries, keys := make([]any, 10_000), make([]any, 10_000)
	for i := range entries {
		entries[i], keys[i] = death("q"), "k"
	}
	entries[0].(deadletter.Table)["routing-keys"] = keys
	deaths, origin := deadletter.ReadDeaths(deadletter.Table{"x-death": entries}, deadletter.OwnQueue)
	if len(deaths) != 1000 || len(deaths[0].RoutingKeys) != 1000 || origin.Queue != "q" {
		t.Errorf("%d deaths, %d keys, origin %+v", len(deaths), len(deaths[0].RoutingKeys), origin)
	}
}

func TestLastDeath(t *testing.T) {
	t.Parallel()
	first, second := time.Unix(1, 0), time.Unix(2, 0)
	deaths := []deadletter.Death{
		{Queue: "wait", Reason: "expired", FirstAt: second},
		{Queue: "q", Reason: "rejected", FirstAt: first},
		{Queue: "q", Reason: "maxlen", FirstAt: second},
	}
	for _, c := range []struct {
		name    string
		headers deadletter.Table
		queue   string
		reason  string
		at      time.Time
	}{
		{
			"the most recent of the queue",
			deadletter.Table{"x-last-death-reason": "delivery_limit"},
			"q",
			"rejected",
			first,
		},
		{
			"no entry of the queue",
			deadletter.Table{"x-last-death-reason": "delivery_limit"},
			"other",
			"delivery_limit",
			time.Time{},
		},
		{"nothing says", nil, "other", "", time.Time{}},
		{"a reason of another type", deadletter.Table{"x-last-death-reason": int64(1)}, "", "", time.Time{}},
	} {
		if reason, at := deadletter.LastDeath(c.headers, deaths, c.queue); reason != c.reason || !at.Equal(c.at) {
			t.Errorf("%s: %q at %s", c.name, reason, at)
		}
	}
}

// FuzzReadDeaths checks ReadDeaths with any headers. Every death in the result must have a queue.
// The origin must be the queue of one of these deaths, or the queue in the header
// x-last-death-queue. It must never be one of dlo's own queues.
func FuzzReadDeaths(f *testing.F) {
	for _, name := range names(f) {
		for _, d := range deliveries(f, name) {
			add(f, d.Properties.Headers)
		}
	}
	for _, v := range []any{
		"q",
		int64(1),
		nil,
		[]any{},
		[]any{"q"},
		death("q"),
		[]any{withValue("count", "x")},
		[]any{withValue("queue", []any{"q"})},
		[]any{withValue("routing-keys", everyType())},
		[]any{everyType()},
	} {
		add(f, deadletter.Table{"x-death": v})
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := deadletter.DecodeProperties(b)
		if err != nil {
			return
		}
		headers := p.Headers
		ours := func(queue string) bool { return len(queue)%3 == 0 }
		deaths, origin := deadletter.ReadDeaths(headers, ours)
		queues := map[string]bool{}
		for _, d := range deaths {
			if d.Queue == "" {
				t.Fatal("a death without a queue")
			}
			queues[d.Queue] = true
		}
		last, _ := headers["x-last-death-queue"].(string)
		if origin.Queue != "" && (ours(origin.Queue) || !queues[origin.Queue] && origin.Queue != last) {
			t.Fatalf("origin %q out of nowhere, or ours", origin.Queue)
		}
		if origin.Queue == "" && origin != (deadletter.Origin{}) {
			t.Fatalf("an origin without a queue: %+v", origin)
		}
		deadletter.LastDeath(headers, deaths, origin.Queue)
		a := deadletter.Arrival{Properties: deadletter.Properties{Headers: headers}}
		a.DeliveryCount()
		a.Identity()
		if _, err := a.Print(); err != nil {
			t.Fatal(err)
		}
	})
}

func add(f *testing.F, headers deadletter.Table) {
	f.Helper()
	b, err := deadletter.Properties{Headers: headers}.Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
}
