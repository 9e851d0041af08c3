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

// DigestStore is the part of the store that a Digester needs.
type DigestStore interface {
	// Digest returns the digest of a period. It covers those letters that died in the period and
	// that still wait for a decision of a person. The parameter "lines" is the maximum number of
	// groups that the digest lists.
	Digest(ctx context.Context, from, to time.Time, lines int) (deadletter.Digest, error)
	DigestSize(ctx context.Context, from, to time.Time) (groups int, err error)
	// SendDigest writes the digest of a day to the outbox, unless a digest of that day exists. The
	// result "sent" is true if it wrote the digest.
	SendDigest(ctx context.Context, day, by string, d deadletter.Digest, channels []string) (sent bool, err error)
	// LastDigest returns the newest digest. If there is none yet, it returns ErrNotFound.
	LastDigest(ctx context.Context) (day string, d deadletter.Digest, err error)
}

// Schedule determines when digests are due and to which channels they are sent.
type Schedule struct {
	Clock    Clock
	Channels []string // names of the channels; empty = digests are stored but sent to nobody
}

// Digester makes the digests. It makes one digest per local day, even after restarts and clock
// changes.
type Digester struct {
	store    DigestStore
	schedule atomic.Pointer[Schedule]
	now      func() time.Time
	log      *slog.Logger
	wake     func()

	counting sync.Mutex
	size     int       // number of groups in the digest when they were last counted
	fresh    time.Time // time until which size is used without counting again
}

// NewDigester returns a Digester. Its method Run starts the work. If "now" is nil, the Digester
// uses time.Now. It calls "wake" when a digest is in the outbox.
func NewDigester(store DigestStore, s Schedule, now func() time.Time, log *slog.Logger, wake func()) *Digester {
	if now == nil {
		now = time.Now
	}
	d := &Digester{store: store, now: now, log: log, wake: wake}
	d.Replace(s)
	return d
}

// Replace puts another schedule into use.
func (d *Digester) Replace(s Schedule) {
	d.schedule.Store(&s)
	d.counting.Lock()
	d.fresh = time.Time{} // the counted size belongs to another period
	d.counting.Unlock()
}

const (
	digestEvery  = 5 * time.Second // short, so that a digest that is due at 08:30 is sent at 08:30
	digestGroups = 50
)

// Run makes digests when they are due, until ctx ends.
func (d *Digester) Run(ctx context.Context) error {
	for {
		if err := d.Step(ctx); err != nil && ctx.Err() == nil {
			d.log.Error("the digest could not be made", "err", err)
		}
		select {
		case <-time.After(digestEvery):
		case <-ctx.Done():
			return nil
		}
	}
}

// Step makes the digest that is due now, unless the store already has a digest of the day on which
// it is due. If the store is new, a digest that was due before dlo started is stored but sent to
// nobody. The first digest that people get is therefore the first one that becomes due after the
// start.
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
	// a digest was missed, or the schedule was changed, so this digest covers all of the time since
	// the last one
	if !before.To.IsZero() && before.To.Before(to) {
		from = before.To.In(from.Location())
	}
	digest, err := d.store.Digest(ctx, from, to, digestGroups)
	if err != nil {
		return err
	}
	sent, err := d.store.SendDigest(ctx, day, deadletter.Service.Name, digest, channels)
	if sent && len(channels) > 0 {
		d.log.Info("digest made", "day", day, "groups", digest.Groups, "letters", digest.Letters)
		d.wake()
	}
	return err
}

// Now returns the digest as it would be sent now. It covers the time since a digest was last due.
// If no digest was due yet, it covers the last 24 hours.
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

// Counting the groups of a digest takes time, so dlo reuses the result for a while. dlo reuses it
// for twenty times as long as the counting took, but at most for half a minute. Pages that show the
// number therefore never use more than a twentieth of a processor.
const (
	sizeShare = 20
	sizeMost  = 30 * time.Second
)

// Size returns the number of groups in the digest that Now returns. The number may be up to half a
// minute old.
func (d *Digester) Size(ctx context.Context) (int, error) {
	if !deadletter.ScopeOf(ctx).Everywhere() {
		from, to := d.window()
		return d.store.DigestSize(ctx, from, to)
	}
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

// Send writes a digest to the outbox, even if no digest is due. It is the digest that Now returns.
// Send returns the channels to which the digest is sent. Two calls within a second produce one
// digest.
func (d *Digester) Send(ctx context.Context, by deadletter.Principal) ([]string, error) {
	s := d.schedule.Load()
	if len(s.Channels) == 0 {
		return nil, fmt.Errorf(
			"%w: no channel is named for the digest; name one under digest.notify", deadletter.ErrConflict,
		)
	}
	digest, err := d.Now(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := d.store.SendDigest(
		ctx, "asked for at "+d.now().UTC().Format(time.RFC3339), by.Name, digest, s.Channels,
	); err != nil {
		return nil, err
	}
	d.wake()
	return s.Channels, nil
}

// Next returns when the next digest is due, in the time zone of the digest, and the channels to
// which it is sent. If no digest is scheduled, the time is zero.
func (d *Digester) Next() (at time.Time, channels []string) {
	s := d.schedule.Load()
	_, at = s.Clock.Next(d.now())
	return at, s.Channels
}

// Last returns the last scheduled digest and its local day. If there is none yet, it returns
// ErrNotFound.
func (d *Digester) Last(ctx context.Context) (string, deadletter.Digest, error) {
	return d.store.LastDigest(ctx)
}
