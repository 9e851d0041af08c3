package server

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/deadletteroffice/dlo/internal/config"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/ingest"
	"github.com/deadletteroffice/dlo/internal/rabbitmq"
	"github.com/deadletteroffice/dlo/internal/rules"
	"github.com/deadletteroffice/dlo/internal/store"
)

var _ ingest.Bounded = (*rabbitmq.Inbox)(nil)

// Drains takes letters out of queues that are no inboxes, each once and by request. What ran and how it ended is kept in memory, and in the audit for good. Safe for concurrent use.
type Drains struct {
	brokers []config.Broker
	links   []*rabbitmq.Link
	store   *store.Store
	targets *rules.Targets
	limits  rabbitmq.Limits
	options ingest.Options // but for broker, vhost, inbox and origin
	log     *slog.Logger
	now     func() time.Time

	ctx     context.Context // of all that runs
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu      sync.Mutex
	stopped bool
	number  int64                // of the newest drain
	list    []*drain             // oldest first
	busy    map[[2]string]*drain // by place and queue; nil while it is looked at, or resolved
}

// drain is one of them: under the lock of drains.
type drain struct {
	deadletter.Drain
	once    *ingest.Once
	cancel  context.CancelFunc
	stopper string // who stopped it
}

func newDrains(s *Server, o ingest.Options) *Drains {
	d := &Drains{
		brokers: s.cfg.Brokers, links: s.links, store: s.store, targets: s.targets, options: o, log: s.log, now: time.Now, busy: map[[2]string]*drain{},
		limits: rabbitmq.Limits{Letters: s.cfg.Ingest.Letters, Bytes: int(s.cfg.Ingest.Bytes), Linger: s.cfg.Ingest.Linger},
	}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	return d
}

const (
	keepDrains = 100 // running ones and the newest of those that ended
)

// Start begins to take letters out of a queue and returns the drain, which goes on without the caller. The error wraps ErrForbidden, ErrInvalid, ErrNotFound (no such broker or queue), ErrConflict (an
// inbox, drained already, or one whose letters the broker may delete) or ErrUnavailable.
func (d *Drains) Start(ctx context.Context, by deadletter.Principal, r deadletter.DrainRequest) (deadletter.Drain, error) {
	i, err := d.broker(&r)
	if err != nil {
		return deadletter.Drain{}, err
	}
	if err := deadletter.Allow(by, deadletter.VerbDrain, deadletter.Origin{Broker: r.Broker, VHost: r.VHost, Queue: r.Queue}); err != nil {
		return deadletter.Drain{}, err
	}
	if err := d.valid(i, r); err != nil {
		return deadletter.Drain{}, err
	}
	key := [2]string{d.brokers[i].Place(), r.Queue}
	if err := d.reserve(key); err != nil {
		return deadletter.Drain{}, err
	}
	one := &drain{Drain: deadletter.Drain{
		Broker: r.Broker, VHost: r.VHost, Queue: r.Queue, Origin: r.Origin, Asked: r.Count, State: deadletter.DrainRunning, By: by.Name,
	}}
	if err = d.links[i].Inspect(ctx, r.Queue); err == nil {
		err = d.begin(ctx, i, key, one)
	}
	if err != nil {
		d.release(key)
		return deadletter.Drain{}, fmt.Errorf("drain %s: %w", deadletter.Visible(r.Queue), err)
	}
	return d.state(one), nil
}

// broker finds the broker of a request, and completes the request.
func (d *Drains) broker(r *deadletter.DrainRequest) (int, error) {
	if r.Broker == "" && len(d.brokers) == 1 {
		r.Broker = d.brokers[0].Name
	}
	i := slices.IndexFunc(d.brokers, func(b config.Broker) bool { return b.Name == r.Broker })
	if i < 0 {
		return 0, fmt.Errorf("%w: there is no broker %q in the configuration", deadletter.ErrNotFound, deadletter.Visible(r.Broker))
	}
	vhost := d.links[i].VHost()
	if r.VHost != "" && r.VHost != vhost {
		return 0, fmt.Errorf("%w: broker %s is configured for vhost %q, not %q", deadletter.ErrNotFound, r.Broker, vhost, deadletter.Visible(r.VHost))
	}
	r.VHost = vhost
	return i, nil
}

func (d *Drains) valid(i int, r deadletter.DrainRequest) error {
	queue := deadletter.Visible(deadletter.Cut(r.Queue, deadletter.MaxQueueName))
	switch {
	case r.Queue == "":
		return fmt.Errorf("%w: a queue to drain is wanted", deadletter.ErrInvalid)
	case len(r.Queue) > deadletter.MaxQueueName:
		return fmt.Errorf("%w: queue %s… cannot exist: a name has at most %d bytes", deadletter.ErrInvalid, queue, deadletter.MaxQueueName)
	case r.Count < 0:
		return fmt.Errorf("%w: the count is a number of letters, or 0 for all", deadletter.ErrInvalid)
	case slices.Contains(inboxesAt(d.brokers, d.brokers[i].Place()), r.Queue):
		return fmt.Errorf("%w: %s is an inbox: it is drained all the time", deadletter.ErrConflict, queue)
	case deadletter.OwnQueue(r.Queue), slices.Contains(annotationsAt(d.brokers, d.brokers[i].Place()), r.Queue):
		return fmt.Errorf("%w: %s is a queue of dlo itself", deadletter.ErrInvalid, queue)
	case r.Origin == "":
		return nil
	case r.Origin == r.Queue:
		return fmt.Errorf("%w: letters would be sent back into %s while it is drained; name the queue that they came from", deadletter.ErrInvalid, queue)
	}
	if err := d.targets.Allow(deadletter.Origin{Broker: r.Broker, VHost: r.VHost, Queue: r.Origin}); err != nil {
		return fmt.Errorf("%w: origin: %w", deadletter.ErrInvalid, err)
	}
	return nil
}

// reserve takes a queue, so that nobody else drains it.
func (d *Drains) reserve(key [2]string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	one, taken := d.busy[key]
	switch {
	case d.stopped:
		return fmt.Errorf("%w: dlo is stopping", deadletter.ErrUnavailable)
	case taken && one != nil:
		return fmt.Errorf("%w: %s is being drained already, by %s", deadletter.ErrConflict, deadletter.Visible(key[1]), one.ID)
	case taken:
		return fmt.Errorf("%w: what an earlier drain of %s left open is being closed; try again in a moment", deadletter.ErrConflict, deadletter.Visible(key[1]))
	}
	d.busy[key] = nil
	return nil
}

func (d *Drains) release(key [2]string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.busy, key)
}

// once returns what drains a queue; say is told what it waits for.
func (d *Drains) once(i int, queue, origin string, count int, say func(string)) *ingest.Once {
	o := d.options
	o.Broker, o.VHost, o.Inbox, o.Origin, o.Same = d.brokers[i].Name, d.links[i].VHost(), queue, origin, namesOf(d.brokers, d.brokers[i].Place())
	return ingest.NewOnce(d.store, d.links[i].Once(queue, d.limits, say), o, count, say)
}

// begin records the start of a drain and lets it go. The reservation goes with its end.
func (d *Drains) begin(ctx context.Context, i int, key [2]string, one *drain) error {
	d.mu.Lock()
	now := d.now()
	d.number = max(d.number+1, now.UnixMilli()) // so that the audit never has two of one name
	one.ID, one.StartedAt = "D-"+strconv.FormatInt(d.number, 36), now
	d.mu.Unlock()
	asked := "until it is empty"
	if one.Asked > 0 {
		asked = fmt.Sprintf("%d letters at most", one.Asked)
	}
	if one.Origin != "" {
		asked += ", origin " + deadletter.Visible(one.Origin)
	}
	if err := d.record(ctx, one, "drain started", asked); err != nil {
		return err
	}
	running, cancel := context.WithCancel(d.ctx)
	one.cancel = cancel
	one.once = d.once(i, one.Queue, one.Origin, one.Asked, func(text string) {
		d.mu.Lock()
		defer d.mu.Unlock()
		one.Why = text
	})
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stopped {
		cancel()
		return fmt.Errorf("%w: dlo is stopping", deadletter.ErrUnavailable)
	}
	d.busy[key] = one
	d.list = append(d.list, one)
	if n := len(d.list) - keepDrains; n > 0 {
		d.list = slices.DeleteFunc(d.list, func(o *drain) bool {
			old := n > 0 && o.State != deadletter.DrainRunning
			if old {
				n--
			}
			return old
		})
	}
	d.running.Go(func() { d.run(running, key, one) })
	return nil
}

// run drains and records how it ended.
func (d *Drains) run(ctx context.Context, key [2]string, one *drain) {
	defer one.cancel()
	err := one.once.Run(ctx)
	d.mu.Lock()
	ended := drain{Drain: one.state(), stopper: one.stopper}
	d.mu.Unlock()
	switch {
	case err != nil:
		ended.State, ended.Why = deadletter.DrainFailed, err.Error()
	case ended.Asked > 0 && ended.Taken >= ended.Asked:
		ended.State, ended.Why = deadletter.DrainDone, "as many as were asked for"
	case ctx.Err() != nil:
		ended.State, ended.Why = deadletter.DrainStopped, "stopped by "+cmp.Or(ended.stopper, "the end of dlo")
	default:
		ended.State, ended.Why = deadletter.DrainDone, "the queue is empty"
	}
	ended.EndedAt = d.now()
	d.log.Info("drain ended", "drain", ended.ID, "broker", ended.Broker, "queue", ended.Queue, "state", ended.State, "letters", ended.Taken, "why", ended.Why)
	if err := d.record(context.Background(), &ended, "drain ended", fmt.Sprintf("%s, %d letters taken: %s", ended.State, ended.Taken, ended.Why)); err != nil {
		d.log.Error("audit", "err", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	one.Drain = ended.Drain
	delete(d.busy, key) // from here on the queue can be drained again, and who asks sees that this one has ended
}

// record writes an event of a drain into the audit.
func (d *Drains) record(ctx context.Context, one *drain, kind, detail string) error {
	return d.store.Record(ctx, deadletter.Event{Kind: kind, Actor: one.By, Detail: fmt.Sprintf("%s: queue %s of broker %s: %s", one.ID, deadletter.Visible(one.Queue), one.Broker, detail)})
}

// Stop ends a drain: the window that it has in hand is finished, and the rest stays in the queue. It returns at once. The error wraps ErrNotFound, ErrConflict where it has ended, or ErrForbidden.
func (d *Drains) Stop(by deadletter.Principal, id string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	i := slices.IndexFunc(d.list, func(o *drain) bool { return o.ID == id })
	if i < 0 {
		return fmt.Errorf("drain %s: %w", deadletter.Visible(deadletter.Cut(id, 40)), deadletter.ErrNotFound)
	}
	one := d.list[i]
	if err := deadletter.Allow(by, deadletter.VerbDrain, deadletter.Origin{Broker: one.Broker, VHost: one.VHost, Queue: one.Queue}); err != nil {
		return err
	}
	if one.State != deadletter.DrainRunning {
		return fmt.Errorf("drain %s: %w: it is %s", id, deadletter.ErrConflict, one.State)
	}
	one.stopper = cmp.Or(one.stopper, by.Name)
	one.cancel()
	return nil
}

// List returns the drains of this process, newest first: all that run, and the newest of those that ended.
func (d *Drains) List() []deadletter.Drain {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := make([]deadletter.Drain, 0, len(d.list))
	for _, one := range slices.Backward(d.list) {
		list = append(list, one.state())
	}
	return list
}

func (d *Drains) state(one *drain) deadletter.Drain {
	d.mu.Lock()
	defer d.mu.Unlock()
	return one.state()
}

// state is what is known of a drain now; the lock is held.
func (o *drain) state() deadletter.Drain {
	now := o.Drain
	if now.State == deadletter.DrainRunning {
		now.Taken = o.once.Taken()
	}
	return now
}

// Busy says that letters are waiting in a drained queue to be stored.
func (d *Drains) Busy() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, one := range d.busy {
		if one != nil && one.once.Busy() {
			return true
		}
	}
	return false
}

// Run closes what an earlier process left open, and when ctx ends stops every drain and waits for the windows that are under way.
func (d *Drains) Run(ctx context.Context) error {
	if err := d.resolve(ctx); err != nil && ctx.Err() == nil {
		d.log.Error("windows that an earlier process left open", "err", err)
	}
	<-ctx.Done()
	d.mu.Lock()
	d.stopped = true
	d.mu.Unlock()
	d.cancel()
	d.running.Wait()
	return nil
}

// resolve decides the open windows of queues that are no inboxes: of a drain that a crash cut off, or of an inbox that left the configuration. Otherwise what is stored already would stay in its
// queue, for others to take a second time.
func (d *Drains) resolve(ctx context.Context) error {
	open, err := d.store.OpenInboxes(ctx)
	if err != nil {
		return err
	}
	for _, name := range open {
		i := slices.IndexFunc(d.brokers, func(b config.Broker) bool { return b.Name == name.Broker })
		if i < 0 || d.links[i].VHost() != name.VHost {
			d.log.Warn("letters that are stored may still be in a queue, and its broker is not in the configuration", "broker", name.Broker, "vhost", name.VHost, "queue", name.Queue)
			continue
		}
		if slices.Contains(d.brokers[i].Inboxes, name.Queue) {
			continue // its own session begins with that
		}
		key := [2]string{d.brokers[i].Place(), name.Queue}
		if d.reserve(key) != nil {
			continue // a drain of it was faster, and begins with that
		}
		once := d.once(i, name.Queue, "", 0, func(string) {})
		d.running.Go(func() {
			defer d.release(key)
			err := once.Resolve(d.ctx)
			if err != nil {
				d.log.Warn("an open window is not closed yet", "broker", name.Broker, "queue", name.Queue, "err", err)
			}
			if err != nil || d.ctx.Err() != nil {
				return
			}
			detail := fmt.Sprintf("queue %s of broker %s: what a drain that was cut off had stored is out of the queue; the rest stays there", deadletter.Visible(name.Queue), name.Broker)
			if err := d.store.Record(context.Background(), deadletter.Event{Kind: "drain resolved", Actor: deadletter.Service.Name, Detail: detail}); err != nil {
				d.log.Error("audit", "err", err)
			}
		})
	}
	return nil
}
