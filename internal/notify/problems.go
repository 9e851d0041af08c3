package notify

import (
	"context"
	"log/slog"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Outstanding is the part of the store that Problems needs.
type Outstanding interface {
	Tell(ctx context.Context, n deadletter.Notice) error
	OpenProblems(ctx context.Context) (map[string]deadletter.Notice, error) // reported problems that have not been reported as over, by key
}

// Problems notifies people of problems that prevent dlo itself from working: once while a problem
// lasts, and once when it is over. A restart does not forget which problems people were told about.
type Problems struct {
	Store    Outstanding
	Now      func() []deadletter.Problem // current problems
	Unknown  func() map[string]bool      // keys of problems of which it is not known whether they last; nil = there are none
	Channels func() []string             // names of the channels
	Log      *slog.Logger
	Clock    func() time.Time

	since map[string]time.Time // when a problem was first seen or, if people were told about it, first found missing
}

const (
	problemLasts = 20 * time.Second // duration of a problem before people are told about it
	problemOver  = time.Minute      // time from the end of a problem until people are told that it is over
	problemsLook = 5 * time.Second
)

// Run checks for problems until ctx ends.
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

// Step reports problems that have lasted or been over for long enough.
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
