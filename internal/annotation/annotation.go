// Package annotation takes in what consumers say of the messages that they reject, from the queues
// of the brokers and from the API. It stores it under the masks, counts it, and takes away what is
// over. It does not decide anything about a letter.
package annotation

import (
	"context"
	"log/slog"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/prometheus/client_golang/prometheus"
)

// Store is what the intake needs of the store.
type Store interface {
	Annotate(ctx context.Context, list []deadletter.Annotation) (deadletter.Annotated, error)
	PruneAnnotations(ctx context.Context) (int, error)
}

// Options are the settings of an Intake.
type Options struct {
	Mask   func(text string) string // hides what may not be seen in the name of a reporter
	Joined func()                   // called when letters have to be read again, as annotations of them came in
	Log    *slog.Logger
}

// Intake takes annotations in. Safe for concurrent use.
type Intake struct {
	store Store
	o     Options
	total *prometheus.CounterVec
}

// New returns an Intake and registers its metric.
func New(store Store, o Options, registry prometheus.Registerer) *Intake {
	i := &Intake{store: store, o: o, total: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "dlo_annotations_total", Help: "Annotations of consumers: new ones, repeated ones, those in the queue that could not be read, and the letters that waited for one.",
	}, []string{"outcome"})}
	registry.MustRegister(i.total)
	for _, outcome := range []string{"new", "again", "joined", "refused"} {
		i.total.WithLabelValues(outcome)
	}
	return i
}

// Annotate stores annotations and has the letters read again that they are of.
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

// Refused counts an annotation out of a queue that could not be read.
func (i *Intake) Refused() { i.total.WithLabelValues("refused").Inc() }

const pruneEvery = time.Minute

// Run takes away annotations that nothing can join any more, until ctx ends.
func (i *Intake) Run(ctx context.Context) error {
	for {
		if _, err := i.store.PruneAnnotations(ctx); err != nil && ctx.Err() == nil {
			i.o.Log.Error("annotations", "err", err)
		}
		select {
		case <-time.After(pruneEvery):
		case <-ctx.Done():
			return nil
		}
	}
}
