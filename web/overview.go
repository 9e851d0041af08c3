package web

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/web/view"
)

const (
	topGroups       = 10
	overviewDeploys = 50 // the maximum number of deploy marks in the chart
)

// spans contains, for each preset range, its duration and the number of bars in its chart. For
// example, the chart of 24 h has bars of 15 min.
var spans = map[string]struct {
	span time.Duration
	bars int
}{
	"1h":  {time.Hour, 60},
	"6h":  {6 * time.Hour, 72},
	"24h": {24 * time.Hour, 96},
	"7d":  {7 * 24 * time.Hour, 84},
	"30d": {30 * 24 * time.Hour, 90},
}

// The default range is a day. If all letters arrived within the last hour, the default is an hour.
// The chart of a day would show those letters only as a thin line at its end.
const (
	usualSpan = "24h"
	firstSpan = "1h"
)

func (w *Web) span(ctx context.Context, asked string, now time.Time) (string, error) {
	if _, ok := spans[asked]; ok {
		return asked, nil
	}
	oldest, err := w.Store.Oldest(ctx, query.Query{})
	if err == nil && now.Sub(oldest) < spans[firstSpan].span {
		return firstSpan, nil
	}
	return usualSpan, err
}

// overview handles GET /?range=.
func (w *Web) overview(r *http.Request) (templ.Component, error) {
	p := view.OverviewPage{Shell: w.shell(r, "Overview", view.SectionOverview), Restore: restorableWords(w.Restore)}
	ctx := r.Context()
	var err error
	if p.Range, err = w.span(ctx, r.URL.Query().Get("range"), p.Now); err != nil {
		return nil, err
	}
	tried, err := w.Store.Trials(ctx)
	if err != nil {
		return nil, err
	}
	stored, _, err := w.Store.Count(ctx, query.Query{}, tried+1)
	if err != nil {
		return nil, err
	}
	if stored <= tried { // all stored letters come from trials of dlo itself
		if p.FirstRun = w.firstRun(); p.FirstRun.Running() {
			p.Refresh = view.LookEvery
		}
		return view.Overview(p), nil
	}
	for state, into := range map[deadletter.State]*int{
		deadletter.StateDead: &p.Dead, deadletter.StateHeld: &p.Held,
	} {
		if *into, _, err = w.Store.Count(ctx, (query.Query{}).With(query.State, string(state)), 0); err != nil {
			return nil, err
		}
	}
	if p.InRetry, err = w.inRetry(ctx); err != nil {
		return nil, err
	}
	if p.Aside, _, err = w.Store.Count(
		ctx, (query.Query{}).With(query.State, string(deadletter.StateDead), string(deadletter.StateHeld)).
			With(query.Status, string(deadletter.GroupSnoozed), string(deadletter.GroupResolved)), 0,
	); err != nil {
		return nil, err
	}
	chosen := spans[p.Range]
	// The code requests one bar more than the page needs, because the first and the last bar of a
	// chart usually cover less time than the other bars.
	if p.Arrivals, err = w.Store.Histogram(
		ctx, query.Query{}, p.Now.Add(-chosen.span), p.Now, chosen.bars+1,
	); err != nil {
		return nil, err
	}
	if p.Deploys, err = w.Store.Deploys(ctx, p.Arrivals.From, p.Now, overviewDeploys); err != nil {
		return nil, err
	}
	if p.Halted, err = w.Store.HaltedOperations(ctx); err != nil {
		return nil, err
	}
	if err := w.addStanding(r, &p); err != nil {
		return nil, err
	}
	doubted := (query.Query{}).With(query.Doubt, string(deadletter.DoubtRestart), string(deadletter.DoubtCutOff))
	p.Doubted = allOf(doubted, w.Store.AsOf(p.Now))
	if p.Copies, _, err = w.Store.Count(ctx, doubted, 0); err != nil {
		return nil, err
	}
	groups, more, err := w.groups(ctx, query.Query{}, deadletter.GroupPage{
		Order: deadletter.ByLetters,
		Limit: topGroups,
	})
	if err != nil {
		return nil, err
	}
	p.MoreThan = more != ""
	p.Groups = groups
	if p.Lag, err = w.Store.ScheduleLag(ctx); err != nil {
		return nil, err
	}
	if p.NoticeAt, p.NoticeTo, err = w.Store.LastNotice(ctx); err != nil {
		return nil, err
	}
	if deadletter.ScopeOf(ctx).Everywhere() {
		p.Disk, p.Told, p.Channels = w.Disk(), append([]string{}, w.Told()...), w.Channels.Channels()
		if w.Backups != nil {
			p.Backup = w.Backups.NewestBackup()
		}
	}
	guards, err := w.Store.Guards(ctx)
	if err != nil {
		return nil, err
	}
	held := heldBack(guards)
	p.Problems, p.HeldBack = append(p.Problems, held...), len(held) > 0
	p.Unindexed, err = w.Store.Unindexed(ctx)
	return view.Overview(p), err
}

// addStanding reads the numbers that the summary sentence of the overview needs, and adds them to
// the page.
func (w *Web) addStanding(r *http.Request, p *view.OverviewPage) (err error) {
	ctx := r.Context()
	if p.Standing, err = w.Store.Standing(ctx); err != nil {
		return err
	}
	if p.ByPeople, err = w.Store.SettledByPeople(ctx, p.Arrivals.From, p.Now); err != nil {
		return err
	}
	if p.Fix, err = w.Store.DeployAfter(ctx, p.Standing.LastAt); err != nil || p.Standing.Failing.Groups == 0 {
		return err
	}
	worst, _, err := w.Store.Groups(
		ctx, (query.Query{}).With(query.Status, deadletter.StatusFailing), deadletter.GroupPage{Limit: 1},
	)
	if err != nil || len(worst) == 0 { // the group became quiet between the two reads, so it is not shown
		return err
	}
	g, err := w.Store.Group(ctx, worst[0].ID)
	w.hideGroup(&g.GroupRow)
	p.Worst = &g
	return err
}

// heldBack returns the problems of queues and groups whose retries are held back because almost all
// retries came back. Their letters wait and do not count as dead.
func heldBack(guards []deadletter.Guard) []deadletter.Problem {
	var queues []string
	for _, g := range guards {
		if g.State == deadletter.GuardTripped || g.State == deadletter.GuardProbing {
			name := deadletter.Visible(deadletter.Cut(g.Origin.Queue, 60))
			if g.Group != 0 {
				name = g.Group.String() + " of " + name
			}
			queues = append(queues, name)
		}
	}
	const named = 3
	switch n := len(queues); {
	case n == 0:
		return nil
	case n > named:
		queues = append(queues[:named], strconv.Itoa(n-named)+" more")
	}
	return []deadletter.Problem{
		{
			Title: "Almost all retries came back, so retries are held back.",
			Text: "Held back: " + strings.Join(queues, ", ") +
				". Their letters keep their attempts and wait; the Queues page shows when a few letters are tried, and can resume the retries.",
		},
	}
}
