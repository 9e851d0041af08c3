package web

import (
	"context"
	"strings"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// listQueues returns the queues that letters died in, with what keeps their retries back, and the
// inboxes. They are sorted by broker, vhost and name. Depth and consumers are what the management
// API of the broker says, a few seconds old, and null where they are unknown: it does not answer
// within 2 s, there is none, or the queue is none of the first 100 inboxes and queues of the
// answer.
func (w *Web) listQueues(ctx context.Context, _ *struct{}) (*reply[api.Queues], error) {
	all, err := w.queueStates(ctx)
	if err != nil {
		return nil, err
	}
	inboxes, _ := w.askFacts(ctx, all)
	return &reply[api.Queues]{api.Queues{Queues: all, Inboxes: inboxes}}, nil
}

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
	g := deadletter.Guard{Group: id, Why: strings.TrimSpace(in.Body.Reason)}
	if err := do(ctx, principal(ctx), g); err != nil {
		return nil, err
	}
	return answer(w.guardOf(ctx, g))
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
