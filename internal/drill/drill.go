// Package drill causes, for real, the failures that dlo promises to report. It works in a vhost of
// its own on a broker that is in use, and compares what Overview, /readyz and the pager report with
// what they should report. It touches nothing else on that broker (fence.go). The dlo under test is
// passed in. The drill speaks only HTTP, to that dlo and to the management API.
package drill

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Limit is the maximum time until a failure is reported, and until a cure takes effect.
const Limit = 2 * time.Minute

// Lasts is the time that all failures take together.
const Lasts = "five minutes"

// Options says where the drill works and with what.
type Options struct {
	API        API
	Management url.URL // of the API, with the caller's user and password
	AMQP       url.URL // of the broker; its user and vhost are not used
	VHost      string  // an empty one that is there; "" makes one
	Only       []string
	Keep       bool // keep the vhost, its user and the folder
	// Start starts a dlo with a configuration file and gives each of its brokers these URLs. If dlo
	// refuses to start, the error has a method ExitCode.
	Start func(ctx context.Context, config, amqp, management string) (Running, error)
	// Lose loses the delivery of the first message in a queue the given number of times.
	Lose func(ctx context.Context, amqp, queue string, times int) error
	Say  func(text string) // reports progress, one line at a time
}

// ground is the environment of one drill.
type ground struct {
	o      Options
	site   *site
	pager  *pager
	folder string

	mu      sync.Mutex
	offices map[string]*office
	workers map[string]*worker
}

// ErrEnded is returned if the drill was stopped early.
var ErrEnded = errors.New("the drill was ended")

// Run causes the failures and returns what was reported for each. It removes everything it has
// created, even if ctx ends. The error says why the drill could not run, or what could not be
// removed.
func Run(ctx context.Context, o Options) (report Report, err error) {
	list, err := chosen(o.Only)
	if err != nil {
		return report, err
	}
	password, _ := o.Management.User.Password()
	s, err := newSite(ctx, o.API, o.VHost, o.Management.User.Username(), password)
	if err != nil {
		return report, err
	}
	g := &ground{o: o, site: s, folder: folderOf(s.name), offices: map[string]*office{}, workers: map[string]*worker{}}
	if err := os.Mkdir(g.folder, 0o700); err != nil {
		return report, err
	}
	defer func() {
		if ctx.Err() != nil {
			err = ErrEnded
		}
		err = errors.Join(err, g.end(ctx))
	}()
	report.Rows, err = g.run(ctx, list)
	return report, err
}

// run builds the environment and causes the failures.
func (g *ground) run(ctx context.Context, list []Failure) (rows []Row, err error) {
	g.o.Say(fmt.Sprintf("vhost %s, user %s, folder %s", deadletter.Visible(g.site.vhost), deadletter.Visible(g.site.user), g.folder))
	if g.pager, err = newPager(); err != nil {
		return nil, err
	}
	if err := errors.Join(g.files(), g.site.build(ctx)); err != nil {
		return nil, err
	}
	skipped := g.skipped(list)
	list = slices.DeleteFunc(list, func(f Failure) bool { return f.admin && !g.site.admin })
	if err := g.ready(ctx, list); err != nil {
		return nil, err
	}
	return append(g.waves(ctx, list), skipped...), nil
}

// chosen returns the failures with the given names, each once, or all failures if only is empty.
func chosen(only []string) ([]Failure, error) {
	for _, name := range only {
		if !slices.ContainsFunc(failures, func(f Failure) bool { return f.Name == name }) {
			return nil, fmt.Errorf("%w: there is no failure %s; dlo drill --list has their names", deadletter.ErrInvalid, deadletter.Visible(name))
		}
	}
	return slices.DeleteFunc(slices.Clone(failures), func(f Failure) bool { return len(only) > 0 && !slices.Contains(only, f.Name) }), nil
}

// skipped returns rows for the failures that need an administrator, if the user is not one.
func (g *ground) skipped(list []Failure) (rows []Row) {
	for _, f := range list {
		if f.admin && !g.site.admin {
			rows = append(rows, Row{Name: f.Name, Does: f.Does, Skipped: "it takes an administrator of the broker"})
		}
	}
	return rows
}

// waves causes the failures wave by wave, those of one wave concurrently. A failure could disturb
// the failures of another wave.
func (g *ground) waves(ctx context.Context, list []Failure) []Row {
	rows := make([]Row, len(list))
	for wave := range lastWave + 1 {
		var wg sync.WaitGroup
		n := 0
		for i, f := range list {
			if f.wave == wave {
				n++
				wg.Go(func() { rows[i] = g.hold(ctx, &f) })
			}
		}
		if n > 0 {
			g.o.Say(fmt.Sprintf("wave %d of %d: %d failures at once", wave+1, lastWave+1, n))
		}
		wg.Wait()
		if ctx.Err() != nil {
			break
		}
	}
	return rows
}

// endWait is the time limit for the clean-up, also after Ctrl-C.
const endWait = time.Minute

// end stops every dlo and removes everything that the drill has created.
func (g *ground) end(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endWait)
	defer cancel()
	var errs []error
	for _, name := range g.names() {
		errs = append(errs, g.stop(name))
	}
	for _, w := range g.workers {
		w.stop()
	}
	if g.pager != nil {
		g.pager.server.Close()
	}
	if g.o.Keep {
		g.o.Say("kept: vhost " + g.site.vhost + ", user " + g.site.user + ", folder " + g.folder)
		return errors.Join(errs...)
	}
	if err := errors.Join(append(errs, g.site.remove(ctx), os.RemoveAll(g.folder))...); err != nil {
		return fmt.Errorf("not all that the drill has made is removed; dlo drill --clean tries again: %w", err)
	}
	g.o.Say("what the drill has made is removed")
	return nil
}

func (g *ground) names() (names []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for name := range g.offices {
		names = append(names, name)
	}
	return names
}
