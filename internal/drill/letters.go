package drill

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

const (
	pages = "dead: {severity: page, notify: [pager]}"
	few   = 10 // number of letters in most failures
	// number of letters that trip the breaker; it looks at 500 by default, and all of them must
	// come back before a second retry is due
	flood   = 600
	largest = 131_000
)

// letterFailures lists the failures in which letters get stuck: their workers reject them, or dlo
// cannot send them.
var letterFailures = []Failure{
	{
		Name:  "fails-for-ever",
		Does:  "a worker rejects each letter and each retry, under a rule that pages; it is repaired, and they are requeued",
		work:  "drill.fails-for-ever",
		rule:  "retry: {delays: [1s, 2s]}, " + pages,
		wants: needsPeople("drill.fails-for-ever"),
		make: func(ctx context.Context, g *ground) error {
			g.startWorker("drill.fails-for-ever")
			return g.site.publish(ctx, "drill.fails-for-ever", few, failingHeaders)
		},
		cure:   repairAndRequeue("drill.fails-for-ever"),
		mended: nobodyNeeded("drill.fails-for-ever"),
	},
	{
		Name:  "breaker",
		Does:  "the same with so many letters that the breaker trips and holds their second retry back",
		work:  "drill.breaker",
		rule:  "retry: {delays: [5s, 15s]}, " + pages,
		wants: needsPeople("drill.breaker"),
		before: func(ctx context.Context, g *ground) error {
			return g.site.publish(ctx, "drill.breaker", flood, failingHeaders)
		},
		make:   func(_ context.Context, g *ground) error { g.startWorker("drill.breaker"); return nil },
		cure:   repairAndRequeue("drill.breaker"),
		mended: nobodyNeeded("drill.breaker"),
	},
	{
		Name:  "large-header",
		Does:  "a letter with a header of 131,000 bytes among good ones; an edit takes it away",
		work:  "drill.large-header",
		rule:  "retry: {delays: [1s]}, " + pages,
		wants: needsPeople("drill.large-header"),
		make:  makeLargeHeader,
		cure:  cutLargeHeader,
		mended: func(ctx context.Context, g *ground) bool {
			return g.office(mainOffice).count(ctx, "queue:drill.large-header state:requeued,settled") == few+1
		},
	},
	{
		Name:   "origin-deleted",
		Does:   "a queue is deleted with the letters in it that were sent back; they are requeued to a new one",
		work:   "drill.origin-deleted",
		rule:   "retry: {delays: [1s]}, watch: 20s, " + pages,
		wants:  needsPeople("drill.origin-deleted"),
		before: sentBack,
		make: func(ctx context.Context, g *ground) error {
			return g.site.drop(
				ctx, "queues", "drill.origin-deleted",
			)
		},
		cure: func(ctx context.Context, g *ground, _ problem) error {
			if err := g.site.workQueue(ctx, "drill.origin-deleted"); err != nil {
				return err
			}
			return g.requeue(ctx, "queue:drill.origin-deleted state:held")
		},
		mended: nobodyNeeded("drill.origin-deleted"),
	},
	{
		Name:  "connection-closed",
		Does:  "all connections of dlo are closed, three times while it sends letters back",
		work:  "drill.connection-closed",
		wave:  waveClosed,
		rule:  "retry: {delays: [1s]}, rate: 20, " + pages,
		wants: sign{quiet: true, says: "is not connected"},
		make:  makeConnectionClosed,
		cure:  quietFor,
		mended: func(ctx context.Context, g *ground) bool {
			return g.office(mainOffice).count(
				ctx, "queue:drill.connection-closed state:requeued,settled",
			) == closedLetters
		},
	},
}

const closedLetters = 200 // letters for ten seconds of retries

// needsPeople returns the report that is expected if dead letters of a queue wait for a decision of
// a person. Its severity is "page".
func needsPeople(queue string) sign { return sign{group: queue, severity: deadletter.SeverityPage} }

// failingHeaders are the headers of letters that a worker rejects.
var failingHeaders = map[string]any{"x-error-message": "the drill rejects this"}

// repairAndRequeue returns a cure. It repairs the worker of a queue and requeues the queue's dead,
// held and scheduled letters.
func repairAndRequeue(queue string) func(context.Context, *ground, problem) error {
	return func(ctx context.Context, g *ground, _ problem) error {
		g.repair(queue)
		return g.requeue(ctx, "queue:"+queue+" state:dead,held,scheduled")
	}
}

// requeue immediately requeues the letters that match a query.
func (g *ground) requeue(ctx context.Context, query string) error {
	return g.office(mainOffice).post(ctx, "/api/v1/operations", map[string]any{
		"action": "requeue", "q": query, "reason": "the drill", "hold": "0s", "canary": 0, "rate": 1000, "stop_at": 0,
	})
}

// nobodyNeeded returns a function that checks the letters of a queue. The function reports whether
// all of them are done: no letter waits for a decision of a person, and no letter waits to be sent.
func nobodyNeeded(queue string) func(context.Context, *ground) bool {
	return func(ctx context.Context, g *ground) bool {
		return g.office(mainOffice).count(ctx, "queue:"+queue+" state:dead,held,scheduled,publishing,received") == 0
	}
}

// publishRejected publishes n letters to a queue and rejects each of them once.
func (g *ground) publishRejected(ctx context.Context, queue string, n int) error {
	if err := g.site.publish(ctx, queue, n, nil); err != nil {
		return err
	}
	return g.rejectOnce(ctx, queue, n)
}

func (g *ground) rejectOnce(ctx context.Context, queue string, n int) error {
	var failed error
	err := waitUntil(ctx, "letters to reject", Limit/4, func() bool {
		if n > 0 {
			var took int
			took, failed = g.site.take(ctx, queue, n, false)
			n -= took
		}
		return n <= 0 || failed != nil
	})
	if failed != nil {
		return failed
	}
	return err
}

func makeLargeHeader(ctx context.Context, g *ground) error {
	const queue = "drill.large-header"
	if err := g.site.publish(ctx, queue, few, nil); err != nil {
		return err
	}
	if err := g.site.publishOne(ctx, queue, queue+" large", map[string]any{
		"x-big": strings.Repeat("e", largest),
	}); err != nil {
		return err
	}
	if err := g.rejectOnce(ctx, queue, few+1); err != nil {
		return err
	}
	g.startWorker(queue).repair()
	return nil
}

func cutLargeHeader(ctx context.Context, g *ground, _ problem) error {
	o := g.office(mainOffice)
	held := o.letters(ctx, "queue:drill.large-header state:held")
	if len(held) != 1 {
		return fmt.Errorf("%d letters are held, and one should be", len(held))
	}
	return o.post(ctx, "/api/v1/letters/"+held[0]+"/revisions", map[string]any{
		"headers": map[string]any{"x-big": nil},
		"reason":  "the drill",
		"requeue": true,
	})
}

// sentBack waits until dlo has sent letters back to their queue.
func sentBack(ctx context.Context, g *ground) error {
	const queue = "drill.origin-deleted"
	if err := g.publishRejected(ctx, queue, few); err != nil {
		return err
	}
	return waitUntil(
		ctx, "letters are sent back", Limit/2,
		func() bool { return g.office(mainOffice).count(ctx, "queue:"+queue+" state:requeued") == few },
	)
}

func makeConnectionClosed(ctx context.Context, g *ground) error {
	const queue = "drill.connection-closed"
	if err := g.publishRejected(ctx, queue, closedLetters); err != nil {
		return err
	}
	for range 3 {
		if err := g.site.cutNamed(ctx, "dlo publish"); err != nil {
			return err
		}
		if err := pause(ctx, 2*time.Second); err != nil {
			return err
		}
	}
	return nil
}

// quietFor waits for 30 seconds. If there were a problem, people would get a notice in this time.
func quietFor(ctx context.Context, _ *ground, _ problem) error { return pause(ctx, 30*time.Second) }
