package web

import (
	"net/http"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/payload"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/web/view"
)

const sampled = 5 // number of letters for which the effect of a patch is shown

// addSamples adds to the page what a patch does to the newest letters of a selection. If the patch
// has a mistake, it is shown at the field of the patch.
func (w *Web) addSamples(r *http.Request, p *view.ConfirmPage, sel query.Selection, patch []byte) error {
	ctx, ids := r.Context(), sel.IDs
	if sel.Query != nil {
		rows, _, _, err := w.Store.Letters(ctx, *sel.Query, deadletter.Page{Limit: sampled})
		if err != nil {
			return err
		}
		for _, row := range rows {
			ids = append(ids, row.ID)
		}
	}
	for _, id := range ids[:min(len(ids), sampled)] {
		l, err := w.Store.Letter(ctx, id)
		if err != nil {
			return err
		}
		if err := deadletter.Allow(principal(r.Context()), deadletter.VerbEdit, l.Place()); err != nil {
			return err
		}
		_, body := l.Current()
		s := view.ConfirmSample{Letter: id}
		var e *payload.Edited
		if waited := w.runHeavy(ctx, func() {
			d := w.Decoder()
			h := d.HintsOf(&l)
			// before the patch, whose mistakes tell what the letter contains
			if d.Decode(body, h, nil).Masked {
				err = deadletter.Allow(principal(r.Context()), deadletter.VerbReveal, l.Place())
			}
			if err == nil {
				e, err = d.Patch(body, h, patch, nil)
			}
		}); waited != nil {
			return waited
		}
		switch {
		case err != nil:
			s.Problem = err.Error()
		case len(e.Changed) == 0:
			s.Problem = "nothing would change"
		default:
			s.Diff = fitDiff(e.MaskedDiff, diffOfMany)
		}
		p.Samples = append(p.Samples, s)
	}
	return nil
}
