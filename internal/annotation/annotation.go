// Package annotation accepts the reports of consumers on messages that they rejected. The reports
// come from queues of the brokers and from the API. The package masks, stores and counts them, and
// deletes those that have expired. It makes no decision about a letter.
package annotation

import (
	"context"
	"log/slog"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/prometheus/client_golang/prometheus"
)

// Store contains the methods of the store that an Intake needs.
type Store interface {
	Annotate(ctx context.Context, list []deadletter.Annotation) (deadletter.Annotated, error)
	PruneAnnotations(ctx context.Context) (int, error)
}

// Options contains the settings of an Intake.
type Options struct {
	Mask   func(text string) string // hides masked values in the name of a reporter
	Joined func()                   // called when letters must be read again because of new annotations
	Log    *slog.Logger
}

// Intake accepts annotations. It is safe for concurrent use.
type Intake struct {
	store Store
	o     Options
	total *prometheus.CounterVec
}

// New returns an Intake and registers its metric.
func New(store Store, o Options, registry prometheus.Registerer) *Intake {
	i := &Intake{store: store, o: o, total: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "dlo_annotations_total",
		Help: "Annotations of consumers: new ones, repeated ones, those in the queue that could not be read, and the letters that waited for one.",
	}, []string{"outcome"})}
	registry.MustRegister(i.total)
	for _, outcome := range []string{"new", "again", "joined", "refused"} {
		i.total.WithLabelValues(outcome)
	}
	return i
}

// Annotate stores annotations and requests that their letters be read again.
func (i *Intake) Annotate(ctx context.Context, list []deadletter.Annotation) (deadletter.Annotated, error) {
	for k := range list {
		f := list[k].Failure()
		list[k].By = i.o.Mask(f.Reporter())
	}
	sum, err := i.store.Annotate(ctx, list)
	for outcome, n := range map[string]int{"new": sum.New, "again": sum.Again, "joined": sum.Joined} {
		i.total.WithLabelValues(outcome).Add(float64(n))
	}
	if sum.Joined > 0 {
		i.o.Joined()
	}
	return sum, err
}

// Refused counts an annotation that came from a queue and could not be read.
func (i *Intake) Refused() { i.total.WithLabelValues("refused").Inc() }

const pruneEvery = time.Minute

// Run deletes annotations that can no longer explain a letter. It runs until ctx ends.
func (i *Intake) Run(ctx context.Context) error {
	for {
		if _, err := i.store.PruneAnnotations(ctx); err != nil && ctx.Err() == nil {
			i.o.Log.Error("old annotations could not be deleted", "err", err)
		}
		select {
		case <-time.After(pruneEvery):
		case <-ctx.Done():
			return nil
		}
	}
}
