// Package drill causes the failures that dlo promises to report. The failures are real, because the
// drill works on a broker that is in use, in a vhost of its own. For each failure, the drill
// compares what Overview, /readyz and the pager report with what they should report.
//
// On the broker, the drill changes only this vhost and a user that it creates (fence.go). Its
// caller starts the dlo that is tested. The drill uses only HTTP to reach this dlo and the
// management API.
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

// Limit is the time limit for the report of a failure, and for the effect of a cure.
const Limit = 2 * time.Minute

// Lasts is how long a drill with all failures takes.
const Lasts = "five minutes"

// Options contains the settings of a drill, and its connections to the broker and to dlo.
type Options struct {
	API        API
	Management url.URL // URL of the management API, with the user and the password of the caller
	AMQP       url.URL // URL of the broker; the user and the vhost in it are not used
	VHost      string  // an existing empty vhost; "" = the drill creates a vhost
	Only       []string
	Keep       bool // keeps the vhost, its user and the folder after the drill
	// Start starts a dlo with the given configuration file. The brokers in that file get the URLs
	// in the parameters "amqp" and "management". If dlo refuses to start, the error has a method
	// ExitCode.
	Start func(ctx context.Context, config, amqp, management string) (Running, error)
	// Lose takes the first message of a queue, and closes its own connection before it acknowledges
	// the message. The parameter "times" is the number of times that it does this.
	Lose func(ctx context.Context, amqp, queue string, times int) error
	Say  func(text string) // gets one line of progress at a time
}

// ground contains everything that a running drill uses, for example its vhost, its pager, and the
// dlo processes and workers that it has started.
type ground struct {
	o      Options
	site   *site
	pager  *pager
	folder string

	mu      sync.Mutex
	offices map[string]*office
	workers map[string]*worker
}

// ErrEnded means that the drill was ended early.
var ErrEnded = errors.New("the drill was ended")

// Run causes the failures and returns the result for each of them. It removes everything that it
// created, even if ctx is done. The error says why the drill could not run, or what could not be
// removed.
func Run(ctx context.Context, o Options) (report Report, err error) {
	list, err := failuresNamed(o.Only)
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
		err = errors.Join(err, g.tearDown(ctx))
	}()
	report.Rows, err = g.run(ctx, list)
	return report, err
}

// run prepares the drill and causes the failures.
func (g *ground) run(ctx context.Context, list []Failure) (rows []Row, err error) {
	g.o.Say(fmt.Sprintf("vhost %s, user %s, folder %s", deadletter.Visible(g.site.vhost), deadletter.Visible(g.site.user), g.folder))
	if g.pager, err = newPager(); err != nil {
		return nil, err
	}
	if err := errors.Join(g.createFiles(), g.site.build(ctx)); err != nil {
		return nil, err
	}
	skipped := g.skippedRows(list)
	list = slices.DeleteFunc(list, func(f Failure) bool { return f.admin && !g.site.admin })
	if err := g.prepare(ctx, list); err != nil {
		return nil, err
	}
	return append(g.runWaves(ctx, list), skipped...), nil
}

// failuresNamed returns the failures with the given names, each once. If there are no names, it
// returns all failures.
func failuresNamed(only []string) ([]Failure, error) {
	for _, name := range only {
		if !slices.ContainsFunc(failures, func(f Failure) bool { return f.Name == name }) {
			return nil, fmt.Errorf(
				"%w: there is no failure %s; dlo drill --list has their names", deadletter.ErrInvalid,
				deadletter.Visible(name),
			)
		}
	}
	return slices.DeleteFunc(
		slices.Clone(failures), func(f Failure) bool { return len(only) > 0 && !slices.Contains(only, f.Name) },
	), nil
}

// skippedRows returns a row for each failure that the drill skips. These are the failures that need
// an administrator, if the user of the management API is not an administrator.
func (g *ground) skippedRows(list []Failure) (rows []Row) {
	for _, f := range list {
		if f.admin && !g.site.admin {
			rows = append(rows, Row{Name: f.Name, Does: f.Does, Skipped: "it takes an administrator of the broker"})
		}
	}
	return rows
}

// runWaves causes the failures in groups, which are called waves. All failures of one wave happen
// at the same time. The waves follow one another, because failures of different waves could disturb
// each other.
func (g *ground) runWaves(ctx context.Context, list []Failure) []Row {
	rows := make([]Row, len(list))
	for wave := range lastWave + 1 {
		var wg sync.WaitGroup
		n := 0
		for i, f := range list {
			if f.wave == wave {
				n++
				wg.Go(func() { rows[i] = g.runFailure(ctx, &f) })
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

// tearDown stops every dlo of the drill and removes everything that the drill created.
func (g *ground) tearDown(ctx context.Context) error {
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
