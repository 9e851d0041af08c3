// Package drain takes letters out of queues that are not inboxes. Each drain runs once, when
// somebody requests it. The package starts and stops drains, and it knows which queues must not be
// drained. It does not take the letters itself: the caller passes in a Queue that does this with
// the protocol of package ingest.
package drain

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/rules"
)

// Store is the part of the store that drains need.
type Store interface {
	OpenInboxes(ctx context.Context) ([]deadletter.InboxName, error) // queues that have a window which was left open
	Record(ctx context.Context, a deadletter.Act) error
}

// Queue drains one queue once.
type Queue interface {
	// takes letters until the requested number is stored, the queue is empty, or ctx ends
	Run(ctx context.Context) error
	Resolve(ctx context.Context) error // closes a window that an earlier process left open, and takes no other letters
	Taken() int                        // number of letters that were stored so far
	Busy() bool                        // whether letters in the broker wait to be stored
}

// Broker is one broker and vhost in the configuration.
type Broker struct {
	Name, VHost string
	Place       string   // the same for all entries of the configuration that lead to the same broker and vhost
	Inboxes     []string // inboxes of this entry
	Drained     []string // inboxes of all entries with the same Place
	Annotations []string // annotation queues of all entries with the same Place

	Inspect func(ctx context.Context, queue string) error // returns an error that says why a queue cannot be drained
	// Open returns a Queue that drains a queue of this broker. The parameter "count" is the number
	// of letters to take; 0 = all letters. When the Queue has to wait, it calls "say" with the
	// reason.
	Open func(queue, origin string, count int, say func(text string)) Queue
}

// Drains manages the drains of this process. Running drains and some of the ended ones are kept in
// memory. The audit keeps all of them permanently. Drains is safe for concurrent use.
type Drains struct {
	brokers []Broker
	store   Store
	targets *rules.Targets
	log     *slog.Logger
	now     func() time.Time

	ctx     context.Context // parent of the contexts of all drains
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu      sync.Mutex
	stopped bool
	number  int64    // number of the newest drain, from which its id is made
	list    []*drain // drains, oldest first
	// queues that are in use, by place and name of the queue; nil while a queue is inspected, or
	// while an open window is closed
	busy map[[2]string]*drain
}

// drain is the state of one drain. The lock of the type Drains protects its fields.
type drain struct {
	deadletter.Drain
	queue   Queue
	cancel  context.CancelFunc
	stopper string // name of the person who stopped the drain
}

// New returns the drains of the given brokers. The caller must keep the method Run running, because
// it finishes what an earlier process left undone. That process may have ended while it took a
// window, which is a batch of letters, out of a queue.
func New(store Store, brokers []Broker, targets *rules.Targets, log *slog.Logger) *Drains {
	d := &Drains{
		brokers: brokers,
		store:   store,
		targets: targets,
		log:     log,
		now:     time.Now,
		busy:    map[[2]string]*drain{},
	}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	return d
}

const keep = 100 // maximum number of drains in memory: the running ones and the newest ended ones

// Start starts the drain of a queue. The drain continues in the background. If there is no such
// broker or queue, the error wraps ErrNotFound. If the queue is an inbox, if it is already being
// drained, or if the broker may delete its letters, the error wraps ErrConflict. Other errors wrap
// ErrForbidden, ErrInvalid or ErrUnavailable.
func (d *Drains) Start(
	ctx context.Context, by deadletter.Principal, r deadletter.DrainRequest,
) (deadletter.Drain, error) {
	i, err := d.broker(&r)
	if err != nil {
		return deadletter.Drain{}, err
	}
	if err := deadletter.Allow(by, deadletter.VerbDrain, deadletter.Origin{
		Broker: r.Broker,
		VHost:  r.VHost,
		Queue:  r.Queue,
	}); err != nil {
		return deadletter.Drain{}, err
	}
	if err := d.checkRequest(i, r); err != nil {
		return deadletter.Drain{}, err
	}
	key := [2]string{d.brokers[i].Place, r.Queue}
	if err := d.reserve(key); err != nil {
		return deadletter.Drain{}, err
	}
	one := &drain{Drain: deadletter.Drain{
		Broker: r.Broker,
		VHost:  r.VHost,
		Queue:  r.Queue,
		Origin: r.Origin,
		Asked:  r.Count,
		State:  deadletter.DrainRunning,
		By:     by.Name,
	}}
	if err = d.brokers[i].Inspect(ctx, r.Queue); err == nil {
		err = d.begin(ctx, i, key, one)
	}
	if err != nil {
		d.release(key)
		return deadletter.Drain{}, fmt.Errorf("drain %s: %w", deadletter.Visible(r.Queue), err)
	}
	return d.state(one), nil
}

// broker returns the index of the broker to which a request belongs. If the request names no broker
// and only one is configured, it returns the index of that one. It also writes the names of the
// broker and the vhost into the request.
func (d *Drains) broker(r *deadletter.DrainRequest) (int, error) {
	if r.Broker == "" && len(d.brokers) == 1 {
		r.Broker = d.brokers[0].Name
	}
	i := slices.IndexFunc(d.brokers, func(b Broker) bool { return b.Name == r.Broker })
	if i < 0 {
		return 0, deadletter.NoSuch("broker %q in the configuration", deadletter.Visible(r.Broker))
	}
	vhost := d.brokers[i].VHost
	if r.VHost != "" && r.VHost != vhost {
		return 0, fmt.Errorf(
			"%w: broker %s is configured for vhost %q, not %q", deadletter.ErrNotFound, r.Broker, vhost,
			deadletter.Visible(r.VHost),
		)
	}
	r.VHost = vhost
	return i, nil
}

func (d *Drains) checkRequest(i int, r deadletter.DrainRequest) error {
	queue := deadletter.Visible(deadletter.Cut(r.Queue, deadletter.MaxQueueName))
	switch {
	case r.Queue == "":
		return fmt.Errorf("%w: name a queue to drain", deadletter.ErrInvalid)
	case len(r.Queue) > deadletter.MaxQueueName:
		return fmt.Errorf(
			"%w: queue %s… cannot exist: a name has at most %d bytes", deadletter.ErrInvalid, queue,
			deadletter.MaxQueueName,
		)
	case r.Count < 0:
		return fmt.Errorf("%w: the count is a number of letters, or 0 for all", deadletter.ErrInvalid)
	case slices.Contains(d.brokers[i].Drained, r.Queue):
		return fmt.Errorf("%w: %s is an inbox: it is drained all the time", deadletter.ErrConflict, queue)
	case deadletter.OwnQueue(r.Queue), slices.Contains(d.brokers[i].Annotations, r.Queue):
		return fmt.Errorf("%w: %s is one of dlo's own queues", deadletter.ErrInvalid, queue)
	case r.Origin == "":
		return nil
	case r.Origin == r.Queue:
		return fmt.Errorf(
			"%w: letters would be sent back into %s while it is drained; name the queue that they came from",
			deadletter.ErrInvalid, queue,
		)
	}
	if err := d.targets.Allow(deadletter.Origin{Broker: r.Broker, VHost: r.VHost, Queue: r.Origin}); err != nil {
		return fmt.Errorf("%w: origin: %w", deadletter.ErrInvalid, err)
	}
	return nil
}

// reserve reserves a queue, so that it is not drained twice at the same time.
func (d *Drains) reserve(key [2]string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	one, taken := d.busy[key]
	switch {
	case d.stopped:
		return fmt.Errorf("%w: dlo is stopping", deadletter.ErrUnavailable)
	case taken && one != nil:
		return fmt.Errorf(
			"%w: %s is being drained already, by %s", deadletter.ErrConflict, deadletter.Visible(key[1]), one.ID,
		)
	case taken:
		return fmt.Errorf(
			"%w: what an earlier drain of %s left open is being closed; try again in a moment", deadletter.ErrConflict,
			deadletter.Visible(key[1]),
		)
	}
	d.busy[key] = nil
	return nil
}

func (d *Drains) release(key [2]string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.busy, key)
}

// Stop ends a drain and returns immediately. The drain finishes its present window, and all other
// letters stay in the queue. If the drain has already ended, the error wraps ErrConflict. Other
// errors wrap ErrNotFound or ErrForbidden.
func (d *Drains) Stop(ctx context.Context, by deadletter.Principal, id string) error {
	one, err := d.claimStop(by, id)
	if err != nil || one == nil {
		return err
	}
	if err := d.store.Record(
		ctx, deadletter.Once(deadletter.ActDrainStopped, by.Name, "", one.targets()...),
	); err != nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		one.stopper = ""
		return err
	}
	one.cancel()
	return nil
}

// claimStop records that a person wants to stop a drain, and returns the drain. If another person
// is already stopping the drain, it returns nil.
func (d *Drains) claimStop(by deadletter.Principal, id string) (*drain, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	i := slices.IndexFunc(d.list, func(o *drain) bool { return o.ID == id })
	if i < 0 {
		return nil, deadletter.NoSuch("drain %s", deadletter.Visible(deadletter.Cut(id, 40)))
	}
	one := d.list[i]
	if err := deadletter.Allow(by, deadletter.VerbDrain, deadletter.Origin{
		Broker: one.Broker,
		VHost:  one.VHost,
		Queue:  one.Queue,
	}); err != nil {
		return nil, err
	}
	switch {
	case one.State != deadletter.DrainRunning:
		return nil, fmt.Errorf("drain %s: %w: it is %s", id, deadletter.ErrConflict, one.State)
	case one.stopper != "":
		return nil, nil
	}
	one.stopper = by.Name
	return one, nil
}

// List returns the drains of this process, newest first. It returns all running drains and the
// newest ended ones.
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

// state returns the present state of a drain. The caller must hold the lock of Drains.
func (o *drain) state() deadletter.Drain {
	now := o.Drain
	if now.State == deadletter.DrainRunning {
		now.Taken = o.queue.Taken()
	}
	return now
}

// Busy reports whether letters wait to be stored in any of the queues that are being drained.
func (d *Drains) Busy() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, one := range d.busy {
		if one != nil && one.queue.Busy() {
			return true
		}
	}
	return false
}
