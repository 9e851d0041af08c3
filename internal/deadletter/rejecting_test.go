package deadletter_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// chain returns an x-death header from entries of the form "queue reason", most recent first.
func chain(text string) deadletter.Table {
	var entries []any
	for entry := range strings.SplitSeq(text, ", ") {
		queue, reason, _ := strings.Cut(entry, " ")
		d := death(queue)
		d["reason"] = reason
		entries = append(entries, d)
	}
	return deadletter.Table{"x-death": entries}
}

func TestTheRejectingQueueIsTheOrigin(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ chain, origin, reason, newest string }{
		{"work rejected", "work", "rejected", "work"},
		{"retry expired, work rejected", "work", "rejected", "retry may delay"},
		{"retry expired, work delivery_limit", "work", "delivery_limit", "retry may delay"},
		{"retry.60 expired, retry.10 expired, work rejected", "work", "rejected", "retry.60 may delay"},
		{"work rejected, retry expired", "work", "rejected", "work"},
		{"work expired", "work", "expired", "work may delay"},
		{"retry expired, work expired", "retry", "expired", "retry may delay"},
		{"retry expired, work maxlen", "retry", "expired", "retry may delay"},
		{"work maxlen, retry expired, work rejected", "work", "maxlen", "work"},
		// In the next cases, x-death shows that a consumer of the queue "work" rejected the message
		// once. Therefore, "work" is not a queue that only delays messages.
		{"work expired, work rejected", "work", "expired", "work"},
		{"work expired, other rejected, work rejected", "work", "expired", "work"},
		{"retry expired, work expired, work rejected", "work", "expired", "retry may delay"},
		// A rejection in one of dlo's own queues (here dlo.letters) does not show in which queue a
		// consumer failed. Therefore, the queue "work" may still be a queue that only delays
		// messages.
		{"work expired, dlo.letters rejected", "work", "expired", "work may delay"},
		{"dlo.wait.1000 expired, retry expired, work rejected", "work", "rejected", "retry may delay"},
		{"retry expired, sms rejected, work rejected", "sms", "rejected", "retry may delay"},
		{"retry expired, retry maxlen, work rejected", "retry", "maxlen", "retry may delay"},
	} {
		headers := chain(c.chain)
		deaths, origin := deadletter.ReadDeaths(headers, deadletter.OwnQueue)
		reason, _ := deadletter.LastDeath(headers, deaths, origin.Queue)
		newest, mayDelay := deadletter.Newest(headers, deaths, deadletter.OwnQueue)
		said := newest.Queue
		if mayDelay {
			said += " may delay"
		}
		if origin.Queue != c.origin || reason != c.reason || said != c.newest {
			t.Errorf("%s: origin %q, reason %q, newest %q, want %+v", c.chain, origin.Queue, reason, said, c)
		}
	}
}

func TestTheNewestDeathBesideXDeath(t *testing.T) {
	t.Parallel()
	last := func(queue, reason string) deadletter.Table {
		return deadletter.Table{"x-last-death-queue": queue, "x-last-death-reason": reason}
	}
	for _, c := range []struct {
		headers deadletter.Table
		queue   string
		delays  bool
	}{
		{nil, "", false},
		{last("retry", "expired"), "retry", true},
		{last("work", "rejected"), "work", false},
		{last("dlo.wait.1000", "expired"), "", false},
		{deadletter.Table{"x-last-death-queue": int64(1), "x-last-death-reason": "expired"}, "", false},
	} {
		if d, delays := deadletter.Newest(
			c.headers, nil, deadletter.OwnQueue,
		); d.Queue != c.queue || delays != c.delays {
			t.Errorf("%v: %+v, %t", c.headers, d, delays)
		}
	}
}

// TestAHostileChainIsBounded checks that the search for a rejection stops early if x-death contains
// ten thousand expiries.
func TestAHostileChainIsBounded(t *testing.T) {
	t.Parallel()
	var entries []string
	for i := range 10_000 {
		entries = append(entries, fmt.Sprintf("q%d expired", i))
	}
	deaths, origin := deadletter.ReadDeaths(
		chain(strings.Join(append(entries, "work rejected"), ", ")), deadletter.OwnQueue,
	)
	if len(deaths) != 1000 || origin.Queue != "q0" {
		t.Errorf("%d deaths, origin %q", len(deaths), origin.Queue)
	}
}
