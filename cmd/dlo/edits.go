package main

import (
	"errors"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/payload"
)

// patched makes a revision of a letter by a patch on its decoded body, for an edit of many.
func (s *server) patched(l *deadletter.Letter, patch []byte) (deadletter.Revision, error) {
	properties, body := l.Current()
	budget := payload.NewBudget()
	budget.Bytes = int64(s.cfg.Requeue.MaxBody)
	e, err := s.decoderNow().Patch(body, payload.HintsOf(l), patch, budget)
	if err != nil {
		return deadletter.Revision{}, err
	}
	if len(e.Changed) == 0 {
		return deadletter.Revision{}, errors.New("nothing of it would change")
	}
	clean := deadletter.Sanitise
	if l.Revised != nil {
		clean = deadletter.Resent
	}
	properties, _ = clean(properties)
	return deadletter.Revision{Letter: l.ID, Number: l.Revision + 1, Properties: properties, Body: e.Body, Changes: strings.Join(e.Changed, "; ")}, nil
}
