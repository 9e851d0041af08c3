package classify

import (
	"context"
	"slices"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// said are the annotations that the letters of one batch may take, the surest and newest first, and which were taken.
type said struct {
	of    map[deadletter.ID][]deadletter.Annotation
	taken map[int64]bool
}

// said asks the store what consumers said of a batch. Without an answer letters are read without it: what was said is joined when they are recorded.
func (c *Classifier) said(ctx context.Context, letters []deadletter.Letter) *said {
	found, err := c.store.Annotations(ctx, letters)
	if err != nil {
		c.o.Log.Error("classify", "err", err)
	}
	return &said{found, map[int64]bool{}}
}

// annotate gives a letter what its consumer said of this death, the newest that nobody else has; an annotation is of this very death, so it wins over headers. A letter that was decided
// elsewhere, or that cannot be read, has none.
func (s *said) annotate(l *deadletter.Letter, v *deadletter.Classified) {
	if l.Annotation != nil || l.Imported != "" || len(s.of[l.ID]) == 0 {
		return
	}
	k := l.DeathKeys()
	i := slices.IndexFunc(s.of[l.ID], func(a deadletter.Annotation) bool { return (a.Many() || !s.taken[a.ID]) && a.Fits(k, v.Origin) })
	if i < 0 {
		return
	}
	a := &s.of[l.ID][i]
	f := a.Failure()
	l.Annotation, v.Annotation, s.taken[a.ID] = &f, a.ID, true
}

// unexplained notes the keys of a death that nothing says the reason of, for an annotation that comes later.
func unexplained(l *deadletter.Letter, v *deadletter.Classified) {
	if v.Error == "" && l.Annotation == nil && l.Imported == "" {
		v.Unexplained = l.DeathKeys()
	}
}

// failureText returns what went wrong, masked and on one line: in the words of the consumer, else in those of the headers; "" when nothing says.
func (c *Classifier) failureText(l *deadletter.Letter) string {
	if l.Annotation != nil {
		return c.annotationText(l.Annotation)
	}
	return c.errorText(l.Arrived.Headers)
}

func (c *Classifier) annotationText(f *deadletter.Failure) string {
	class, message := c.masked("", f.Type), c.masked("", f.Message)
	switch {
	case class == "" && message == "":
		first, _, _ := strings.Cut(strings.TrimSpace(f.Stack), "\n")
		return c.masked("", strings.TrimSpace(first))
	case message == "", message == class:
		return class
	case class == "", strings.HasPrefix(message, class+": "):
		return message
	}
	return deadletter.Cut(class+": "+message, maxError)
}

// Wake looks at once for letters that are to be read anew.
func (r *Reader) Wake() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}
