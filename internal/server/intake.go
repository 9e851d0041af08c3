package server

import (
	"context"

	"github.com/deadletteroffice/dlo/internal/annotation"
	"github.com/deadletteroffice/dlo/internal/config"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/drain"
	"github.com/deadletteroffice/dlo/internal/ingest"
	"github.com/deadletteroffice/dlo/internal/rabbitmq"
	"github.com/deadletteroffice/dlo/internal/store"
)

// createIntake creates the components that receive letters: from inboxes all the time, and from
// other queues once.
func (s *Server) createIntake() {
	cfg := s.cfg
	taking := ingest.Options{
		Uncertain:   cfg.Ingest.Uncertain,
		Horizon:     cfg.Ingest.Horizon,
		HorizonRows: cfg.Ingest.HorizonRows,
		Room:        s.space.Room,
		Stored:      s.classifier.Wake,
		CameBack:    s.cameBack,
		Crash:       s.crash,
		Log:         s.log,
		Metrics:     s.counters.ingest,
	}
	limits := rabbitmq.Limits{Letters: cfg.Ingest.Letters, Bytes: int(cfg.Ingest.Bytes), Linger: cfg.Ingest.Linger}
	var drained []drain.Broker
	for i, b := range cfg.Brokers {
		link := s.links[i]
		of := func(queue, origin string) ingest.Options {
			o := taking
			o.Broker, o.VHost, o.Inbox, o.Origin, o.Same = b.Name, link.VHost(), queue, origin, namesOf(
				cfg.Brokers, b.Place(),
			)
			return o
		}
		for _, q := range b.Inboxes {
			s.ingesters = append(s.ingesters, ingest.New(s.store, link.Inbox(q, limits), of(q, b.Origins[q])))
		}
		drained = append(drained, drain.Broker{
			Name:        b.Name,
			VHost:       link.VHost(),
			Place:       b.Place(),
			Inboxes:     b.Inboxes,
			Drained:     inboxesAt(cfg.Brokers, b.Place()),
			Annotations: annotationsAt(cfg.Brokers, b.Place()),
			Inspect:     link.Inspect,
			Open: func(queue, origin string, count int, say func(string)) drain.Queue {
				return ingest.NewOnce(s.store, link.Once(queue, limits, say), of(queue, origin), count, say)
			},
		})
	}
	s.Drains = drain.New(s.store, drained, s.targets, s.log)
}

// newAnnotations returns the component that receives annotations, by the masks that apply at that
// time.
func (p *process) newAnnotations() *annotation.Intake {
	return annotation.New(p.store, annotation.Options{
		Mask:   func(text string) string { shown, _ := p.current.Load().masks.Text(text); return shown },
		Joined: func() { p.current.Load().reader.Wake() },
		Log:    p.log,
	}, p.lasting)
}

// annotationLoops returns the functions that run in the background and read annotations. There is
// one function for each queue of annotations, even if several broker entries name the same queue.
func (s *Server) annotationLoops() []func(context.Context) error {
	loops := []func(context.Context) error{s.annotations.Run}
	drained := map[[2]string]bool{}
	for i, b := range s.cfg.Brokers {
		queue := [2]string{b.Place(), b.Annotations}
		if b.Annotations == "" || drained[queue] {
			continue
		}
		drained[queue] = true
		loops = append(loops, func(ctx context.Context) error {
			return s.links[i].Annotations(ctx, rabbitmq.Annotations{
				Queue: b.Annotations, Crash: s.crash, Refused: s.annotations.Refused,
				Take: func(ctx context.Context, list []deadletter.Annotation) error {
					_, err := s.annotations.Annotate(ctx, list)
					return err
				},
			})
		})
	}
	return loops
}

// newSpace returns the Space that watches the disk of the store. Each inbox may have one window of
// letters on its way. The parameter "reserve" is the size of the reserve file in bytes.
func newSpace(cfg *config.Config, reserve int64) *store.Space {
	return store.NewSpace(cfg.Store, cfg.Disk.StopBelow, cfg.Disk.StopBelowPercent, reserve, coming(cfg))
}

// coming returns how many bytes of letters may be on their way.
func coming(cfg *config.Config) (bytes int64) {
	for _, b := range cfg.Brokers {
		bytes += int64(len(b.Inboxes)) * cfg.Ingest.Bytes
	}
	return bytes
}
