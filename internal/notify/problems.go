package notify

import (
	"context"
	"log/slog"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Outstanding is what the watch of problems needs of the store.
type Outstanding interface {
	Tell(ctx context.Context, n deadletter.Notice) error
	OpenProblems(ctx context.Context) (map[string]deadletter.Notice, error) // people were told, and not that it is over; by key
}

// Problems tells people what keeps dlo itself from its work: once while it lasts, and once when it
// is over. What people were told outlives a restart.
type Problems struct {
	Store    Outstanding
	Now      func() []deadletter.Problem // that there are now
	Channels func() []string             // who is told
	Log      *slog.Logger
	Clock    func() time.Time

	since map[string]time.Time // when it was seen first, or, where people were told of it, missed first
}

const (
	problemLasts = 20 * time.Second // before people are told
	problemOver  = time.Minute      // before they are told that it is over
	problemsLook = 5 * time.Second
)

// Run looks at the problems until ctx ends.
func (p *Problems) Run(ctx context.Context) error {
	for {
		if err := p.Step(ctx); err != nil && ctx.Err() == nil {
			p.Log.Error("problems", "err", err)
		}
		select {
		case <-time.After(problemsLook):
		case <-ctx.Done():
			return nil
		}
	}
}

// Step tells what has lasted for long enough, and what has been over for long enough.
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
		n := deadletter.Notice{Kind: deadletter.NoticeProblem, Key: key, Severity: problem.Severity, Text: text, Channels: p.Channels()}
		if err := p.Store.Tell(ctx, n); err != nil {
			return err
		}
		delete(since, key)
	}
	for key, n := range open {
		if there[key] || !lasted(key, problemOver) {
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
