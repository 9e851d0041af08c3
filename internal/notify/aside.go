package notify

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Aside is an outbox that also works while the store cannot be written. If a problem of dlo itself
// cannot be written to the store, Aside keeps it in memory and sends it from there, so that people
// learn about it. After a restart, the problems in memory are lost and are reported again. Aside is
// safe for concurrent use.
type Aside struct {
	Box interface {
		Store
		Outstanding
	}
	Clock func() time.Time

	mu sync.Mutex
	// id of the newest delivery in memory, counting down from 0; the store uses positive numbers
	newest     int64
	due        []deadletter.Delivery        // deliveries in memory, in order
	open       map[string]deadletter.Notice // problems that were reported from memory and not yet reported as over
	known      map[string]deadletter.Notice // open problems that the store returned last
	unrecorded []deadletter.Delivered       // results that the store could not write yet
}

// Tell writes a notice to the store. If the store does not accept a notice that a problem has
// begun, Tell keeps this notice in memory. In that case, the notice that the same problem is over
// is kept in memory too.
func (a *Aside) Tell(ctx context.Context, n deadletter.Notice) error {
	a.mu.Lock()
	told, here := a.open[n.Key]
	a.mu.Unlock()
	if here && n.Kind == deadletter.NoticeOver {
		n.Channels = told.Channels
		a.keepInMemory(n)
		return nil
	}
	err := a.Box.Tell(ctx, n)
	if err != nil && ctx.Err() == nil && n.Kind == deadletter.NoticeProblem {
		a.keepInMemory(n)
		return nil
	}
	return err
}

func (a *Aside) keepInMemory(n deadletter.Notice) {
	a.mu.Lock()
	defer a.mu.Unlock()
	n.At = a.Clock()
	if a.open == nil {
		a.open = map[string]deadletter.Notice{}
	}
	if a.open[n.Key] = n; n.Kind == deadletter.NoticeOver {
		delete(a.open, n.Key)
	}
	for _, channel := range n.Channels {
		a.newest--
		a.due = append(a.due, deadletter.Delivery{ID: a.newest, Channel: channel, DueAt: n.At, Notice: n})
	}
}

// OpenProblems returns the problems about which people were notified, from the store and from
// memory. While the store cannot be read, it returns what it last read there.
func (a *Aside) OpenProblems(ctx context.Context) (map[string]deadletter.Notice, error) {
	stored, err := a.Box.OpenProblems(ctx)
	if err != nil && ctx.Err() != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err == nil {
		a.known = stored
	}
	open := maps.Clone(a.known)
	if open == nil {
		open = map[string]deadletter.Notice{}
	}
	maps.Copy(open, a.open)
	return open, nil
}

// Due returns the deliveries for a channel that are due and kept in memory. If there are none, it
// returns the due deliveries of the store. While the store cannot record the results of deliveries,
// Due does not read the store. Otherwise dlo would send the same deliveries again and again.
func (a *Aside) Due(ctx context.Context, channel string, n int) ([]deadletter.Delivery, error) {
	if list := a.dueInMemory(channel, n); len(list) > 0 {
		return list, nil
	}
	if err := a.Delivered(ctx, nil); err != nil {
		return nil, err
	}
	return a.Box.Due(ctx, channel, n)
}

// dueInMemory returns up to n due deliveries from memory. If several deliveries have the same key,
// they must be sent in order, so it returns at most the first of them.
func (a *Aside) dueInMemory(channel string, n int) []deadletter.Delivery {
	a.mu.Lock()
	defer a.mu.Unlock()
	var list []deadletter.Delivery
	seen := map[string]bool{}
	for _, d := range a.due {
		if d.Channel != channel || seen[d.Notice.Key] || len(list) == n {
			continue
		}
		if seen[d.Notice.Key] = true; !d.DueAt.After(a.Clock()) {
			list = append(list, d)
		}
	}
	return list
}

// Delivered records the results of delivery attempts: of deliveries in memory, and of deliveries in
// the store. If the store does not accept results, Delivered keeps them in memory, and each later
// call tries again to write them to the store. If "ds" is empty, Delivered only tries to write the
// results that are kept in memory, and returns the error of the store.
func (a *Aside) Delivered(ctx context.Context, ds []deadletter.Delivered) error {
	a.mu.Lock()
	list := a.unrecorded
	a.unrecorded = nil
	for _, d := range ds {
		if d.ID > 0 {
			list = append(list, d)
		} else {
			a.record(d)
		}
	}
	a.mu.Unlock()
	if len(list) == 0 {
		return nil
	}
	err := a.Box.Delivered(ctx, list)
	if err == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.unrecorded = append(list, a.unrecorded...)
	if len(ds) > 0 {
		return nil
	}
	return err
}

// record applies the result of an attempt to a delivery that is kept only in memory. A delivery
// that must not be tried again is removed.
func (a *Aside) record(d deadletter.Delivered) {
	i := slices.IndexFunc(a.due, func(kept deadletter.Delivery) bool { return kept.ID == d.ID })
	switch {
	case i < 0:
	case d.RetryAt.IsZero():
		a.due = slices.Delete(a.due, i, i+1)
	default:
		a.due[i].DueAt = d.RetryAt
		if d.Detail != "" {
			a.due[i].Tries++
		}
	}
}
