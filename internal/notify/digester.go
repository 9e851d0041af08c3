package notify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// DigestStore is what the Digester needs of the store.
type DigestStore interface {
	// Digest returns what died in a time and needs people, with at most lines groups.
	Digest(ctx context.Context, from, to time.Time, lines int) (deadletter.Digest, error)
	DigestSize(ctx context.Context, from, to time.Time) (groups int, err error)
	// SendDigest writes the digest of a day to the outbox, once: sent says whether it was not there
	// before.
	SendDigest(ctx context.Context, day, by string, d deadletter.Digest, channels []string) (sent bool, err error)
	// LastDigest returns the newest that was written; ErrNotFound before the first.
	LastDigest(ctx context.Context) (day string, d deadletter.Digest, err error)
}

// Schedule is when digests are due, and where they go.
type Schedule struct {
	Clock    Clock
	Channels []string // by name; none = a digest is kept, and told to nobody
}

// Digester makes the morning digest: each local day once, whatever restarts and clocks do.
type Digester struct {
	store    DigestStore
	schedule atomic.Pointer[Schedule]
	now      func() time.Time
	log      *slog.Logger
	wake     func()

	counting sync.Mutex
	size     int       // of the digest as it was counted last
	fresh    time.Time // until when that is shown
}

// NewDigester returns a Digester; Run works. now is time.Now when nil; wake is called when a digest
// is in the outbox.
func NewDigester(store DigestStore, s Schedule, now func() time.Time, log *slog.Logger, wake func()) *Digester {
	if now == nil {
		now = time.Now
	}
	d := &Digester{store: store, now: now, log: log, wake: wake}
	d.Replace(s)
	return d
}

// Replace puts another schedule in the place of the one in use.
func (d *Digester) Replace(s Schedule) {
	d.schedule.Store(&s)
	d.counting.Lock()
	d.fresh = time.Time{} // of another time
	d.counting.Unlock()
}

const (
	digestEvery  = 5 * time.Second // so that 08:30 is 08:30
	digestGroups = 50
)

// Run makes the digests that are due until ctx ends.
func (d *Digester) Run(ctx context.Context) error {
	for {
		if err := d.Step(ctx); err != nil && ctx.Err() == nil {
			d.log.Error("digest", "err", err)
		}
		select {
		case <-time.After(digestEvery):
		case <-ctx.Done():
			return nil
		}
	}
}

// Step makes the digest that is due now, unless that of its day was made. The first one of a store
// is that after its first start: what was due before is noted, and told to nobody.
func (d *Digester) Step(ctx context.Context) error {
	s, now := d.schedule.Load(), d.now()
	day, at := s.Clock.Last(now)
	if day == "" {
		return nil
	}
	channels := s.Channels
	last, before, err := d.store.LastDigest(ctx)
	switch {
	case errors.Is(err, deadletter.ErrNotFound):
		if now.Sub(at) > time.Minute {
			channels = nil
		}
	case err != nil:
		return err
	case last == day:
		return nil
	}
	from, to := s.Clock.Window(now)
	if !before.To.IsZero() && before.To.Before(to) { // whatever was missed or moved in between: no time is in none
		from = before.To.In(from.Location())
	}
	digest, err := d.store.Digest(ctx, from, to, digestGroups)
	if err != nil {
		return err
	}
	sent, err := d.store.SendDigest(ctx, day, deadletter.Service.Name, digest, channels)
	if sent && len(channels) > 0 {
		d.log.Info("digest", "day", day, "groups", digest.Groups, "letters", digest.Letters)
		d.wake()
	}
	return err
}

// Now is the digest as it would be sent now: of the time since the last one was due, or of the last
// day when none is ever due.
func (d *Digester) Now(ctx context.Context) (deadletter.Digest, error) {
	from, to := d.window()
	return d.store.Digest(ctx, from, to, digestGroups)
}

func (d *Digester) window() (from, to time.Time) {
	s, now := d.schedule.Load(), d.now()
	from = now.Add(-24 * time.Hour)
	if day, at := s.Clock.Last(now); day != "" {
		from = at
	}
	return from.In(zone(s.Clock.Zone)), now.In(zone(s.Clock.Zone))
}

// A size is shown twenty times as long as it takes to count, so that pages that show it never take
// more than a twentieth of a processor, but at most half a minute.
const (
	sizeShare = 20
	sizeMost  = 30 * time.Second
)

// Size is how many groups that digest has, or had a moment ago.
func (d *Digester) Size(ctx context.Context) (int, error) {
	d.counting.Lock()
	defer d.counting.Unlock()
	began := time.Now()
	if began.Before(d.fresh) {
		return d.size, nil
	}
	from, to := d.window()
	n, err := d.store.DigestSize(ctx, from, to)
	if err != nil {
		return 0, err
	}
	took := time.Since(began)
	d.size, d.fresh = n, began.Add(min(sizeShare*took, sizeMost))
	return n, nil
}

// Send writes that digest to the outbox, whatever the clock says, and returns where it goes. Asked
// for twice within a second it is one.
func (d *Digester) Send(ctx context.Context, by deadletter.Principal) ([]string, error) {
	s := d.schedule.Load()
	if len(s.Channels) == 0 {
		return nil, fmt.Errorf("%w: no channel is named for the digest; name one under digest.notify", deadletter.ErrConflict)
	}
	digest, err := d.Now(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := d.store.SendDigest(ctx, "asked for at "+d.now().UTC().Format(time.RFC3339), by.Name, digest, s.Channels); err != nil {
		return nil, err
	}
	d.wake()
	return s.Channels, nil
}

// Next is when the next digest is due, in its zone, and where it goes; zero = never.
func (d *Digester) Next() (at time.Time, channels []string) {
	s := d.schedule.Load()
	_, at = s.Clock.Next(d.now())
	return at, s.Channels
}

// Last is the last digest that was made by the clock, with its local day; ErrNotFound before the
// first.
func (d *Digester) Last(ctx context.Context) (string, deadletter.Digest, error) {
	return d.store.LastDigest(ctx)
}
