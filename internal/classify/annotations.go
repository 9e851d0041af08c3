package classify

import (
	"context"
	"slices"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// reports contains, for each letter of a batch, the annotations that may describe the letter's
// death. The most certain ones come first, then the newest. It also contains the ids of the
// annotations that have been used.
type reports struct {
	of    map[deadletter.ID][]deadletter.Annotation
	taken map[int64]bool
}

// loadReports returns the annotations that consumers sent about the letters of a batch. If the
// annotations cannot be loaded, the letters are read without them. The store then joins the
// annotations to the letters when it records the verdicts.
func (c *Classifier) loadReports(ctx context.Context, letters []deadletter.Letter) *reports {
	found, err := c.store.Annotations(ctx, letters)
	if err != nil {
		c.o.Log.Error("annotations of letters cannot be read", "err", err)
	}
	return &reports{found, map[int64]bool{}}
}

// annotate looks for an annotation that describes the death of the letter l. If it finds one, it
// records the annotation in the letter and in the verdict, and returns true. It takes the first
// annotation that fits the death and that no other letter of the batch has used. If an annotation
// describes many deaths, several letters can use it. An annotation takes precedence over headers,
// because it describes exactly this death. A letter gets no annotation if it already has one, or if
// another dlo decided on it.
func (s *reports) annotate(l *deadletter.Letter, v *deadletter.Classified) bool {
	if l.Annotation != nil || l.Imported != "" || len(s.of[l.ID]) == 0 {
		return false
	}
	k := l.DeathKeys()
	i := slices.IndexFunc(
		s.of[l.ID], func(a deadletter.Annotation) bool { return (a.Many() || !s.taken[a.ID]) && a.Fits(k, v.Origin) },
	)
	if i < 0 {
		return false
	}
	a := &s.of[l.ID][i]
	f := a.Failure()
	l.Annotation, v.Annotation, s.taken[a.ID] = &f, a.ID, true
	return true
}

// recordUnexplained records the message id and the other values that identify a death, if the
// reason of the death is not known. An annotation that arrives later can then be matched to the
// death.
func recordUnexplained(l *deadletter.Letter, v *deadletter.Classified) {
	if v.Error == "" && l.Annotation == nil && l.Imported == "" {
		v.Unexplained = l.DeathKeys()
	}
}

// annotatedFailure masks the failure that a consumer describes in an annotation, and returns it. If
// the consumer sent only a stack, the first line of the stack becomes the message.
func (c *Classifier) annotatedFailure(a *deadletter.Failure) deadletter.Failure {
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
