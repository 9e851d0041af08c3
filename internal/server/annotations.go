package server

import (
	"context"
	"slices"
	"time"

	"github.com/deadletteroffice/dlo/internal/config"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/rabbitmq"
	"github.com/prometheus/client_golang/prometheus"
)

// annotations takes what consumers say of their rejects, out of the queues of the brokers and through the API.
type annotations struct {
	s     *Server
	crash func(point string)
	total *prometheus.CounterVec
}

func newAnnotations(s *Server, crash func(string)) *annotations {
	a := &annotations{s: s, crash: crash, total: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "dlo_annotations_total", Help: "Annotations of consumers: new ones, those that were said again, those out of the queue that could not be read, and the letters that waited for one.",
	}, []string{"outcome"})}
	s.Registry.MustRegister(a.total)
	for _, outcome := range []string{"new", "again", "joined", "refused"} {
		a.total.WithLabelValues(outcome)
	}
	return a
}

// Annotate stores annotations and has the letters read anew that they are of.
func (a *annotations) Annotate(ctx context.Context, list []deadletter.Annotation) (deadletter.Annotated, error) {
	for i := range list {
		f := list[i].Failure()
		list[i].By, _ = a.s.masks.Text(f.Reporter())
	}
	sum, err := a.s.store.Annotate(ctx, list)
	for outcome, n := range map[string]int{"new": sum.New, "again": sum.Again, "joined": sum.Joined} {
		a.total.WithLabelValues(outcome).Add(float64(n))
	}
	if sum.Joined > 0 {
		a.s.reader.Wake()
	}
	return sum, err
}

// loops drain the queues, each once whichever entries name it, and take away what is over.
func (a *annotations) loops() []func(context.Context) error {
	loops := []func(context.Context) error{a.prune}
	drained := map[[2]string]bool{}
	for i, b := range a.s.cfg.Brokers {
		queue := [2]string{b.Place(), b.Annotations}
		if b.Annotations == "" || drained[queue] {
			continue
		}
		drained[queue] = true
		loops = append(loops, func(ctx context.Context) error {
			return a.s.links[i].Annotations(ctx, rabbitmq.Annotations{
				Queue: b.Annotations, Crash: a.crash, Refused: func() { a.total.WithLabelValues("refused").Inc() },
				Take: func(ctx context.Context, list []deadletter.Annotation) error {
					_, err := a.Annotate(ctx, list)
					return err
				},
			})
		})
	}
	return loops
}

const pruneEvery = time.Minute

func (a *annotations) prune(ctx context.Context) error {
	for {
		if _, err := a.s.store.PruneAnnotations(ctx); err != nil && ctx.Err() == nil {
			a.s.log.Error("annotations", "err", err)
		}
		select {
		case <-time.After(pruneEvery):
		case <-ctx.Done():
			return nil
		}
	}
}

// annotationsAt returns the queues of annotations of a broker and vhost: no letter is requeued to one, and none is drained.
func annotationsAt(brokers []config.Broker, place string) []string {
	var queues []string
	for _, b := range brokers {
		if b.Place() == place && b.Annotations != "" && !slices.Contains(queues, b.Annotations) {
			queues = append(queues, b.Annotations)
		}
	}
	return queues
}

// places maps each broker to the first entry that leads to its broker and vhost.
func places(brokers []config.Broker) map[string]string {
	names, first := map[string]string{}, map[string]string{}
	for _, b := range brokers {
		if first[b.Place()] == "" {
			first[b.Place()] = b.Name
		}
		names[b.Name] = first[b.Place()]
	}
	return names
}
