package server

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/signal"
	"reflect"
	"slices"
	"strings"
	"syscall"

	"github.com/deadletteroffice/dlo/internal/config"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/rules"
)

// reloadOnSignal reloads the configuration and the schemas at each SIGHUP, until ctx is done.
func (s *Server) reloadOnSignal(ctx context.Context) error {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	for {
		select {
		case <-hangups:
			s.changing.Lock()
			s.reload(ctx)
			s.changing.Unlock()
			s.library.Refresh(ctx)
		case <-ctx.Done():
			return nil
		}
	}
}

// recordConfiguration records in the audit which keys of the configuration file have changed. It
// records only keys for which "inUse" returns true. If "inUse" is nil, it records all keys.
func (s *Server) recordConfiguration(ctx context.Context, path string, inUse func(path string) bool) error {
	outline, err := config.Outline(path)
	if err != nil {
		return err
	}
	return s.store.Configured(ctx, outline, inUse)
}

// reloadedKeys are the keys of the configuration that apply after a reload. All other keys need a
// restart.
var reloadedKeys = []string{"rules", "default", "channels", "quiet_hours", "digest", "problems", "grants"}

// isReloaded reports whether a reload applies the key at a path. An example of a path is
// grants[0].role.
func isReloaded(path string) bool {
	key, _, _ := strings.Cut(path, ".")
	key, _, _ = strings.Cut(key, "[")
	return slices.Contains(reloadedKeys, key)
}

// reload applies the rules, channels, quiet hours, digest and grants of the configuration file. If
// the file contains a mistake, reload changes nothing and returns the error, which it has logged.
// The new rules decide about letters that no rule has decided about yet. Letters that already wait
// for a retry keep their decision. New grants apply from the next request. The caller holds
// s.changing.
func (s *Server) reload(ctx context.Context) error {
	path := s.cfg.Rules.File
	cfg, err := config.Load(path, s.getenv)
	if err != nil {
		s.log.Error("the configuration could not be reloaded; the present rules stay in use", "err", err)
		return err
	}
	channels, err := channelsOf(cfg.Channels)
	if err != nil {
		s.log.Error("the configuration could not be reloaded; the present rules stay in use", "err", err)
		return err
	}
	set := cfg.Rules
	s.rules.Replace(&set)
	s.useChannels(cfg, channels)
	s.digester.Replace(scheduleOf(cfg.Digest))
	if s.who != nil {
		s.who.Replace(cfg.Grants)
	}
	detail := fmt.Sprintf("%d rules and the default of %s", len(set.Rules), deadletter.Visible(cmp.Or(path, "no file")))
	if err := s.store.Record(
		ctx, deadletter.Once(deadletter.ActRulesLoaded, deadletter.Service.Name, detail, deadletter.Target{
			Kind: deadletter.TargetRules,
		}),
	); err != nil {
		s.log.Error("the reload was not recorded in the audit log", "err", err)
	}
	if err := s.recordConfiguration(ctx, path, isReloaded); err != nil {
		s.log.Error("the reload was not recorded in the audit log", "err", err)
	}
	s.log.Info("rules loaded", "rules", len(set.Rules))
	was := s.cfg
	for _, c := range []*config.Config{&was, &cfg} {
		c.Rules, c.Channels, c.Quiet, c.Digest, c.Problems = rules.Set{}, nil, config.QuietHours{}, config.Digest{}, config.Problems{}
		c.Grants = nil
	}
	if !reflect.DeepEqual(was, cfg) {
		s.log.Warn("the configuration has other changes as well; they apply from the next start")
	}
	return nil
}
