package requeue_test

import (
	"context"
	"errors"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/requeue"
)

// clerk stands for one dlo process in these tests. It runs a dispatcher, and plays both the store
// and the broker that this dispatcher calls. After the process was killed, calls to the clerk have
// no effect.
type clerk struct {
	requeue.Store
	*desk
	dispatcher *requeue.Dispatcher
	stop       context.CancelFunc
	dead       bool
	failed     bool // true if the outcomes of letters could not be recorded
	out        int  // number of messages without a response
}

var (
	errDead  = errors.New("the process is dead")
	errStore = errors.New("the store is away")
)

// die kills the process as kill -9 would.
func (c *clerk) die() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dead {
		return
	}
	c.note("dlo dies")
	c.dead = true
	c.drop()
	c.stop()
}

// drop releases all letters that a stopped process holds.
func (c *clerk) drop() {
	for n, who := range c.hands {
		if who == c {
			delete(c.hands, n)
		}
	}
}

func (c *clerk) crash(point string) {
	if c.happens(point) {
		c.die()
	}
}

func (c *clerk) happens(point string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.dead && c.fate(point)
}

// failure returns an error if the process is dead, or if an accident makes the store fail at this
// point.
func (c *clerk) failure(ctx context.Context, what string) error {
	if time.Since(c.began) > 24*time.Hour {
		panic("dlo does not stop")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.dead:
		return errDead
	case c.fate("fail to " + what):
		c.note("fail to %s", what)
		return errStore
	}
	return ctx.Err() // The context is done, so the caller no longer waits for the store.
}

// ClaimDue claims letters from the store. It checks that no process already holds a claimed letter,
// and that nobody has paused the retries of the letter.
func (c *clerk) ClaimDue(
	ctx context.Context, broker string, now time.Time, n int, a deadletter.Allowance,
) ([]deadletter.Due, error) {
	if err := c.failure(ctx, "claim"); err != nil {
		return nil, err
	}
	claimed, err := c.Store.ClaimDue(ctx, broker, now, n, a)
	c.checkClaimed(claimed)
	return claimed, err
}

func (c *clerk) ClaimDoubtful(ctx context.Context, broker string, now time.Time, n int) ([]deadletter.Due, error) {
	if err := c.failure(ctx, "claim doubts"); err != nil {
		return nil, err
	}
	claimed, err := c.Store.ClaimDoubtful(ctx, broker, now, n)
	c.checkClaimed(claimed)
	return claimed, err
}

func (c *clerk) checkClaimed(claimed []deadletter.Due) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, due := range claimed {
		n := c.numbers[due.Letter.ID]
		if c.hands[n] != nil {
			c.t.Errorf("letter %d is claimed while it is in hand", n)
		}
		c.hands[n], c.claims[n] = c, c.Store.Progress().Claims
		i, first := c.letters[n-1], due.Attempt.Sends == 1
		if first && due.Attempt.Operation == 0 && (c.paused[i.queue] || c.stopped[i.group]) {
			c.t.Errorf("letter %d is claimed, whose retries are paused", n)
		}
	}
}

// Publish passes messages to the simulated broker, and fails the test if the dispatcher breaks one
// of these rules:
//
//   - At most in_flight messages of the process may have no response.
//   - The broker must have a mark of each message's claim.
//   - If an earlier copy of a letter may have arrived, the next copy must be sent alone
//     and under the same token.
//   - A letter may get another token only if no copy under its last token can have arrived.
func (c *clerk) Publish(ctx context.Context, session int64, ps []deadletter.Publishing) []deadletter.Outcome {
	c.mu.Lock()
	if c.dead {
		c.mu.Unlock()
		return nil
	}
	if c.out += len(ps); c.out > c.options.InFlight {
		c.t.Errorf("%d messages have no answer, more than in_flight %d", c.out, c.options.InFlight)
	}
	for i := range ps {
		c.checkSent(&ps[i])
	}
	c.mu.Unlock()
	outcomes := c.wire.Publish(ctx, session, ps)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out -= len(ps)
	return outcomes
}

func (c *clerk) checkSent(p *deadletter.Publishing) {
	id, _ := p.Properties.Headers[deadletter.HeaderID].(string)
	n := c.numbers[deadletter.ID(id)]
	if c.hands[n] != c {
		c.t.Errorf("letter %d is sent, and is not claimed", n)
	}
	last := deadletter.Token("")
	if all := c.tokens[n]; len(all) > 0 {
		last = all[len(all)-1]
	}
	c.wire.mu.Lock()
	defer c.wire.mu.Unlock()
	if mark := c.wire.mark; mark == nil || mark.Claims < c.claims[n] {
		c.t.Errorf("letter %d is sent, and its broker has no mark of its claim %d", n, c.claims[n])
	}
	before := c.wire.sentWith(last)
	switch {
	case before.arrived == 0 && !before.doubted:
		// no copy can have arrived, so the letter may be sent as if for the first time
	case p.Token == last && !p.Alone:
		c.t.Errorf("letter %d is sent again, and not alone", n)
	case p.Token != last:
		c.t.Errorf("letter %d is sent under another token, and a copy may have arrived", n)
	}
	if p.Token != last {
		c.tokens[n] = append(c.tokens[n], p.Token)
	}
	how := ""
	if p.Alone {
		how += " alone"
	}
	if p.Wait != nil {
		how += " to " + p.Wait.Queue
	}
	c.note("send %d%s", n, how)
}

// Mark stores the outcomes of attempts. It fails the test if a claim ends twice, or if a letter
// becomes requeued without a confirm.
func (c *clerk) Mark(ctx context.Context, marks []deadletter.Mark, noted deadletter.Noted) error {
	if err := c.failure(ctx, "mark"); err != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.failed = true
		return err
	}
	if err := c.Store.Mark(ctx, marks, noted); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range marks {
		n := c.numbers[m.Letter]
		if c.hands[n] != c {
			c.t.Errorf("letter %d is marked, and is not in hand", n)
		}
		delete(c.hands, n)
		if m.Outcome == deadletter.OutcomeConfirmed {
			c.used[n]++
			c.wire.mu.Lock()
			if !c.wire.sentWith(m.Token).confirmed {
				c.t.Errorf("letter %d is requeued without a confirm", n)
			}
			c.wire.mu.Unlock()
		}
		how := ""
		switch {
		case m.Resend:
			how = ", again"
		case m.Stays:
			how = ", stays"
		case m.WaitsIn != "":
			how = ", waits"
		}
		c.note("%d %s%s", n, m.Outcome, how)
	}
	return nil
}

func (c *clerk) Breakers(ctx context.Context, broker string) ([]deadletter.Breaker, error) {
	if err := c.failure(ctx, "guard"); err != nil {
		return nil, err
	}
	return c.Store.Breakers(ctx, broker)
}

func (c *clerk) Session() int64 { return c.wire.Session() }

func (c *clerk) LockStore(ctx context.Context, session int64, store string) error {
	if err := c.failure(ctx, "lock the store"); err != nil {
		return err
	}
	return c.wire.LockStore(ctx, session, store)
}

func (c *clerk) UnlockStore(session int64) { c.wire.UnlockStore(session) }

func (c *clerk) ReadMark(ctx context.Context, store string, expected bool) (*deadletter.Progress, error) {
	if err := c.failure(ctx, "read the mark"); err != nil {
		return nil, err
	}
	return c.wire.ReadMark(ctx, store, expected)
}

func (c *clerk) WriteMark(ctx context.Context, session int64, p deadletter.Progress) error {
	if err := c.failure(ctx, "write the mark"); err != nil {
		return err
	}
	return c.wire.WriteMark(ctx, session, p)
}

func (c *clerk) Ready(ctx context.Context) error { return c.wire.Ready(ctx) }

func (c *clerk) Facts(ctx context.Context, queue string) deadletter.QueueFacts {
	return c.wire.Facts(ctx, queue)
}

func (c *clerk) Takes(places ...deadletter.Wait) bool { return c.wire.Takes(places...) }

func (c *clerk) Status() deadletter.BrokerStatus { return c.wire.Status() }
