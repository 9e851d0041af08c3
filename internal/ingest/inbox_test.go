package ingest_test

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// inbox is a queue as one dlo process sees it. It behaves like rabbitmq.Inbox.
type inbox struct {
	*queue
	once     bool  // true if the queue is drained only once
	refused  error // the error with which the queue refuses to be drained
	surplus  int   // number of letters that a window gets beyond its limit
	first    int   // number of letters in the first window, if the session sets no larger number
	limit    int   // maximum number of letters in a window
	most     int   // number of letters that are still wanted; 0 = no limit
	prefetch int
	applied  int    // prefetch of the newest window
	ack      uint64 // the ack on its way covers all letters up to this tag; 0 = no ack is on its way
}

var errGone = errors.New("the connection is gone")

// isOpen reports whether the session is still open.
func (i *inbox) isOpen() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.session == i
}

// endedByAccident reports whether an accident ended the session at a point. The accident cuts the
// connection, restarts the broker, or kills the cluster node of the session.
func (i *inbox) endedByAccident(point string) bool {
	switch {
	case i.fate("cut " + point):
		i.note("cut %s", point)
		i.Close()
	case i.fate("restart " + point):
		i.note("restart %s", point)
		i.Close()
		i.restart()
	case i.fate("keep " + point):
		i.note("keep %s", point)
		i.endByNodeDeath()
	default:
		return false
	}
	return true
}

func (i *inbox) Open(ctx context.Context, session deadletter.InboxSession) (deadletter.SessionFacts, error) {
	i.Close()
	time.Sleep(max(10*time.Millisecond, time.Until(i.up)))
	if err := cmp.Or(ctx.Err(), i.refused); err != nil {
		return deadletter.SessionFacts{}, err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.session, i.ack, i.prefetch, i.applied = i, 0, min(max(i.first, session.Prefetch), i.limit), 0
	i.note("connect")
	state := deadletter.MarkerThere
	if session.Marker != "" && !i.markers[session.Marker] {
		state = deadletter.MarkerEmptied
	}
	late := ""
	if len(i.kept) > 0 {
		late = "kept"
	}
	return deadletter.SessionFacts{
		Marker: state, Late: late, RedeliveredLeaks: i.leaks, EveryReturnCounted: i.tells, FirstReturnCounted: i.counts,
		DeliveryLimit: i.deletes,
	}, nil
}

func (i *inbox) Prefetch() int { return max(i.prefetch, i.applied) }

func (i *inbox) Limit(n int) { i.most = n }

// next returns the next letter. If "patience" is above 0, it waits at most that long, and returns
// nil if no letter came. If "patience" is 0, it waits until a letter comes.
func (i *inbox) next(ctx context.Context, patience time.Duration) (*deadletter.Arrival, error) {
	var late <-chan time.Time
	if patience > 0 {
		late = time.After(patience)
	}
	for {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		a, changed, err := i.tryNext()
		if a != nil || err != nil {
			return a, err
		}
		select {
		case <-changed:
		case <-late:
			return nil, nil
		case <-ctx.Done():
		}
	}
}

// tryNext returns the next letter. If there is none, it returns a channel that is closed at the
// next change of the queue.
func (i *inbox) tryNext() (*deadletter.Arrival, <-chan struct{}, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.session != i {
		return nil, nil, errGone
	}
	m := i.take()
	if m == nil {
		return nil, i.changed, nil
	}
	a := i.deliver(m)
	return &a, nil, nil
}

func (i *inbox) Next(ctx context.Context) ([]deadletter.Arrival, error) {
	if i.endedByAccident("before the fetch") {
		return nil, errGone
	}
	patience := time.Duration(0)
	if i.once {
		patience = time.Second
	}
	a, err := i.next(ctx, patience)
	if err != nil || a == nil {
		return nil, err
	}
	n := i.prefetch
	if i.most > 0 {
		n = min(n, i.most)
	}
	i.applied = n
	w := []deadletter.Arrival{*a}
	for len(w) < n+i.surplus {
		if a, _, err = i.tryNext(); err != nil || a == nil {
			break
		}
		w = append(w, *a)
	}
	if err != nil || i.endedByAccident("in the fetch") {
		return nil, errGone
	}
	if before := len(i.held) - len(w); before > 0 {
		i.t.Errorf("%d letters are fetched while %d others are in hand", len(w), before)
	}
	switch {
	case i.fate("large bodies"):
		i.prefetch = max(1, i.prefetch/2)
	case len(w) >= i.prefetch:
		i.prefetch = min(2*i.prefetch, i.limit)
	}
	i.note("fetch %s", ranges(i.numbers(w)))
	i.endedByAccident("after the fetch")
	return w, nil
}

const (
	partQuiet  = 30 * time.Second // how long Resume waits for the next letter once a part of the window has come
	emptyQuiet = 5 * time.Second  // how long a drain waits for a letter before the queue counts as empty
)

func (i *inbox) Resume(ctx context.Context, open []deadletter.Fingerprint) ([]deadletter.Arrival, bool, error) {
	if i.endedByAccident("before the resume") {
		return nil, false, errGone
	}
	left := map[deadletter.Fingerprint]int{}
	for _, f := range open {
		left[f]++
	}
	patience := time.Duration(0)
	if i.once {
		patience = emptyQuiet
	}
	var w []deadletter.Arrival
	ours := true
	for ours && len(w) < len(open) {
		a, err := i.next(ctx, patience)
		if err != nil {
			return nil, false, err
		}
		if a == nil {
			break
		}
		w = append(w, *a)
		left[a.Fingerprint]--
		ours = a.Redelivered && left[a.Fingerprint] >= 0
		patience = partQuiet
	}
	for len(w) < len(open) { // Letters that have arrived by now belong to the window too.
		a, _, err := i.tryNext()
		if err != nil || a == nil {
			break
		}
		w = append(w, *a)
	}
	whole := ours && len(w) == len(open)
	switch {
	case whole:
		i.note("%s came back", ranges(i.numbers(w)))
	case len(w) > 0:
		i.note("%s came instead", ranges(i.numbers(w)))
	default:
		i.note("nothing came")
	}
	i.endedByAccident("after the resume")
	return w, whole, nil
}

func (i *inbox) Ack(w []deadletter.Arrival) error {
	if i.endedByAccident("before the ack") || i.fate("refuse the ack") || !i.isOpen() {
		return errGone
	}
	i.mu.Lock()
	i.ack = w[len(w)-1].Tag
	for _, m := range i.held[:i.coveredByAck()] {
		if !i.safe(m.number) {
			i.t.Errorf("letter %d is acknowledged, and is not stored", m.number)
		}
	}
	i.mu.Unlock()
	i.note("ack %s", ranges(i.numbers(w)))
	i.endedByAccident("after the ack")
	return nil
}

// coveredByAck returns the number of letters that the current ack acknowledges. It can compute this
// number from the delivery tags, because the tags of the letters have no gaps.
func (i *inbox) coveredByAck() int { return len(i.held) - int(i.tag-i.ack) }

// arrive completes the ack that is on its way: it brings the ack to the broker.
func (i *inbox) arrive() {
	if i.ack > 0 {
		n := i.coveredByAck()
		i.acked, i.held, i.ack = append(i.acked, i.held[:n]...), i.held[n:], 0
	}
}

func (i *inbox) Fence() error {
	if i.endedByAccident("before the fence") || !i.isOpen() {
		return errGone
	}
	i.mu.Lock()
	i.arrive()
	i.mu.Unlock()
	if i.endedByAccident("in the fence") {
		return errGone
	}
	i.note("fence")
	return nil
}

func (i *inbox) MakeMarker(marker string) error {
	if i.endedByAccident("before the mark") {
		return errGone
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.markers[marker] = true
	i.note("mark")
	return nil
}

func (i *inbox) DeleteMarker(marker string) error {
	if i.endedByAccident("before the unmark") || !i.isOpen() {
		return errGone
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.markers, marker)
	i.note("unmark")
	return nil
}

func (i *inbox) Held() (bool, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.session != i {
		return false, errGone
	}
	return len(i.kept) > 0, nil
}

func (i *inbox) Missing(letters int) { i.note("%d missing", letters) }

// Close ends the session. An ack on its way either arrives or is lost with the connection.
func (i *inbox) Close() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.session != i {
		return
	}
	if i.ack > 0 && !i.fate("lose the ack") {
		i.arrive()
	}
	i.ack = 0
	i.end()
}
