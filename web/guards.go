package web

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/web/view"
)

type guarding = func(context.Context, deadletter.Principal, deadletter.Guard) error

// queueIn names a queue. The broker may be missing if there is only one, and the vhost if the
// broker has only one.
type queueIn struct{ Body api.QueueRequest }

// pauseQueue keeps the automatic retries of a queue back. Letters that are due wait until somebody
// resumes them; what people requeue still goes. 404 for a queue that no letter died in; 409 when
// its retries are paused already: to pause them for another reason, resume them first.
func (w *Web) pauseQueue(ctx context.Context, in *queueIn) (*reply[deadletter.Guard], error) {
	return w.guardQueue(ctx, in.Body, w.pause)
}

// resumeQueue lets the automatic retries of a queue go on. Where the breaker had tripped, they
// begin slowly. 409 when nothing keeps them back. A paused group of the queue stays paused.
func (w *Web) resumeQueue(ctx context.Context, in *queueIn) (*reply[deadletter.Guard], error) {
	return w.guardQueue(ctx, in.Body, w.resume)
}

func (w *Web) guardQueue(ctx context.Context, in api.QueueRequest, do guarding) (*reply[deadletter.Guard], error) {
	if err := w.fillPlace(ctx, &in.Broker, &in.VHost); err != nil {
		return nil, err
	}
	g := deadletter.Guard{
		Origin: deadletter.Origin{Broker: in.Broker, VHost: in.VHost, Queue: in.Queue},
		Why:    strings.TrimSpace(in.Reason),
	}
	return w.guarded(ctx, g, do)
}

// guarded changes a guard, and returns what holds the retries back now.
func (w *Web) guarded(ctx context.Context, g deadletter.Guard, do guarding) (*reply[deadletter.Guard], error) {
	if err := do(ctx, principal(ctx), g); err != nil {
		return nil, err
	}
	return answer(w.guardOf(ctx, g))
}

// reasonIn is a group and a reason.
type reasonIn struct {
	GroupPath
	Body api.ReasonRequest
}

// pauseGroup keeps the automatic retries of a group back. Those of other groups of its queue go on.
// 409 when they are paused already.
func (w *Web) pauseGroup(ctx context.Context, in *reasonIn) (*reply[deadletter.Guard], error) {
	return w.guardGroup(ctx, in, w.pause)
}

// resumeGroup lets the automatic retries of a group go on. 409 when they are not paused. They still
// wait while their queue is.
func (w *Web) resumeGroup(ctx context.Context, in *reasonIn) (*reply[deadletter.Guard], error) {
	return w.guardGroup(ctx, in, w.resume)
}

func (w *Web) guardGroup(ctx context.Context, in *reasonIn, do guarding) (*reply[deadletter.Guard], error) {
	id, err := in.group()
	if err != nil {
		return nil, err
	}
	return w.guarded(ctx, deadletter.Guard{Group: id, Why: strings.TrimSpace(in.Body.Reason)}, do)
}

// guardOf returns what holds back the retries of a queue or a group now. This is a pause by a
// person, or a breaker. If nothing holds them back, the state of the returned guard is empty.
func (w *Web) guardOf(ctx context.Context, wanted deadletter.Guard) (deadletter.Guard, error) {
	guards, err := w.guards(ctx)
	now := deadletter.Guard{Origin: wanted.Origin, Group: wanted.Group}
	for _, g := range guards {
		if g.Group == wanted.Group && (wanted.Group != 0 || g.Origin == wanted.Origin) &&
			now.State != deadletter.GuardPaused {
			now = g
		}
	}
	return now, err
}

// guards returns the queues and groups whose retries a person or a breaker holds back. Masked
// values in titles are replaced.
func (w *Web) guards(ctx context.Context) ([]deadletter.Guard, error) {
	guards, err := w.Store.Guards(ctx)
	for i := range guards {
		guards[i].Title, _ = w.Header("", guards[i].Title)
	}
	return guards, err
}

// pause pauses the automatic retries of a queue or a group. If they are already paused, it returns
// an error that says how to proceed.
func (w *Web) pause(ctx context.Context, by deadletter.Principal, g deadletter.Guard) error {
	_, err := w.Desk.PauseRetries(ctx, by, g)
	if errors.Is(err, deadletter.ErrConflict) {
		return fmt.Errorf("%w; to pause them for another reason, resume them first", err)
	}
	return err
}

// resume resumes the automatic retries of a queue or a group. If nothing has stopped them, it
// returns an error that says so.
func (w *Web) resume(ctx context.Context, by deadletter.Principal, g deadletter.Guard) error {
	err := w.Desk.ResumeRetries(ctx, by, g)
	if errors.Is(err, deadletter.ErrConflict) {
		return fmt.Errorf("%w: there is nothing to resume", err)
	}
	return err
}

// groupGuard returns the state of a group's retries if the query selects the letters of a single
// group. For all other lists, it returns nil.
func (w *Web) groupGuard(ctx context.Context, q query.Query, rows []deadletter.Row) (*view.GroupGuard, error) {
	groups := q.Values(query.Group)
	if len(groups) != 1 || len(rows) == 0 {
		return nil, nil
	}
	id, err := deadletter.ParseGroupID(groups[0])
	if err != nil {
		return nil, nil
	}
	queue := deadletter.Origin{Broker: rows[0].Broker, VHost: rows[0].VHost, Queue: rows[0].Queue}
	v := &view.GroupGuard{Group: id, Away: deadletter.Away(w.brokers(ctx), queue)}
	if v.Guard, err = w.guardOf(ctx, deadletter.Guard{Group: id}); err != nil {
		return nil, err
	}
	v.Queue, err = w.guardOf(ctx, deadletter.Guard{Origin: queue})
	return v, err
}
