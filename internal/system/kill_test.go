package system

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/testenv"
	amqp "github.com/rabbitmq/amqp091-go"
)

// fast is a configuration with immediate retries. With it, a letter passes all its states within a
// test.
const fast = "default: {retry: {delays: [0s]}}\nrequeue: {rate: 0, in_flight: 128, watch: 1s}\ningest: {letters: 64}\n"

// points are the crash points through which a letter passes.
var points = []string{
	"ingest: fetched", "ingest: committed", "ingest: acked", "ingest: fenced", "ingest: settled",
	"classify: begun", "classify: decided", "classify: recorded",
	"requeue: claimed", "requeue: publishing", "requeue: confirmed", "requeue: marked",
}

// TestKillAtEveryPoint kills dlo at each crash point and restarts it. No letter may be lost, every
// letter must have one row, and a letter that arrives twice must carry a known token.
func TestKillAtEveryPoint(t *testing.T) {
	t.Parallel()
	testenv.Broker(t)
	for _, point := range points {
		for _, hit := range hits() {
			t.Run(fmt.Sprintf("%s %d", point, hit), func(t *testing.T) {
				t.Parallel()
				_, url := testenv.VHost(t)
				a := newAudit(t, url, "work", nil)
				p := newChild(t, url, fast)
				p.Start(fmt.Sprintf("%s=%d", point, hit))
				p.Draining()
				a.publish(150, func(i int) (string, string) { return fmt.Sprintf("letter %d", i), fmt.Sprint(i) })
				a.work()
				p.Crashed("the crash")
				p.Start("")
				eventually(t, "all letters back", func() bool { return a.acceptedLetters() >= 150 })
				eventually(t, "all letters settled", func() bool { return p.letters("settled") == 150 })
				surplus, duplicates := a.checkAll(p)
				if surplus != 0 || duplicates > 128 {
					t.Errorf("%d rows more than letters, %d duplicate copies", surplus, duplicates)
				}
				if code := p.Stop(); code != 0 {
					t.Errorf("exit code %d", code)
				}
				if n := p.letters("publishing"); n != 0 {
					t.Errorf("%d letters publishing after a clean stop", n)
				}
			})
		}
	}
}

func hits() []int {
	if soak() {
		return []int{1, 2, 3, 10}
	}
	return []int{1}
}

func soak() bool { return os.Getenv("DLO_SOAK") == "1" }

// TestRandomKills kills dlo repeatedly at random while letters arrive and are requeued. Some of the
// letters are equal byte for byte.
func TestRandomKills(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	node := testenv.Broker(t)
	kills, letters := 25, 3000
	if soak() {
		kills, letters = 500, 50_000
	}
	random := seeded(t)
	_, url := testenv.VHost(t)
	a := newAudit(t, url, "work", amqp.Table{"x-queue-type": "quorum"})
	p := newChild(t, url, fast)
	p.Start("")
	p.Draining()
	a.work()
	published := make(chan struct{})
	go func() {
		defer close(published)
		const part = 50
		for done := 0; done < letters; done += part {
			a.publish(part, func(i int) (string, string) {
				if n := done + i; n%3 == 0 {
					// these letters have one of nine bodies and no message id
					return fmt.Sprintf("one of three bodies: %d", n%9), ""
				} else {
					return fmt.Sprintf("letter %d", n), fmt.Sprint(n)
				}
			})
			time.Sleep(time.Duration(kills) * 200 * time.Millisecond / time.Duration(letters/part))
		}
	}()
	for range kills {
		time.Sleep(50*time.Millisecond + time.Duration(random.Int64N(int64(350*time.Millisecond))))
		p.Kill9()
		p.Start("")
	}
	<-published
	held := func() int { return p.letters("held") }
	t.Cleanup(func() {
		if t.Failed() {
			of := func(state string) int { return p.count("letters", `state = $1`, state) }
			t.Logf(
				"rows %d, settled %d, held %d, dead %d, received %d, scheduled %d, publishing %d, requeued %d, windows open %d; ready in work %d, in dlo.letters %d; rejected %d, accepted %d",
				p.letters(), of("settled"), held(),
				of("dead"), of("received"), of("scheduled"), of("publishing"), of("requeued"),
				p.count("windows", `settled_at IS NULL`), ready(t, a.conn, "work"), ready(t, a.conn, "dlo.letters"),
				a.rejected, a.acceptedLetters(),
			)
		}
	})
	eventually(t, "all letters back", func() bool {
		return a.acceptedLetters() >= letters-held() && p.letters("settled")+held() == p.letters()
	})
	suspects := held()
	rows := p.letters()
	check := a.checkAll
	if node.AtLeast("4.3") { // a letter that was given back may be held although it is new
		check, suspects = a.checkStore, min(suspects, rows-letters)
	}
	if rows-letters != suspects {
		t.Errorf("%d letters, %d rows, %d suspects held", letters, rows, held())
	}
	if suspects > 0 && !node.AtLeast("4.0") {
		t.Errorf("%d suspects on %s, where redelivered does not leak", suspects, node.Version())
	}
	surplus, duplicates := check(p)
	if surplus != suspects || duplicates > 128*kills {
		t.Errorf("%d rows more than letters, %d suspects, %d duplicate copies", surplus, suspects, duplicates)
	}
	t.Logf(
		"%d kills, %d letters: %d rows, %d suspects held, %d duplicates, all with known tokens", kills, letters, rows,
		suspects, duplicates,
	)
	if code := p.Stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// TestASecondKillInTheFirstWindow kills dlo twice. The first dlo is killed after it has taken a
// batch of letters (a window) and before it stores them. The second dlo takes its first window and
// is killed after it has stored the letters and before it acknowledges them. A quorum queue returns
// these letters behind the other letters of the earlier window. Therefore the second dlo must take
// all letters of that window at once.
func TestASecondKillInTheFirstWindow(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	testenv.Broker(t)
	_, url := testenv.VHost(t)
	a := newAudit(t, url, "work", nil)
	p := newChild(t, url, fast)
	p.Start("")
	p.Draining()
	p.Stop()
	const letters = 150
	a.publish(letters, func(i int) (string, string) { return fmt.Sprintf("letter %d", i), fmt.Sprint(i) })
	a.work()
	eventually(t, "all letters in the inbox", func() bool { return ready(t, a.conn, "dlo.letters") == letters })
	// dlo fetches windows of 16, 32 and 64 letters
	for _, crash := range []string{"ingest: fetched=3", "ingest: committed=1"} {
		p.Start(crash)
		<-p.ended
	}
	p.Start("")
	eventually(t, "nothing on its way into the store", func() bool {
		return ready(t, a.conn, "dlo.letters") == 0 && p.count("windows", `settled_at IS NULL`) == 0 &&
			p.letters() >= letters
	})
	if n := p.letters(); n != letters {
		t.Errorf("%d rows of %d letters", n, letters)
	}
}
