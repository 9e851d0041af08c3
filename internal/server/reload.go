package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/deadletteroffice/dlo/internal/config"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/notify"
	"github.com/deadletteroffice/dlo/internal/store"
)

// reloadOnSignal reloads the configuration and the schemas at each SIGHUP, until ctx is done.
func (p *process) reloadOnSignal(ctx context.Context) error {
	for {
		select {
		case <-p.hangups:
			p.Reload(ctx, deadletter.Service.Name, false) // the error is in the log
			p.current.Load().library.Refresh(ctx)
		case <-ctx.Done():
			return nil
		}
	}
}

// recordConfiguration records in the audit which keys of the configuration file have changed, but
// not those that wait for the next start.
func (p *process) recordConfiguration(ctx context.Context, by string, cfg *config.Config, waiting []string) error {
	return p.store.Configured(ctx, by, cfg.Outline, func(path string) bool { return !config.Below(path, waiting) })
}

// Reload applies the configuration file, and says what that changes. With "dry" it only says it. If
// the file contains a mistake, or if a new part cannot be created, Reload changes nothing and
// returns the error. The new rules decide about letters that no rule has decided about yet. Letters
// that already wait for a retry keep their decision. New grants apply from the next request.
func (p *process) Reload(ctx context.Context, by string, dry bool) (deadletter.Reload, error) {
	p.changing.Lock()
	defer p.changing.Unlock()
	if dry {
		c, err := p.change(ctx)
		if err != nil {
			err = conflict("%w", err)
		}
		return c.out, err
	}
	out, err := p.reload(ctx, by)
	if err != nil {
		err = conflict("the configuration could not be reloaded, and the present one stays in use: %w", err)
	}
	return out, err
}

// reload applies the configuration file, and notes the result for the metrics and in the log. The
// caller holds p.changing.
func (p *process) reload(ctx context.Context, by string) (deadletter.Reload, error) {
	c, err := p.change(ctx)
	if err == nil {
		err = p.apply(ctx, by, &c)
	}
	if err != nil {
		p.counters.reload.Set(0)
		p.log.Error("the configuration could not be reloaded; the present one stays in use", "err", err)
		return c.out, err
	}
	p.counters.reload.Set(1)
	return c.out, nil
}

// change is another configuration, with the parts of dlo that it needs.
type change struct {
	cfg      config.Config
	waiting  []string // keys whose new values wait for the next start
	out      deadletter.Reload
	channels map[string]notify.Channel
	next     *Server // the present one, if the configurations differ only in what is replaced
}

// change reads the configuration file and creates what it needs. What it creates does nothing yet.
func (p *process) change(ctx context.Context) (c change, err error) {
	now := p.current.Load()
	if c.cfg, c.waiting, err = p.read(); err != nil {
		return c, err
	}
	if c.out, err = p.difference(ctx, &c.cfg, c.waiting); err != nil {
		return c, err
	}
	if c.channels, err = channelsOf(c.cfg.Channels); err != nil {
		return c, err
	}
	if c.next = now; !now.cfg.SameWork(c.cfg) {
		c.next, err = now.withConfig(c.cfg)
	}
	return c, err
}

// read reads the configuration file and checks it as at the start. In the result, the keys that
// wait for the next start have their present values.
func (p *process) read() (cfg config.Config, waiting []string, err error) {
	if cfg, err = config.Load(p.current.Load().cfg.Rules.File, p.getenv); err != nil {
		return cfg, nil, err
	}
	if err = Check(cfg); err != nil {
		return cfg, nil, err
	}
	now := p.loaded.Load()
	if waiting = cfg.KeepUntilStart(now); len(waiting) > 0 {
		err = Check(cfg)
	}
	if err == nil && cfg.Auth.On() != now.Auth.On() && p.onSocket() {
		err = errors.New("auth decides who may connect to the socket of listen, so it is turned on or off at a start only")
	}
	return cfg, waiting, err
}

// difference compares the configuration file with what is in use.
func (p *process) difference(ctx context.Context, cfg *config.Config, waiting []string) (deadletter.Reload, error) {
	out := deadletter.Reload{File: cfg.Rules.File, Changes: []string{}, NextStart: []string{}}
	was, err := p.store.Configuration(ctx)
	if err != nil {
		return out, err
	}
	for _, change := range store.DescribeChanges(was, cfg.Outline) {
		if path := change[:strings.IndexAny(change+" ", ": ")]; config.Below(path, waiting) {
			out.NextStart = append(out.NextStart, change)
		} else {
			out.Changes = append(out.Changes, change)
		}
	}
	return out, nil
}

// apply lets dlo work with another configuration, and logs it. The caller holds p.changing.
func (p *process) apply(ctx context.Context, by string, c *change) error {
	now := p.current.Load()
	if c.next != now {
		if err := p.prepareInPlaceOf(context.WithoutCancel(ctx), now, c.next); err != nil {
			return err
		}
	}
	set := c.cfg.Rules
	p.rules.Replace(&set)
	p.logged.replace(c.cfg.Log)
	p.space.Replace(c.cfg.Disk.StopBelow, c.cfg.Disk.StopBelowPercent, c.cfg.Disk.Reserve, coming(&c.cfg))
	p.useChannels(c.cfg, c.channels)
	p.digester.Replace(scheduleOf(c.cfg.Digest))
	if c.next.who != nil {
		c.next.who.Replace(c.cfg.Grants)
	}
	p.loaded.Store(&c.cfg)
	if c.next != now {
		p.work(c.next)
		if now.accounts == nil {
			c.next.firstRun(ctx)
		}
	}
	detail := fmt.Sprintf(
		"%d rules and the default of %s", len(set.Rules), deadletter.Visible(cmp.Or(c.out.File, "no file")),
	)
	if err := errors.Join(
		p.store.Record(ctx, deadletter.Once(
			deadletter.ActRulesLoaded, by, detail, deadletter.Target{Kind: deadletter.TargetRules},
		)),
		p.recordConfiguration(ctx, by, &c.cfg, c.waiting),
	); err != nil {
		p.log.Error("the reload was not recorded in the audit log", "err", err)
	}
	p.log.Info("configuration loaded", "by", by, "rules", len(set.Rules), "changes", c.out.Changes)
	if len(c.waiting) > 0 {
		p.log.Warn(
			"the configuration has other changes as well; they apply from the next start", "changes", c.out.NextStart,
		)
	}
	return nil
}

// withConfig returns a server with another configuration. It does nothing yet. Connections to
// brokers that the change does not concern are those of the present server.
func (s *Server) withConfig(cfg config.Config) (*Server, error) {
	next := &Server{process: s.process, cfg: cfg}
	var err error
	if next.links, err = linksOf(cfg, s.links, s.log, s.crash); err != nil {
		return nil, err
	}
	return next, next.create()
}

// prepareInPlaceOf stops the work of a server as at the end of dlo, so that every transaction, ack
// and confirm that has begun is finished. It then prepares another server. If that fails, the
// present configuration works on.
func (p *process) prepareInPlaceOf(ctx context.Context, now, next *Server) error {
	if p.running {
		now.web.Yield()
		now.stopWork()
	}
	err := next.prepare(ctx)
	if err == nil || !p.running {
		return err
	}
	back, failure := now.withConfig(*p.loaded.Load()) // a server that was stopped cannot work again
	if failure == nil {
		failure = back.prepare(ctx)
	}
	if failure == nil {
		p.work(back)
		return err
	}
	failure = fmt.Errorf("the configuration that was in use cannot be used again, so dlo ends: %w", failure)
	p.end(failure)
	return errors.Join(err, failure)
}

// work lets a server work in place of the one before, which was stopped.
func (p *process) work(next *Server) {
	p.current.Store(next)
	if p.running {
		p.disconnectAllBut(next.links)
		next.startWork()
	}
}

// newReloadMetric returns a gauge that is 1 if the configuration file was applied the last time, as
// Prometheus has it for its own file.
func newReloadMetric(r prometheus.Registerer) prometheus.Gauge {
	g := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "dlo_config_last_reload_successful",
		Help: "1 if the configuration file was applied at the last reload or start; 0 if it was refused.",
	})
	r.MustRegister(g)
	g.Set(1)
	return g
}
