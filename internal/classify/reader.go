package classify

import (
	"context"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/payload"
	"github.com/deadletteroffice/dlo/internal/rules"
)

// ReaderStore is what the reader needs of the store.
type ReaderStore interface {
	// ListUnread lists the next letters that are to be read again; more says that there are further
	// ones to look at.
	ListUnread(ctx context.Context) (more bool, err error)
	ClaimUnread(ctx context.Context, n int) ([]deadletter.Letter, error)
	// Rereading notes that a letter is being read, "" that none is any more.
	Rereading(id deadletter.ID) error
	Read(ctx context.Context, list []deadletter.Read) error
}

// Reader reads the bodies of letters again, in the background, after what is known of types has
// changed. It decides nothing: a letter stays what and where it is. What is to be read is in
// the store, so a crash loses none of it.
type Reader struct {
	loop
	store ReaderStore
	c     *Classifier
	read  func() // called after each commit; wakes the indexer
}

// NewReader returns a Reader that reads as c does; Run works.
func NewReader(store ReaderStore, c *Classifier, read func()) *Reader {
	work := loop{wake: make(chan struct{}, 1), busy: c.o.Busy, yield: time.Second, fail: func(err error) { c.o.Log.Error("reading anew", "err", err) }}
	return &Reader{loop: work, store: store, c: c, read: read}
}

// Between runs a change of what is known of types while no letter is classified or read again, and
// then has read what it asked the store for: so no letter is read by what was known before, after
// the store has listed which are to be read again.
func (r *Reader) Between(change func() error) error {
	r.c.types.Lock()
	defer r.c.types.Unlock()
	err := change()
	r.Wake()
	return err
}

// Run reads until ctx ends.
func (r *Reader) Run(ctx context.Context) error {
	r.run(ctx, r.Step)
	return nil
}

// Step lists, or reads one batch, and says whether there was something to do.
func (r *Reader) Step(ctx context.Context) (bool, error) {
	r.c.types.RLock()
	defer r.c.types.RUnlock()
	if more, err := r.store.ListUnread(ctx); more || err != nil {
		return more, err
	}
	letters, err := r.store.ClaimUnread(ctx, batch)
	if err != nil || len(letters) == 0 {
		return false, err
	}
	r.c.o.Crash("read: begun")
	known := r.c.known(ctx)
	list := make([]deadletter.Read, 0, len(letters))
	for i := range letters {
		if ctx.Err() != nil {
			return false, nil
		}
		if err := r.c.inHand(&letters[i], r.store.Rereading, func() { list = append(list, r.c.anewRead(&letters[i], known)) }); err != nil {
			return false, err
		}
	}
	if err := r.store.Read(context.WithoutCancel(ctx), list); err != nil {
		return false, err
	}
	r.c.o.Crash("read: recorded")
	r.read()
	return true, nil
}

// anewRead is what a stored letter is now found to be. Its failure is read again too, under the
// masks of today; it stays where it died. Its rule decided long ago: of that only the group counts,
// as the rule has it now.
func (c *Classifier) anewRead(l *deadletter.Letter, k *known) deadletter.Read {
	v := deadletter.Read{AsOf: l.ChangedAt, Classified: deadletter.Classified{
		Letter: l.ID, Origin: l.Origin, Reason: l.Reason, Error: l.Error, Severity: l.Severity, GroupVersion: GroupVersion,
	}}
	v.DiedAt, v.Channels, v.Tried = l.DiedAt, c.o.Rules.Set().Told(l.Rule), l.Tried()
	group := c.o.Rules.Set().Group(l.Rule)
	v.Unpublishable = unwrap(l, &v.Classified)
	if l.Annotation != nil && l.Error == "" { // it came after the letter was classified
		v.Late = true
	}
	if l.Undecodable() {
		v.Reading = deadletter.ReadCrashed
		said := c.failure(l)
		v.Type = c.named(l, &said)
		f := deadletter.Failure{Message: l.Error}
		if l.Annotation != nil { // what its consumer said needs no look at the body
			f = said
			v.Error = errorLine(&f)
		}
		v.Classified = c.grouped(v.Classified, cause{group: group, failure: f})
		return v
	}
	c.read(l, c.failure(l), &v.Classified, k, func(*payload.Document) rules.Decision { return rules.Decision{Group: group} })
	return v
}
