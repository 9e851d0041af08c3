package web

import (
	"context"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/web/view"
)

// consumersOf is the maximum number of queues whose consumers a sentence about letters in retry
// needs.
const consumersOf = 3

// inRetry returns what pages say about the letters in retry. It asks the brokers about the queues
// with the most of these letters, and does not wait long for the answers.
func (w *Web) inRetry(ctx context.Context) (view.InRetry, error) {
	found, err := w.Store.InRetry(ctx)
	in := view.InRetry{InRetry: found}
	brokers := w.brokers(ctx)
	var ask []deadletter.Origin
	for _, q := range found.Queues[:min(len(found.Queues), consumersOf)] {
		if q.Queue != "" && deadletter.Away(brokers, q) == "" {
			ask = append(ask, q)
		}
	}
	if len(ask) == 0 {
		return in, err
	}
	for i, f := range w.depths.factsOf(ctx, w.Facts, ask, askedBriefly) {
		if f.Known && f.Exists && f.Consumers == 0 {
			in.Unconsumed = append(in.Unconsumed, ask[i].Queue)
		}
	}
	return in, err
}
