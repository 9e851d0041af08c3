package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/deadletteroffice/dlo/internal/config"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/notify"
	"github.com/deadletteroffice/dlo/internal/store"
)

// reloadOnSignal reloads the configuration and the schemas at each SIGHUP, until ctx is done.
func (p *process) reloadOnSignal(ctx context.Context) error {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	for {
		select {
		case <-hangups:
			p.Reload(ctx, deadletter.Service.Name, false) // the error is in the log
			p.current.Load().library.Refresh(ctx)
		case <-ctx.Done():
			return nil
		}
	}
}

// recordConfiguration records in the audit which keys of the configuration file have changed, but
// not those that wait for the next start.
func (p *process) recordConfiguration(ctx context.Context, by, path string, waiting []string) error {
	outline, err := config.Outline(path, p.getenv)
	if err != nil {
		return err
	}
	return p.store.Configured(ctx, by, outline, func(path string) bool { return !config.Below(path, waiting) })
}

// Reload applies the configuration file, and says what that changes. With "dry" it only says it. If
// the file contains a mistake, or if a new part cannot be created, Reload changes nothing and
// returns the error. The new rules decide about letters that no rule has decided about yet. Letters
// that already wait for a retry keep their decision. New grants apply from the next request.
func (p *process) Reload(ctx context.Context, by string, dry bool) (deadletter.Reload, error) {
	p.changing.Lock()
	defer p.changing.Unlock()
	if !dry {
		out, err := p.reload(ctx, by)
		if err != nil {
			err = conflict("the configuration could not be reloaded, and the present one stays in use: %w", err)
		}
		return out, err
	}
	cfg, waiting, err := p.read()
	if err != nil {
		return deadletter.Reload{}, conflict("%w", err)
	}
	return p.difference(ctx, &cfg, waiting)
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
	is, err := config.Outline(out.File, p.getenv)
	if err != nil {
		return out, err
	}
	for _, change := range store.DescribeChanges(was, is) {
		if path := change[:strings.IndexAny(change+" ", ": ")]; config.Below(path, waiting) {
			out.NextStart = append(out.NextStart, change)
		} else {
			out.Changes = append(out.Changes, change)
		}
	}
	return out, nil
}

// reload applies the configuration file, notes the result for the metrics, and logs it. The caller
// holds p.changing.
func (p *process) reload(ctx context.Context, by string) (out deadletter.Reload, err error) {
	defer func() {
		applied := 1.0
		if err != nil {
			applied = 0
		}
		p.counters.reload.Set(applied)
	}()
	now := p.current.Load()
	next := now
	var channels map[string]notify.Channel
	cfg, waiting, err := p.read()
	if err == nil {
		out, err = p.difference(ctx, &cfg, waiting)
	}
	if err == nil {
		channels, err = channelsOf(cfg.Channels)
	}
	if err == nil && !now.cfg.SameWork(cfg) {
		next, err = now.withConfig(cfg)
	}
	if err != nil {
		p.log.Error("the configuration could not be reloaded; the present one stays in use", "err", err)
		return out, err
	}
	set := cfg.Rules
	p.rules.Replace(&set)
	p.logged.replace(cfg.Log)
	p.space.Replace(cfg.Disk.StopBelow, cfg.Disk.StopBelowPercent, cfg.Disk.Reserve, coming(&cfg))
	if next != now {
		p.replace(context.WithoutCancel(ctx), now, next)
	}
	p.useChannels(cfg, channels)
	p.digester.Replace(scheduleOf(cfg.Digest))
	if next.who != nil {
		next.who.Replace(cfg.Grants)
	}
	p.loaded.Store(&cfg)
	detail := fmt.Sprintf(
		"%d rules and the default of %s", len(set.Rules), deadletter.Visible(cmp.Or(out.File, "no file")),
	)
	if err := errors.Join(
		p.store.Record(ctx, deadletter.Once(
			deadletter.ActRulesLoaded, by, detail, deadletter.Target{Kind: deadletter.TargetRules},
		)),
		p.recordConfiguration(ctx, by, out.File, waiting),
	); err != nil {
		p.log.Error("the reload was not recorded in the audit log", "err", err)
	}
	p.log.Info("configuration loaded", "by", by, "rules", len(set.Rules), "changes", out.Changes)
	if len(waiting) > 0 {
		p.log.Warn(
			"the configuration has other changes as well; they apply from the next start", "changes", out.NextStart,
		)
	}
	return out, nil
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

// replace stops the work of a server as at the end of dlo, so that every transaction, ack and
// confirm that has begun is finished. It then lets another server work.
func (p *process) replace(ctx context.Context, now, next *Server) {
	if p.running {
		now.stopWork()
	}
	if err := next.prepare(ctx); err != nil {
		p.log.Error("something could not be read for the new configuration; the next start reads it", "err", err)
	}
	p.current.Store(next)
	if p.running {
		p.disconnectAllBut(next.links)
		next.startWork()
	}
	if now.accounts == nil {
		next.firstRun(ctx)
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
