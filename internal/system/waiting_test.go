package system

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/testenv"
	amqp "github.com/rabbitmq/amqp091-go"
)

// TestLettersThatWaitSurviveKills kills dlo repeatedly while letters wait for a retry or are due.
// No letter may be lost or sent early. A letter that arrives twice must carry the token of an
// attempt whose response was lost.
func TestLettersThatWaitSurviveKills(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	testenv.Broker(t)
	letters, kills := 2000, 8
	if soak() {
		letters, kills = 50_000, 40
	}
	const delay = 2 * time.Second
	_, url := testenv.VHost(t)
	a := newAudit(t, url, "work", nil)
	p := newChild(
		t, url, fmt.Sprintf("default: {retry: {delays: [%s]}}\nrequeue: {rate: 0, in_flight: 128, watch: 1s}\n", delay),
	)
	p.Start("")
	p.Draining()
	a.work()
	a.publish(letters, func(i int) (string, string) { return fmt.Sprintf("letter %d", i), fmt.Sprint(i) })
	eventually(t, "the first waits", func() bool { return p.letters("scheduled") > 0 })
	for range kills {
		time.Sleep(200*time.Millisecond + rand.N(500*time.Millisecond))
		p.Kill9()
		p.Start("")
	}
	eventually(t, "all letters settled", func() bool { return p.letters("settled") >= letters })
	eventually(t, "all letters back", func() bool { return a.acceptedLetters() == letters })
	surplus, duplicates := a.checkAll(p)
	if surplus != 0 || duplicates > 128*kills {
		t.Errorf("%d rows more than letters, %d duplicate copies", surplus, duplicates)
	}
	if doubted := p.ask(`SELECT coalesce(sum(sends - 1), 0) FROM attempts`); duplicates > doubted {
		t.Errorf("%d duplicate copies, but only %d sends were in doubt", duplicates, doubted)
	}
	if early := p.count(
		`attempts a JOIN letters l ON l.id = a.letter`, `a.operation IS NULL AND a.at < l.received_at + $1`,
		delay.Milliseconds(),
	); early != 0 {
		t.Errorf("%d letters left early", early)
	}
	t.Logf("%d kills, %d letters, %d duplicates", kills, letters, duplicates)
}

// TestABreakerSparesAttempts uses a queue whose worker accepts nothing. The breaker must stop the
// retries of the queue and probe it, and the letters must keep their attempts. Once the worker
// accepts letters, all of them must arrive.
func TestABreakerSparesAttempts(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	testenv.Broker(t)
	_, url := testenv.VHost(t)
	a := newAudit(t, url, "work", nil)
	var down atomic.Bool
	a.refuse = func(d *amqp.Delivery) bool { return down.Load() || d.Headers["dlo-attempt"] == nil }
	down.Store(true)
	p := newChild(
		t, url,
		"default: {retry: {attempts: 4, first: 100ms, factor: 1}}\nrequeue: {rate: 0, in_flight: 16, watch: 2s, breaker: {came_back: 90, of: 20, window: 2s, probe: 3}}\n",
	)
	p.Start("")
	p.Draining()
	a.work()
	const letters = 300
	a.publish(letters, func(i int) (string, string) { return fmt.Sprintf("letter %d", i), fmt.Sprint(i) })
	eventually(t, "the breaker trips", func() bool { return p.events("breaker tripped") > 0 })
	eventually(t, "three probes come back", func() bool { return p.events("breaker probing") >= 3 })
	if dead := p.letters("dead"); dead > letters/2 {
		t.Errorf("%d of %d letters are dead although the breaker tripped", dead, letters)
	}
	if n := p.count("notices", `kind = 'breaker'`); n != 1 {
		t.Errorf("%d notices", n)
	}
	p.Kill9() // the state of the breaker must survive a kill
	p.Start("")
	down.Store(false)
	eventually(t, "the breaker is closed", func() bool { return p.events("breaker closed") > 0 })
	eventually(
		t, "all but the dead are quiet",
		func() bool { return p.count("letters", `state NOT IN ('settled', 'dead')`) == 0 },
	)
	if n := p.count("attempts", `probe = 1`); n == 0 {
		t.Error("no attempt was a probe")
	}
}
