package notify

import (
	"context"
	"log/slog"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Outstanding is the part of the store that the type Problems needs.
type Outstanding interface {
	Tell(ctx context.Context, n deadletter.Notice) error
	// returns the problems that were reported but not yet reported as over, by key
	OpenProblems(ctx context.Context) (map[string]deadletter.Notice, error)
}

// Problems notifies people about problems that prevent dlo itself from working. It notifies them
// once when a problem has lasted for a while, and once when the problem is over. After a restart,
// it still knows about which problems people were notified.
type Problems struct {
	Store Outstanding
	Now   func() []deadletter.Problem // returns the problems that exist now
	// returns the keys of problems that may or may not have ended; nil = there are no such problems
	Unknown  func() map[string]bool
	Channels func() []string // returns the names of the channels
	Log      *slog.Logger
	Clock    func() time.Time

	// time at which a new problem was first seen, or at which a reported problem was first missing,
	// by key
	since map[string]time.Time
}

const (
	problemLasts = 20 * time.Second // a problem must last this long before people are notified
	problemOver  = time.Minute      // a problem must be over for this long before people are notified of its end
	problemsLook = 5 * time.Second
)

// Run looks for problems until ctx ends.
func (p *Problems) Run(ctx context.Context) error {
	for {
		if err := p.Step(ctx); err != nil && ctx.Err() == nil {
			p.Log.Error("checking for problems failed", "err", err)
		}
		select {
		case <-time.After(problemsLook):
		case <-ctx.Done():
			return nil
		}
	}
}

// Step notifies people about problems that have lasted long enough, and about problems that have
// been over long enough.
func (p *Problems) Step(ctx context.Context) error {
	open, err := p.Store.OpenProblems(ctx)
	if err != nil {
		return err
	}
	now, since := p.Clock(), map[string]time.Time{}
	lasted := func(key string, long time.Duration) bool {
		since[key] = now
		if at, ok := p.since[key]; ok {
			since[key] = at
		}
		return now.Sub(since[key]) >= long
	}
	there := map[string]bool{}
	for _, problem := range p.Now() {
		key := problem.Key()
		if there[key] {
			continue
		}
		there[key] = true
		if _, told := open[key]; told || !lasted(key, problemLasts) {
			continue
		}
		text := problem.Title + "\n" + problem.Text
		if problem.Cure != "" {
			text += "\n" + problem.Cure
		}
		n := deadletter.Notice{
			Kind:     deadletter.NoticeProblem,
			Key:      key,
			Severity: problem.Severity,
			Text:     text,
			Channels: p.Channels(),
		}
		if err := p.Store.Tell(ctx, n); err != nil {
			return err
		}
		delete(since, key)
	}
	unknown := map[string]bool{}
	if p.Unknown != nil {
		unknown = p.Unknown()
	}
	for key, n := range open {
		if there[key] || unknown[key] || !lasted(key, problemOver) {
			continue
		}
		n.Kind, n.Text = deadletter.NoticeOver, "It is over: "+n.Text
		if err := p.Store.Tell(ctx, n); err != nil {
			return err
		}
		delete(since, key)
	}
	p.since = since
	return nil
}
