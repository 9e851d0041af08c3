package system

import (
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/testenv"
)

// TestFromAQueueToAQueueByCommandLine drains a queue with the command line and sends its letters to
// another queue. It sends them with a saved redirect, with --to, and with a canary, and checks the
// report of the result.
func TestFromAQueueToAQueueByCommandLine(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	testenv.Broker(t)
	_, url := testenv.VHost(t)
	p := serve(t, url, "default: {retry: {delays: []}}\nrequeue: {watch: 1s}\n", nil).child
	conn := publishParked(t, url, "old", 30, nil)
	publishParked(t, url, "repaired", 0, nil)
	ctx := t.Context()
	out, _ := p.dlo(ctx, 0, "", "queues", "drain", "old", "--count", "20", "--origin", "gone", "--watch")
	if !strings.Contains(out, "20 letters taken out of old; as many as were asked for") {
		t.Error(out)
	}
	out, _ = p.dlo(ctx, 0, "", "queues", "drain", "old", "--origin", "gone", "--watch", "-o", "jsonl")
	if !strings.Contains(out, `"taken":10`) || ready(t, conn, "old") != 0 {
		t.Error(out)
	}
	if out, _ = p.dlo(ctx, 0, "", "queues", "drains"); strings.Count(out, "done") != 2 {
		t.Error(out)
	}
	p.dlo(ctx, 1, "", "queues", "drain", "dlo.letters") // refused, because this queue is an inbox
	eventually(t, "the letters are dead", func() bool { return p.letters("dead") == 30 })

	// The origin queue of these letters does not exist, so the broker returns them. No letter may
	// be lost.
	_, errs := p.dlo(
		ctx, 1, "", "letters", "requeue", "-q", "queue:gone", "--first", "2", "--yes", "--watch", "--hold", "0s",
	)
	if !strings.Contains(errs, "2 returned") || !strings.Contains(errs, "no letter was changed") {
		t.Error(errs)
	}
	out, _ = p.dlo(
		ctx, 0, "", "letters", "requeue", "-q", "queue:gone state:held", "--yes", "--watch", "--hold", "0s", "--to",
		"repaired",
	)
	if !strings.Contains(out, "requeue of 2 letters, done, 2 unverified") {
		t.Error(out)
	}
	p.dlo(ctx, 0, "", "rules", "overrides", "add", "gone", "repaired", "--reason", "renamed")
	out, errs = p.dlo(
		ctx, 0, "", "letters", "requeue", "-q", "queue:gone state:dead", "--yes", "--watch", "--hold", "0s", "--canary",
		"3", "--canary-wait", "1s", "--rate", "1000",
	)
	if !strings.Contains(out, "requeue of 28 letters, done, 28 unverified") ||
		!strings.Contains(errs, "watches the first until") {
		t.Error(out, errs)
	}
	if n := ready(t, conn, "repaired"); n != 30 {
		t.Errorf("%d letters in the queue that they were sent to", n)
	}
}
