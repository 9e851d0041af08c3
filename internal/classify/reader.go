package classify

import (
	"context"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/payload"
	"github.com/deadletteroffice/dlo/internal/rules"
)

// ReaderStore is the part of the store that the reader needs.
type ReaderStore interface {
	// ListUnread lists the next letters that must be read again. The result "more" is true if there
	// may be further letters to list.
	ListUnread(ctx context.Context) (more bool, err error)
	NextUnread(ctx context.Context, n int) ([]deadletter.Letter, error)
	// Rereading stores the id of the letter that is being read again, or "" if no letter is being
	// read.
	Rereading(id deadletter.ID) error
	Read(ctx context.Context, list []deadletter.Read) error
}

// Reader reads the bodies of stored letters again, in the background, after the known types have
// changed. It makes no decisions, so each letter keeps its state and its origin. The list of
// letters to read is in the store, so nothing is lost in a crash.
type Reader struct {
	loop
	store ReaderStore
	c     *Classifier
	read  func() // called after each commit; wakes the indexer
}

// NewReader returns a Reader that reads letters as the classifier c does. Call Run to start it.
func NewReader(store ReaderStore, c *Classifier, read func()) *Reader {
	work := loop{
		wake:  make(chan struct{}, 1),
		busy:  c.o.Busy,
		yield: time.Second,
		fail:  func(err error) { c.o.Log.Error("decoding letters again failed", "err", err) },
	}
	return &Reader{loop: work, store: store, c: c, read: read}
}

// Between runs the function "change", which may change the known types and may tell the store to
// read letters again. While it runs, no letter is classified or read. Therefore, all letters that
// are read after Between are read with the new types. At the end, Between wakes the reader.
func (r *Reader) Between(change func() error) error {
	r.c.types.Lock()
	defer r.c.types.Unlock()
	err := change()
	r.Wake()
	return err
}

// Run reads letters until ctx ends.
func (r *Reader) Run(ctx context.Context) error {
	r.run(ctx, r.Step)
	return nil
}

// Step does the next piece of work: it lists letters that must be read again, or reads one batch of
// them. It reports whether there was anything to do.
func (r *Reader) Step(ctx context.Context) (bool, error) {
	r.c.types.RLock()
	defer r.c.types.RUnlock()
	if more, err := r.store.ListUnread(ctx); more || err != nil {
		return more, err
	}
	letters, err := r.store.NextUnread(ctx, batch)
	if err != nil || len(letters) == 0 {
		return false, err
	}
	r.c.o.Crash("read: begun")
	known := r.c.loadKnown(ctx)
	list := make([]deadletter.Read, 0, len(letters))
	for i := range letters {
		if ctx.Err() != nil {
			return false, nil
		}
		if err := r.c.inHand(
			&letters[i], r.store.Rereading, func() { list = append(list, r.c.readAgain(&letters[i], known)) },
		); err != nil {
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

// readAgain returns the result of reading a stored letter again. It reads the failure of the letter
// with the current masks. The origin of the letter stays the same. readAgain does not apply the
// rule of the letter again, except that the letter gets the group that the rule assigns now.
func (c *Classifier) readAgain(l *deadletter.Letter, k *known) deadletter.Read {
	v := deadletter.Read{AsOf: l.ChangedAt, Classified: deadletter.Classified{
		Letter:       l.ID,
		Origin:       l.Origin(),
		Reason:       l.Reason,
		Error:        l.Error,
		Severity:     l.Severity,
		GroupVersion: GroupVersion,
	}}
	v.DiedAt, v.Channels, v.Tried = l.DiedAt, c.o.Rules.Set().Told(l.Rule), l.Tried()
	group := c.o.Rules.Set().Group(l.Rule)
	v.Unpublishable = unwrap(l, &v.Classified)
	if l.Annotation != nil && l.Error == "" { // the annotation arrived after the letter was classified
		v.Late = true
	}
	if l.Undecodable() {
		v.Reading = deadletter.ReadCrashed
		said := c.failure(l)
		v.Type = c.frameworkType(l, &said)
		f := deadletter.Failure{Message: l.Error}
		if l.Annotation != nil { // an annotation can be used although the body is not decoded
			f = said
			v.Error = errorLine(&f)
		}
		v.Classified = c.withGroup(l, v.Classified, cause{group: group, failure: f})
		return v
	}
	c.read(
		l, c.failure(l), &v.Classified, k,
		func(*payload.Document) rules.Decision { return rules.Decision{Group: group} },
	)
	return v
}
