package classify

import (
	"context"
	"slices"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// reports are the annotations that the letters of one batch may take, the surest and newest first,
// and which were taken.
type reports struct {
	of    map[deadletter.ID][]deadletter.Annotation
	taken map[int64]bool
}

// reports asks the store what consumers said of a batch. Without an answer letters are read without
// it: what was said is joined when they are recorded.
func (c *Classifier) reports(ctx context.Context, letters []deadletter.Letter) *reports {
	found, err := c.store.Annotations(ctx, letters)
	if err != nil {
		c.o.Log.Error("classify", "err", err)
	}
	return &reports{found, map[int64]bool{}}
}

// annotate gives a letter what its consumer said of this death, the newest that nobody else has; an
// annotation is of this very death, so it wins over headers. A letter that was decided elsewhere,
// or that cannot be read, has none. It says whether it did.
func (s *reports) annotate(l *deadletter.Letter, v *deadletter.Classified) bool {
	if l.Annotation != nil || l.Imported != "" || len(s.of[l.ID]) == 0 {
		return false
	}
	k := l.DeathKeys()
	i := slices.IndexFunc(s.of[l.ID], func(a deadletter.Annotation) bool { return (a.Many() || !s.taken[a.ID]) && a.Fits(k, v.Origin) })
	if i < 0 {
		return false
	}
	a := &s.of[l.ID][i]
	f := a.Failure()
	l.Annotation, v.Annotation, s.taken[a.ID] = &f, a.ID, true
	return true
}

// unexplained notes the keys of a death that nothing says the reason of, for an annotation that
// comes later.
func unexplained(l *deadletter.Letter, v *deadletter.Classified) {
	if v.Error == "" && l.Annotation == nil && l.Imported == "" {
		v.Unexplained = l.DeathKeys()
	}
}

// annotated is what a consumer said of a death, masked. Who says nothing but a stack is taken at
// its first line.
func (c *Classifier) annotated(a *deadletter.Failure) deadletter.Failure {
	f := *a
	for _, text := range []*string{&f.Type, &f.Message, &f.Stack} {
		if c.o.Mask != nil {
			*text, _ = c.o.Mask("", *text)
		}
	}
	switch rest, repeated := strings.CutPrefix(f.Message, f.Type+": "); {
	case f.Type == "" && f.Message == "":
		f.Message, _, _ = strings.Cut(strings.TrimSpace(f.Stack), "\n")
	case f.Message == f.Type:
		f.Message = ""
	case f.Type != "" && repeated:
		f.Message = rest
	}
	return f
}
