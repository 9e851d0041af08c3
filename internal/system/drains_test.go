package system

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/cli"
	"github.com/deadletteroffice/dlo/internal/config"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/drain"
	"github.com/deadletteroffice/dlo/internal/server"
	"github.com/deadletteroffice/dlo/internal/storetest"
	"github.com/deadletteroffice/dlo/internal/testenv"
	amqp "github.com/rabbitmq/amqp091-go"
)

// drainingProcess runs dlo serve and starts the requested drain. It tries again until dlo accepts
// the drain.
func drainingProcess(args []string, crash func(string), request string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	var r deadletter.DrainRequest
	if err := json.Unmarshal([]byte(request), &r); err != nil {
		panic(err)
	}
	cfg, err := config.Load(args[len(args)-1], os.Getenv)
	if err != nil {
		return cli.ExitCode(err, os.Stderr)
	}
	s, err := server.New(ctx, cfg, server.Options{Getenv: os.Getenv, Log: os.Stderr, Version: "test", Crash: crash})
	if err != nil {
		return cli.ExitCode(err, os.Stderr)
	}
	go func() {
		for ctx.Err() == nil {
			_, err := s.Drains.Start(ctx, deadletter.Local, r)
			if err == nil {
				return
			}
			fmt.Fprintln(os.Stderr, "no drain yet:", err)
			time.Sleep(100 * time.Millisecond)
		}
	}()
	return cli.ExitCode(s.Run(ctx), os.Stderr)
}

// serving is a dlo that runs in the test process. The methods of child inspect its store.
type serving struct {
	*child
	drains *drain.Drains
	stop   func() // stops dlo cleanly
}

// serve runs dlo in the test process until the test ends.
func serve(t *testing.T, url, text string, crash func(string)) *serving {
	t.Helper()
	p := newChild(t, url, text)
	cfg, err := config.Load(p.config, func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s, err := server.New(ctx, cfg, server.Options{
		Getenv: noEnvironment, Log: io.Discard, Version: "test", Crash: crash,
	})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	p.url = "http://" + s.Addr()
	stopped := false
	stop := func() {
		if !stopped {
			stopped = true
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	}
	t.Cleanup(stop)
	return &serving{p, s.Drains, stop}
}

// drain starts a drain in the name of the local user.
func (s *serving) drain(r deadletter.DrainRequest) deadletter.Drain {
	s.t.Helper()
	d, err := s.drains.Start(s.t.Context(), deadletter.Local, r)
	if err != nil {
		s.t.Fatal(err)
	}
	if d.State != deadletter.DrainRunning || d.ID == "" || d.By != "local" || d.StartedAt.IsZero() {
		s.t.Errorf("%+v", d)
	}
	return d
}

// stateOf returns the current state of the drain with the given id.
func (s *serving) stateOf(id string) deadletter.Drain {
	s.t.Helper()
	for _, d := range s.drains.List() {
		if d.ID == id {
			return d
		}
	}
	s.t.Fatalf("%s is not listed", id)
	return deadletter.Drain{}
}

// waitUntilEnded waits until a drain has ended, and returns its last state.
func (s *serving) waitUntilEnded(id string) deadletter.Drain {
	s.t.Helper()
	eventually(s.t, "the drain has ended", func() bool { return s.stateOf(id).State != deadletter.DrainRunning })
	return s.stateOf(id)
}

// publishParked declares a queue, publishes n different letters to it, and waits for their
// confirms.
func publishParked(t *testing.T, url, queue string, n int, args amqp.Table) *amqp.Connection {
	t.Helper()
	conn, ch := testenv.Channel(t, url)
	if _, err := ch.QueueDeclare(queue, true, false, false, false, args); err != nil {
		t.Fatal(err)
	}
	if err := ch.Confirm(false); err != nil {
		t.Fatal(err)
	}
	var last *amqp.DeferredConfirmation
	for i := range n {
		var err error
		if last, err = ch.PublishWithDeferredConfirm("", queue, true, false, amqp.Publishing{
			Body: []byte(fmt.Sprintf("%s %d", queue, i)), MessageId: fmt.Sprint(i), DeliveryMode: 2,
		}); err != nil {
			t.Fatal(err)
		}
		if i%500 == 499 || i == n-1 {
			last.Wait()
		}
	}
	return conn
}

const (
	rowsOf     = `SELECT count(*) FROM letters`
	bodiesOf   = `SELECT count(DISTINCT CAST(body AS TEXT)) FROM ` + storetest.Bodies
	openOf     = `SELECT count(*) FROM windows WHERE settled_at IS NULL`
	patient    = "default: {retry: {delays: []}}\ningest: {letters: 64}\n"
	slowCommit = 20 * time.Millisecond
)

// slowAfterCommit is a crash function that waits after each commit of ingest. A test can therefore
// act while a drain runs.
func slowAfterCommit(point string) {
	if point == "ingest: committed" {
		time.Sleep(slowCommit)
	}
}

// TestWhatCannotBeDrained checks drains that cannot work. dlo must refuse them with instructions,
// and must take no letter.
func TestWhatCannotBeDrained(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	node := testenv.Broker(t)
	_, url := testenv.VHost(t)
	conn := publishParked(t, url, "stream", 0, amqp.Table{"x-queue-type": "stream"})
	publishParked(t, url, "quorum", 1, amqp.Table{"x-queue-type": "quorum"})
	publishParked(t, url, "work", 1, nil)
	publishParked(t, url, "second inbox", 1, nil)
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ch.QueueDeclare("private", false, false, true, false, nil); err != nil {
		t.Fatal(err)
	}
	s := serve(
		t, "",
		fmt.Sprintf(
			"brokers: [{url: %q, requeue_to: [orders]}, {name: b, url: %q, exchange: '', inboxes: [second inbox]}, {name: away, url: 'amqp://127.0.0.1:1/'}]\n",
			url, url,
		)+patient,
		nil,
	)
	for _, c := range []struct {
		name string
		r    deadletter.DrainRequest
		kind error
		says string
	}{
		{"no broker", deadletter.DrainRequest{Broker: "x", Queue: "work"}, deadletter.ErrNotFound, `no broker "x"`},
		{"no broker named, of several", deadletter.DrainRequest{Queue: "work"}, deadletter.ErrNotFound, "no broker"},
		{
			"another vhost",
			deadletter.DrainRequest{Broker: "main", VHost: "other", Queue: "work"},
			deadletter.ErrNotFound,
			"configured for vhost",
		},
		{"no queue named", deadletter.DrainRequest{Broker: "main"}, deadletter.ErrInvalid, "name a queue to drain"},
		{
			"no such queue",
			deadletter.DrainRequest{Broker: "main", Queue: "none"},
			deadletter.ErrNotFound,
			"there is no queue none",
		},
		{
			"a long name",
			deadletter.DrainRequest{Broker: "main", Queue: strings.Repeat("q", 256)},
			deadletter.ErrInvalid,
			"at most 255 bytes",
		},
		{
			"a negative count",
			deadletter.DrainRequest{Broker: "main", Queue: "work", Count: -1},
			deadletter.ErrInvalid,
			"or 0 for all",
		},
		{
			"an inbox",
			deadletter.DrainRequest{Broker: "main", Queue: "dlo.letters"},
			deadletter.ErrConflict,
			"is an inbox",
		},
		{
			"an inbox of another entry",
			deadletter.DrainRequest{Broker: "main", Queue: "second inbox"},
			deadletter.ErrConflict,
			"is an inbox",
		},
		{
			"a queue of dlo",
			deadletter.DrainRequest{Broker: "main", Queue: "dlo.epoch.lock.x"},
			deadletter.ErrInvalid,
			"one of dlo's own queues",
		},
		{"a stream", deadletter.DrainRequest{Broker: "main", Queue: "stream"}, deadletter.ErrInvalid, "is a stream"},
		{
			"a queue of one connection",
			deadletter.DrainRequest{Broker: "main", Queue: "private"},
			deadletter.ErrConflict,
			"exclusive",
		},
		{
			"its own origin",
			deadletter.DrainRequest{Broker: "main", Queue: "work", Origin: "work"},
			deadletter.ErrInvalid,
			"sent back into work",
		},
		{
			"an origin outside of the allow list",
			deadletter.DrainRequest{Broker: "main", Queue: "work", Origin: "sms"},
			deadletter.ErrInvalid,
			"not in requeue_to",
		},
		{
			"a broker that is away",
			deadletter.DrainRequest{Broker: "away", Queue: "work"},
			deadletter.ErrUnavailable,
			"broker away",
		},
		{
			"letters that the broker may delete",
			deadletter.DrainRequest{Broker: "main", Queue: "quorum"},
			deadletter.ErrConflict,
			"delivery limit",
		},
	} {
		if c.r.Queue == "quorum" && !node.AtLeast("4.0") {
			continue
		}
		_, err := s.drains.Start(t.Context(), deadletter.Local, c.r)
		if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %v with %q", c.name, err, c.kind, c.says)
		}
	}
	if _, err := s.drains.Start(
		t.Context(), deadletter.Principal{Name: "eve"}, deadletter.DrainRequest{Broker: "main", Queue: "work"},
	); !errors.Is(err, deadletter.ErrForbidden) || !strings.Contains(err.Error(), "eve may not drain a queue") {
		t.Errorf("somebody without the right: %v", err)
	}
	if err := s.drains.Stop(t.Context(), deadletter.Local, "D-none"); !errors.Is(err, deadletter.ErrNotFound) {
		t.Errorf("a drain that is not there is stopped: %v", err)
	}
	if n, list := ready(t, conn, "work"), s.drains.List(); n != 1 || len(list) != 0 {
		t.Errorf("%d letters in work, drains %+v", n, list)
	}
	// no letter is checked, because the events of the second inbox belong to letters
	if n := s.count("events", `letter IS NULL`); n != 0 {
		t.Errorf("%d events of what did not happen", n)
	}
}

// TestADrainIsStopped stops a drain before it is complete. The letters that it took must be in the
// store, and the rest in the queue. Until the drain has stopped, nobody else may drain the queue. A
// stop of dlo must stop a drain in the same way.
func TestADrainIsStopped(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	testenv.Broker(t)
	_, url := testenv.VHost(t)
	const letters = 3000
	conn := publishParked(t, url, "parking", letters, nil)
	s := serve(t, url, "default: {retry: {delays: []}}\ningest: {letters: 16}\n", slowAfterCommit)
	request := deadletter.DrainRequest{Queue: "parking"} // names no broker, because there is only one
	id := s.drain(request).ID
	eventually(t, "some taken", func() bool { return s.stateOf(id).Taken >= 64 })
	if _, err := s.drains.Start(
		t.Context(), deadletter.Local, request,
	); !errors.Is(err, deadletter.ErrConflict) || !strings.Contains(err.Error(), id) {
		t.Errorf("a second drain of the queue: %v", err)
	}
	if err := s.drains.Stop(
		t.Context(), deadletter.Principal{Name: "eve"}, id,
	); !errors.Is(err, deadletter.ErrForbidden) {
		t.Errorf("somebody without the right stops it: %v", err)
	}
	if err := s.drains.Stop(t.Context(), deadletter.Local, id); err != nil {
		t.Fatal(err)
	}
	got := s.waitUntilEnded(id)
	if got.State != deadletter.DrainStopped || got.Why != "stopped by local" || got.Taken < 64 ||
		got.Taken >= letters || got.Taken != s.ask(
		rowsOf,
	) {
		t.Errorf("%+v, %d rows", got, s.ask(rowsOf))
	}
	eventually(t, "the rest in the queue", func() bool { return ready(t, conn, "parking") == letters-got.Taken })
	if err := s.drains.Stop(t.Context(), deadletter.Local, id); !errors.Is(err, deadletter.ErrConflict) {
		t.Errorf("it is stopped twice: %v", err)
	}

	id = s.drain(request).ID
	eventually(t, "some more taken", func() bool { return s.stateOf(id).Taken >= 64 })
	s.stop()
	again := s.stateOf(id)
	if again.State != deadletter.DrainStopped || !strings.Contains(again.Why, "end of dlo") {
		t.Errorf("%+v", again)
	}
	if rows := s.ask(rowsOf); rows != got.Taken+again.Taken || s.ask(bodiesOf) != rows || s.ask(openOf) != 0 {
		t.Errorf("%d rows of %d letters taken", rows, got.Taken+again.Taken)
	}
	eventually(
		t, "the rest in the queue", func() bool { return ready(t, conn, "parking") == letters-got.Taken-again.Taken },
	)
	if _, err := s.drains.Start(t.Context(), deadletter.Local, request); !errors.Is(err, deadletter.ErrUnavailable) {
		t.Errorf("a drain after the end: %v", err)
	}
}

// TestADrainOverLostConnections cuts the connection repeatedly during a drain. The count of letters
// must stay exact, and no letter may be stored twice.
func TestADrainOverLostConnections(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	node := testenv.Broker(t)
	vhost, url := testenv.VHost(t)
	relay := testenv.Relay(t, node.AMQPAddr())
	const letters, asked = 1000, 700
	conn := publishParked(t, url, "parking", letters, nil)
	s := serve(
		t, node.AMQPURLVia(relay.Addr(), vhost), "default: {retry: {delays: []}}\ningest: {letters: 16}\n",
		slowAfterCommit,
	)
	id := s.drain(deadletter.DrainRequest{Queue: "parking", Count: asked}).ID
	for cut := 1; cut <= 4; cut++ {
		eventually(t, "some taken", func() bool { return s.stateOf(id).Taken >= cut*100 })
		relay.Cut()
	}
	if got := s.waitUntilEnded(id); got.State != deadletter.DrainDone || got.Taken != asked {
		t.Errorf("%+v", got)
	}
	if rows, bodies := s.ask(rowsOf), s.ask(bodiesOf); rows != asked || bodies != asked {
		t.Errorf("%d rows, %d bodies, want %d", rows, bodies, asked)
	}
	eventually(t, "the rest in the queue", func() bool { return ready(t, conn, "parking") == letters-asked })
}

// TestADrainOverARestartOfTheBroker kills the broker during a drain. The broker forgets some
// acknowledgements, and delivers the acknowledged letters again. dlo must merge them into their
// rows, and the drain must continue to its end.
func TestADrainOverARestartOfTheBroker(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	node := testenv.PrivateBroker(t)
	_, url := node.VHost(t)
	const letters = 2000
	publishParked(t, url, "parking", letters, nil)
	s := serve(t, url, "default: {retry: {delays: []}}\ningest: {letters: 16}\n", slowAfterCommit)
	id := s.drain(deadletter.DrainRequest{Queue: "parking"}).ID
	eventually(t, "some taken", func() bool { return s.stateOf(id).Taken >= 500 })
	node.Kill9()
	eventually(
		t, "the drain says what it waits for",
		func() bool { d := s.stateOf(id); return d.State == deadletter.DrainRunning && d.Why != "" },
	)
	restart(t, node)
	got := s.waitUntilEnded(id)
	if got.State != deadletter.DrainDone || got.Taken != letters {
		t.Errorf("%+v", got)
	}
	if rows, bodies := s.ask(rowsOf), s.ask(bodiesOf); rows != letters || bodies != letters {
		t.Errorf("%d rows, %d bodies, want %d", rows, bodies, letters)
	}
	conn, err := amqp.Dial(url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if n := ready(t, conn, "parking"); n != 0 {
		t.Errorf("%d letters left", n)
	}
	if n := s.count("inboxes", `queue = 'parking' AND restarted_at IS NULL AND marker <> ''`); n != 1 {
		t.Error("the aftermath of the restart is not over")
	}
	t.Logf("%s: %d letters came out a second time", node.Version(), s.events("merged"))
}

// TestADrainIsCutOff kills dlo in the middle of a drain. At that time, dlo has stored some letters
// that are still in the queue. At the next start, dlo must remove them from the queue. All other
// letters must stay in the queue for the next drain. No letter may be lost or stored twice. From
// 4.3 on, the queue holds back what the kill gives back.
func TestADrainIsCutOff(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	node := testenv.Broker(t)
	for _, point := range []string{
		"ingest: fetched=2", "ingest: committed=1", "ingest: committed=3", "ingest: acked=3", "ingest: fenced=3",
		"ingest: settled=2",
	} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			vhost, url := testenv.VHost(t)
			const letters = 150
			var args amqp.Table
			var env []string
			if node.AtLeast("4.3") {
				args = amqp.Table{"x-queue-type": "quorum", "x-delivery-limit": -1}
				env = []string{"DLO_MANAGEMENT_URL=" + node.ManagementURLOf("guest:guest")}
				delayRetries(t, node, vhost, "policies", "^parking$", "all", 1000)
			}
			conn := publishParked(t, url, "parking", letters, args)
			p := newChild(t, url, patient)
			request, _ := json.Marshal(deadletter.DrainRequest{Queue: "parking"})
			p.env = append(slices.Clone(env), drainVariable+"="+string(request))
			p.Start(point)
			p.Crashed("the crash")
			stored, open := p.ask(rowsOf), p.ask(openOf)
			p.env = env
			p.Start("")
			p.Draining()
			eventually(t, "no window open", func() bool { return p.ask(openOf) == 0 })
			eventually(
				t, "what is stored is out of the queue, and the rest in it",
				func() bool { return ready(t, conn, "parking") == letters-stored },
			)
			if n := p.ask(rowsOf); n != stored {
				t.Errorf("%d rows after the start, %d before", n, stored)
			}
			if open > 0 {
				eventually(t, "the audit says it", func() bool {
					return p.count("events", `kind = 'drain resolved' AND actor = 'dlo'`) == 1
				})
			}
			if code := p.Stop(); code != 0 {
				t.Errorf("exit code %d", code)
			}
			p.env = append(slices.Clone(env), drainVariable+"="+string(request))
			p.Start("")
			eventually(
				t, "the queue is empty",
				func() bool { return p.ask(rowsOf) >= letters && p.ask(openOf) == 0 && ready(t, conn, "parking") == 0 },
			)
			if rows, bodies := p.ask(rowsOf), p.ask(bodiesOf); rows != letters || bodies != letters {
				t.Errorf("%d rows, %d bodies, want %d", rows, bodies, letters)
			}
		})
	}
}

// TestTheNextDrainClosesWhatACrashLeftOpen covers a crash in the middle of a window, which is a
// batch of letters that a drain takes. The next drain must first decide what happened to this
// window, even if the window was acknowledged and none of its letters can come back.
func TestTheNextDrainClosesWhatACrashLeftOpen(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	testenv.Broker(t)
	for _, c := range []struct {
		point   string
		letters int
	}{{"ingest: committed=1", 10}, {"ingest: fenced=1", 10}, {"ingest: committed=2", 100}, {"ingest: fenced=2", 100}} {
		t.Run(fmt.Sprint(c.point, " of ", c.letters), func(t *testing.T) {
			t.Parallel()
			_, url := testenv.VHost(t)
			conn := publishParked(t, url, "parking", c.letters, nil)
			p := newChild(t, url, patient)
			request, _ := json.Marshal(deadletter.DrainRequest{Queue: "parking"})
			p.env = []string{drainVariable + "=" + string(request)}
			p.Start(c.point)
			<-p.ended
			if n := p.ask(openOf); n != 1 {
				t.Fatalf("%d windows open", n)
			}
			p.Start("")
			eventually(t, "all taken", func() bool {
				return p.count("events", `kind = 'drain ended' AND detail LIKE '%the queue is empty'`) == 1 &&
					ready(t, conn, "parking") == 0
			})
			if rows, bodies := p.ask(rowsOf), p.ask(
				bodiesOf,
			); rows != c.letters || bodies != c.letters || p.ask(openOf) != 0 {
				t.Errorf("%d rows, %d bodies, want %d", rows, bodies, c.letters)
			}
		})
	}
}
