// Package operation runs actions on many letters, for example a requeue. At its start, an operation
// stores the list of its letters, so that letters which arrive later are not affected. It first
// waits for a moment in which it can be undone. It then sends a few letters, the canary, and stops
// if too many of them come back. It sends the others at a limited rate, and watches them until
// there is a verdict. It can be cancelled without loss. This package moves letters between states,
// and the dispatcher publishes them.
package operation

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/internal/rules"
)

// Store contains the methods of the store that a Desk uses.
type Store interface {
	Selections
	Runs
	Redirects
	Reviser
	Guards
	Waiters
	Copies
}

// Selections is the part of the store that reads selections of letters and freezes them. Freezing
// means that an operation keeps exactly the letters that were selected at its start.
type Selections interface {
	// Survey counts the letters of a selection. It puts letters that a plan treats in the same way
	// into one share, for example all dead letters of a queue. It leaves out letters that changed
	// after sel.Until. The result "changed" is the number of these letters.
	Survey(ctx context.Context, sel query.Selection, maxBody int) (shares []deadletter.Share, changed int, err error)
	// Freeze stores an operation together with the letters that it selects. Before that, it calls the
	// function "allow" with the place of each of these letters. If "allow" returns an error, Freeze
	// stores nothing.
	Freeze(
		ctx context.Context, op *deadletter.Operation, sel query.Selection, first int,
		allow func(deadletter.Origin) error,
	) error
	Operation(ctx context.Context, id deadletter.OperationID) (deadletter.Operation, error)
	HaltedOperations(ctx context.Context) ([]deadletter.Operation, error)
	Unindexed(ctx context.Context) (int, error)
	AsOf(now time.Time) time.Time // returns the as-of time for a selection that is read next
}

// Desk starts operations and runs them.
type Desk struct {
	store   Store
	targets *rules.Targets
	facts   func(ctx context.Context, o deadletter.Origin) deadletter.QueueFacts
	away    func(o deadletter.Origin) string
	maxBody int
	now     func() time.Time
	log     *slog.Logger
	crash   func(point string)
	moved   func()
	wake    chan struct{}
	pacers  map[deadletter.OperationID]*pacer

	edit     func(l *deadletter.Letter, patch []byte, reveal bool) (deadletter.Revision, error)
	decider  Decider
	applying chan struct{} // has one slot, so that only one call of Apply runs at a time
}

// Options are the settings of a Desk.
type Options struct {
	Targets *rules.Targets
	// returns the facts about a queue of a broker
	Facts func(ctx context.Context, o deadletter.Origin) deadletter.QueueFacts
	// returns why nothing can be sent to the broker of o now; "" = letters can be sent; nil = this
	// is not known, so letters count as sendable
	Away func(o deadletter.Origin) string
	// maximum size of a body in bytes; 0 = no limit
	MaxBody int
	Now     func() time.Time // returns the time; nil = time.Now
	Log     *slog.Logger
	Crash   func(point string) // called at the named crash points; nil in production
	Moved   func()             // called after letters are released, to wake the dispatcher
	Decider Decider            // decides for Apply; nil = Apply is not available
	// Edit applies an RFC 6902 patch to the decoded body of a letter and returns a complete
	// revision. If the parameter "reveal" is true, Edit accepts letters with masked values too. The
	// error says in words why the letter cannot be edited. If the option Edit is nil, no letter can
	// be edited.
	Edit func(l *deadletter.Letter, patch []byte, reveal bool) (deadletter.Revision, error)
}

// New returns a Desk. Call Run to start its work.
func New(store Store, o Options) *Desk {
	if o.Crash == nil {
		o.Crash = func(string) {}
	}
	if o.Moved == nil {
		o.Moved = func() {}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Away == nil {
		o.Away = func(deadletter.Origin) string { return "" }
	}
	if o.MaxBody == 0 {
		o.MaxBody = math.MaxInt64
	}
	return &Desk{
		store:    store,
		targets:  o.Targets,
		facts:    o.Facts,
		away:     o.Away,
		maxBody:  o.MaxBody,
		now:      o.Now,
		log:      o.Log,
		crash:    o.Crash,
		moved:    o.Moved,
		wake:     make(chan struct{}, 1),
		pacers:   map[deadletter.OperationID]*pacer{},
		decider:  o.Decider,
		edit:     o.Edit,
		applying: make(chan struct{}, 1),
	}
}

// Request asks for an operation.
type Request struct {
	Action    deadletter.Verb
	Selection query.Selection
	// number of letters that the person was shown; the operation acts on no more than this; 0 = not
	// given
	Expect int
	First  int       // maximum number of letters, in the order of sending; 0 = all
	To     string    // queue to which letters are requeued, instead of their origin
	DueAt  time.Time // time at which rescheduled letters are due
	// delay, if the person chose a delay and not a time; two clicks then make one request
	DueIn time.Duration
	Reset bool // for a requeue: letters that come back get all their retries again
	// includes letters that may have been sent after the restored copy was made; a query for
	// doubt:restored implies it
	Restored  bool
	TakesOver []deadletter.OperationID // halted operations to cancel, so that their remaining letters are free
	Patch     []byte                   // for an edit: an RFC 6902 patch of each decoded body
	Pace      Pace                     // pace of a requeue
	Reason    string                   // reason for the audit; may be empty
	Key       string                   // Idempotency-Key; "" = each request starts an operation of its own
}

// Pace says how a requeue is sent. For a nil field, the default applies.
type Pace = deadletter.PaceAsked

// These are the default values for the pace of a requeue.
const (
	DefaultRate       = 50.0
	DefaultCanary     = 10
	DefaultCanaryWait = 2 * time.Minute
	DefaultStopAt     = 5.0
	DefaultHold       = 10 * time.Second
)

const (
	maxReason = 500 // maximum length of a reason in bytes
	maxKey    = 200 // maximum length of an Idempotency-Key in bytes
	maxPatch  = 64 << 10
	maxIDs    = 10_000 // maximum number of ids of selected letters, and of excluded letters
	maxRate   = 1e6    // maximum rate in letters per second
	maxWait   = 24 * time.Hour
	maxHold   = time.Hour
)

// check checks a request. It returns the pace of the request, with the defaults filled in.
func (d *Desk) check(r *Request) (deadletter.Pace, error) {
	invalid := func(format string, args ...any) (deadletter.Pace, error) {
		return deadletter.Pace{}, fmt.Errorf("%w: "+format, append([]any{deadletter.ErrInvalid}, args...)...)
	}
	var pace deadletter.Pace
	if _, err := deadletter.ParseVerb(string(r.Action)); err != nil {
		return pace, err
	}
	sel := r.Selection
	switch {
	case len(r.Reason) > maxReason:
		return invalid("a reason has at most %d bytes", maxReason)
	case len(r.Key) > maxKey:
		return invalid("an Idempotency-Key has at most %d bytes", maxKey)
	case sel.Query == nil && len(sel.IDs) == 0:
		return invalid("no letter is selected: give a query or ids")
	case sel.Query != nil && len(sel.IDs) > 0:
		return invalid("a selection is a query or ids, not both")
	case len(sel.IDs) > maxIDs || len(sel.Except) > maxIDs:
		return invalid("a selection names at most %d letters; a query selects more", maxIDs)
	case sel.Until.After(d.now().Add(time.Minute)):
		return invalid("the selection is as of %s, which is in the future", sel.Until.UTC().Format(time.RFC3339))
	case r.First < 0:
		return invalid("first is a number of letters, not %d", r.First)
	case !r.Action.Sends() && r.To != "":
		return invalid("only a requeue goes to another queue")
	case (r.Action == deadletter.VerbEdit) != (len(r.Patch) > 0):
		return invalid("an edit needs patch, an RFC 6902 patch of the decoded body, and no other action takes one")
	case r.Action == deadletter.VerbEdit && d.edit == nil:
		return invalid("this server cannot edit letters")
	case len(r.Patch) > maxPatch:
		return invalid("a patch has at most %d bytes", maxPatch)
	case !r.Action.Sends() && r.Reset:
		return invalid("only a requeue can restart the retries of letters")
	case (r.Action == deadletter.VerbReschedule) == r.DueAt.IsZero():
		return invalid("a reschedule needs due_at, the time when the letters are due, and no other action takes one")
	case r.DueAt.After(d.now().Add(rules.MaxDelay)):
		return invalid("a letter can be due in %d days at most", rules.MaxDelay/(24*time.Hour))
	}
	r.Restored = r.Restored || sel.Query != nil &&
		slices.Contains(sel.Query.Values(query.Doubt), string(deadletter.DoubtRestored))
	hold := DefaultHold
	if r.Pace.Hold != nil {
		hold = *r.Pace.Hold
	}
	if hold < 0 || hold > maxHold {
		return invalid("hold is at most %s, not %s", maxHold, hold)
	}
	if r.Action.Irreversible() {
		pace.Hold = hold
	}
	pace.Newest = r.Pace.Newest
	if !r.Action.Sends() {
		return pace, nil
	}
	pace.Rate, pace.Canary, pace.CanaryWait, pace.StopAt = DefaultRate, DefaultCanary, DefaultCanaryWait, DefaultStopAt
	set(&pace.Rate, r.Pace.Rate)
	set(&pace.Canary, r.Pace.Canary)
	set(&pace.CanaryWait, r.Pace.CanaryWait)
	set(&pace.StopAt, r.Pace.StopAt)
	set(&pace.MaxDepth, r.Pace.MaxDepth)
	switch {
	case !(pace.Rate > 0 && pace.Rate <= maxRate):
		return invalid(
			"rate is above 0 and at most %g letters per second, not %g; an operation that is to send nothing can be paused",
			maxRate, pace.Rate,
		)
	case pace.Canary < 0:
		return invalid("canary is a number of letters, 0 for none, not %d", pace.Canary)
	case pace.CanaryWait < 0 || pace.CanaryWait > maxWait:
		return invalid("canary_wait is at most %s, not %s", maxWait, pace.CanaryWait)
	case !(pace.StopAt >= 0 && pace.StopAt <= 100):
		return invalid("stop_at is per cent that came back, 0 (never) to 100, not %g", pace.StopAt)
	case pace.MaxDepth < 0:
		return invalid("max_depth is a number of messages, 0 for no limit, not %d", pace.MaxDepth)
	}
	return pace, nil
}

func set[T any](into *T, v *T) {
	if v != nil {
		*into = *v
	}
}

// Start stores an operation together with the letters that it selects, and begins it. If the same
// principal sends a second request with the same idempotency key, Start returns the operation that
// was started with that key. Errors wrap ErrInvalid, ErrForbidden, ErrNotFound or ErrConflict. If
// Start returns an error, it stored nothing.
func (d *Desk) Start(ctx context.Context, by deadletter.Principal, r Request) (deadletter.OperationID, error) {
	pace, err := d.check(&r)
	if err != nil {
		return 0, err
	}
	if r.Action == deadletter.VerbEdit && strings.TrimSpace(r.Reason) == "" {
		return 0, fmt.Errorf(
			"%w: an edit needs a reason, so that the next person understands the change", deadletter.ErrInvalid,
		)
	}
	if err := d.checkPermission(ctx, by, &r); err != nil {
		return 0, err
	}
	if err := d.gateTaken(ctx, by, &r); err != nil {
		return 0, err
	}
	op := deadletter.Operation{
		Action:    r.Action,
		By:        by.Name,
		Through:   deadletter.WayOf(ctx),
		Reason:    r.Reason,
		Key:       r.Key,
		Request:   r.hash(pace),
		Except:    len(r.Selection.Except),
		Expect:    r.Expect,
		Pace:      pace,
		To:        r.To,
		DueAt:     r.DueAt,
		Reset:     r.Reset,
		Restored:  r.Restored,
		TakesOver: r.TakesOver,
		Patch:     r.Patch,
	}
	if r.Action == deadletter.VerbEdit {
		if op.Reveal, err = d.mayReveal(ctx, by, r.Selection); err != nil {
			return 0, err
		}
	}
	if q := r.Selection.Query; q != nil {
		op.Query = q.Fixed().String()
	}
	// checks the rights again, because the letters may have changed since gate
	allow := func(o deadletter.Origin) error {
		if err := d.allowedAt(by, &r, o); err != nil || !op.Reveal {
			return err
		}
		return deadletter.Allow(by, deadletter.VerbReveal, o)
	}
	if err := d.store.Freeze(ctx, &op, r.Selection, r.First, allow); err != nil {
		return 0, err
	}
	d.crash("operation: frozen")
	select {
	case d.wake <- struct{}{}:
	default:
	}
	return op.ID, nil
}

// hash returns a hash of a request. Equal requests have equal hashes.
func (r *Request) hash(pace deadletter.Pace) [32]byte {
	q := ""
	if r.Selection.Query != nil {
		q = r.Selection.Query.String()
	}
	at := r.DueAt
	if r.DueIn > 0 {
		at = time.Time{}
	}
	// The error is ignored, because text and numbers can always be encoded.
	text, _ := json.Marshal([]any{
		r.Action, q, r.Selection.IDs, r.Selection.Except, r.First, r.To, at, r.DueIn, r.Reset, r.Restored, r.TakesOver,
		string(r.Patch), pace,
	})
	return sha256.Sum256(text)
}

// checkPermission checks whether the caller may act on letters of every origin in a selection. It
// also refuses a redirect to a queue to which none of the letters may go.
func (d *Desk) checkPermission(ctx context.Context, by deadletter.Principal, r *Request) error {
	if by.MayToAll(r.Action) && r.To == "" {
		return nil // a survey of up to half a million letters is not needed for a caller who may act on all letters
	}
	shares, _, err := d.store.Survey(ctx, r.Selection, d.maxBody)
	if err != nil {
		return err
	}
	return d.checkAllowed(by, r, shares)
}

// mayReveal reports whether the caller may see the masked values in every letter of a selection. If
// so, an edit may replace these values.
func (d *Desk) mayReveal(ctx context.Context, by deadletter.Principal, s query.Selection) (bool, error) {
	if by.MayToAll(deadletter.VerbReveal) || !by.May(deadletter.VerbReveal) {
		return by.May(deadletter.VerbReveal), nil
	}
	shares, _, err := d.store.Survey(ctx, s, d.maxBody)
	return !slices.ContainsFunc(shares, func(s deadletter.Share) bool {
		return deadletter.Allow(by, deadletter.VerbReveal, s.Place()) != nil
	}), err
}

// gateTaken checks the rights for a request that takes over letters from other operations. The
// caller must be allowed to act on each queue of those operations.
func (d *Desk) gateTaken(ctx context.Context, by deadletter.Principal, r *Request) error {
	for _, id := range r.TakesOver {
		if err := d.allowedAll(ctx, by, id); err != nil {
			return err
		}
	}
	return nil
}

// allowedAll checks whether the caller may act on each queue of an operation. It includes queues
// that the caller may not see.
func (d *Desk) allowedAll(ctx context.Context, by deadletter.Principal, id deadletter.OperationID) error {
	if _, err := d.store.Operation(ctx, id); err != nil {
		return err
	}
	op, err := d.store.Operation(deadletter.Within(ctx, deadletter.Scope{}), id)
	if err != nil {
		return err
	}
	for _, q := range op.Queues {
		if err := deadletter.Allow(by, deadletter.VerbCancel, q.Place()); err != nil {
			return err
		}
	}
	return nil
}

func (d *Desk) checkAllowed(by deadletter.Principal, r *Request, shares []deadletter.Share) error {
	var refused error
	reachable := false
	for _, s := range shares {
		if err := d.allowedAt(by, r, s.Place()); err != nil {
			return err
		}
		if r.To == "" {
			continue
		}
		to := deadletter.Origin{Broker: s.Origin.Broker, VHost: s.Origin.VHost, Queue: r.To}
		if err := d.targets.Allow(to); err != nil {
			refused = err
		} else {
			reachable = true
		}
	}
	if refused != nil && !reachable {
		return fmt.Errorf("%w: %w", deadletter.ErrInvalid, refused)
	}
	return nil
}

// allowedAt checks whether the caller may act on letters from a place. If the request has a
// redirect, it also checks the target queue.
func (d *Desk) allowedAt(by deadletter.Principal, r *Request, at deadletter.Origin) error {
	if err := deadletter.Allow(by, r.Action, at); err != nil || r.To == "" {
		return err
	}
	return deadletter.Allow(by, r.Action, deadletter.Origin{Broker: at.Broker, VHost: at.VHost, Queue: r.To})
}

// Cancel ends an operation. Letters that were not sent return to their previous state. If there is
// nothing to cancel, Cancel returns ErrConflict.
func (d *Desk) Cancel(ctx context.Context, by deadletter.Principal, id deadletter.OperationID) error {
	return d.control(ctx, by, id, func() error { return d.store.CancelOperation(ctx, id, by.Name) })
}

// Pause stops an operation from sending more letters until Resume is called. If there is nothing
// left to send, Pause returns ErrConflict.
func (d *Desk) Pause(ctx context.Context, by deadletter.Principal, id deadletter.OperationID) error {
	return d.control(ctx, by, id, func() error { return d.store.PauseOperation(ctx, id, by.Name) })
}

// Resume continues an operation that was paused or that stopped. If the operation stopped
// automatically, it first sends a few letters again as a canary. If it is neither paused nor
// stopped, Resume returns ErrConflict.
func (d *Desk) Resume(ctx context.Context, by deadletter.Principal, id deadletter.OperationID) error {
	return d.control(ctx, by, id, func() error { return d.store.ResumeOperation(ctx, id, by.Name) })
}

// Rate changes how many letters per second an operation sends.
func (d *Desk) Rate(ctx context.Context, by deadletter.Principal, id deadletter.OperationID, rate float64) error {
	if !(rate > 0 && rate <= maxRate) {
		return fmt.Errorf(
			"%w: rate is above 0 and at most %g letters per second, not %g; pause the operation to send nothing",
			deadletter.ErrInvalid, maxRate, rate,
		)
	}
	return d.control(ctx, by, id, func() error { return d.store.RateOperation(ctx, id, by.Name, rate) })
}

// control checks that the caller may act on each queue of an operation. It then calls the function
// "change", which changes the operation. After that, it wakes the desk.
func (d *Desk) control(
	ctx context.Context, by deadletter.Principal, id deadletter.OperationID, change func() error,
) error {
	if err := d.allowedAll(ctx, by, id); err != nil {
		return err
	}
	if err := change(); err != nil {
		return err
	}
	select {
	case d.wake <- struct{}{}:
	default:
	}
	return nil
}
