package drill

import (
	"context"
	"errors"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// goneFailures lists the failures in which the broker lacks an object that dlo needs, for example a
// queue, a binding or a marker. To cause such a failure, the drill deletes the object. dlo declares
// some of these objects again automatically, but still reports the problem for a day. The drill
// therefore considers such a failure cured as soon as the object exists again.
var goneFailures = []Failure{
	{
		Name: "inbox-deleted", Does: "dlo's own inbox is deleted", own: "drill.inbox-deleted", cure: byItself,
		wants: sign{
			kind:     deadletter.ProblemInboxDeleted,
			severity: deadletter.SeverityPage,
			about:    "drill.inbox-deleted",
		},
		make: func(ctx context.Context, g *ground) error { return g.site.drop(ctx, "queues", "drill.inbox-deleted") },
		mended: func(ctx context.Context, g *ground) bool {
			return g.site.isBound(ctx, "drill.inbox-deleted") && g.drains("drill.inbox-deleted")
		},
	},
	{
		Name: "inbox-gone", Does: "a further inbox is deleted; it is declared again", inbox: "drill.inbox-gone",
		wants: sign{
			kind:     deadletter.ProblemInboxNotRead,
			severity: deadletter.SeverityPage,
			about:    "drill.inbox-gone",
			says:     "there is no queue drill.inbox-gone; declare it",
		},
		make: func(ctx context.Context, g *ground) error { return g.site.drop(ctx, "queues", "drill.inbox-gone") },
		cure: func(ctx context.Context, g *ground, _ problem) error { return g.site.declare(ctx, "drill.inbox-gone") },
	},
	{
		Name: "binding", Does: "the binding of dlo's own inbox is deleted", own: "drill.binding", cure: byItself,
		wants: sign{kind: deadletter.ProblemInboxUnbound, severity: deadletter.SeverityPage, about: "drill.binding"},
		make: func(ctx context.Context, g *ground) error {
			return g.site.Do(ctx, "DELETE", g.site.bindings("drill.binding")+"/~", nil, nil)
		},
		mended: func(ctx context.Context, g *ground) bool { return g.site.isBound(ctx, "drill.binding") },
	},
	{
		Name:  "exchange",
		Does:  "the dead-letter exchange of dlo's own inbox is deleted",
		own:   "drill.exchange",
		cure:  byItself,
		wants: sign{kind: deadletter.ProblemInboxUnbound, severity: deadletter.SeverityPage, about: "drill.exchange"},
		make: func(ctx context.Context, g *ground) error {
			return g.site.drop(
				ctx, "exchanges", "drill.exchange.dlx",
			)
		},
		mended: func(ctx context.Context, g *ground) bool { return g.site.isBound(ctx, "drill.exchange") },
	},
	{
		Name: "marker",
		Does: "the marker of an inbox is deleted, and its connection closed",
		own:  "drill.marker",
		cure: byItself,
		wants: sign{
			kind:     deadletter.ProblemOwnQueue,
			severity: deadletter.SeverityNotify,
			broker:   entryOf("drill.marker"),
			says:     "The marker of inbox drill.marker was gone.",
		},
		make:   func(ctx context.Context, g *ground) error { return g.site.deleteMarker(ctx, "drill.marker") },
		mended: func(ctx context.Context, g *ground) bool { return g.drains("drill.marker") },
	},
}

// byItself is the cure of failures that dlo repairs automatically. It does nothing.
func byItself(context.Context, *ground, problem) error { return nil }

// drains reports whether the main dlo drains an inbox.
func (g *ground) drains(inbox string) bool {
	o := g.office(mainOffice)
	return o != nil && o.lastLook().inboxes[inbox]
}

// bindings returns the path in the management API for the bindings between an inbox and its
// exchange. It works only for an inbox with a broker entry of its own, because such an inbox has an
// exchange of its own.
func (s *site) bindings(inbox string) string {
	return s.apiPath("bindings", "e", inbox+".dlx", "q", inbox)
}

func (s *site) isBound(ctx context.Context, inbox string) bool {
	var list []struct{ Source string }
	return s.Do(ctx, "GET", s.bindings(inbox), nil, &list) == nil && len(list) > 0
}

// deleteMarker deletes the marker of an inbox. dlo looks for the marker only when a session of the
// inbox starts. Therefore deleteMarker also closes the connection of the current session, so that
// dlo starts a new one.
func (s *site) deleteMarker(ctx context.Context, inbox string) error {
	if err := s.dropNamed(ctx, deadletter.MarkerPrefix(inbox)); err != nil {
		return err
	}
	return s.cutNamed(ctx, "inbox "+inbox)
}

// dropNamed deletes all queues whose names begin with the prefix. If there is none, it returns an
// error.
func (s *site) dropNamed(ctx context.Context, prefix string) error {
	list, err := s.queuesNamed(ctx, prefix)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		return errors.New("there is no queue " + prefix + "*")
	}
	for _, name := range list {
		if err := s.drop(ctx, "queues", name); err != nil {
			return err
		}
	}
	return nil
}

// cutNamed waits until the management API lists connections whose names contain the given text, and
// closes them.
func (s *site) cutNamed(ctx context.Context, named string) error {
	var failed error
	err := waitUntil(ctx, "the API lists the connection", Limit/4, func() bool {
		n, err := s.cutConnections(ctx, named)
		failed = err
		return n > 0
	})
	return errors.Join(err, failed)
}
