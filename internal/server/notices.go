package server

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/deadletteroffice/dlo/internal/config"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/notify"
	"github.com/deadletteroffice/dlo/internal/operation"
)

// outbox wraps the outbox of the store, and applies the masks to its notices.
type outbox struct {
	*notify.Aside
	mask func(name, text string) (string, bool)
}

// Due returns the deliveries of a channel that are due, with masks applied. The masks are applied
// only here, because a notice may have been written before its mask was configured.
func (o outbox) Due(ctx context.Context, channel string, n int) ([]deadletter.Delivery, error) {
	list, err := o.Aside.Due(ctx, channel, n)
	for i := range list {
		o.maskTexts(&list[i])
	}
	return list, err
}

func (o outbox) maskTexts(d *deadletter.Delivery) {
	row := func(g *deadletter.GroupRow) {
		g.Title, _ = o.mask("", g.Title)
		g.Error, _ = o.mask("", g.Error)
	}
	d.Notice.Text, _ = o.mask("", d.Notice.Text)
	if d.Group != nil {
		row(d.Group)
	}
	for i := range d.Incident {
		row(&d.Incident[i])
	}
	if d.Digest != nil {
		for i := range d.Digest.Lines {
			row(&d.Digest.Lines[i].Group)
		}
	}
}

// createNotifiers creates the components that notify people. They ask the current server.
func (p *process) createNotifiers(cfg config.Config) error {
	channels, err := channelsOf(cfg.Channels)
	if err != nil {
		return err
	}
	p.name = p.store.Name()
	p.outbox = outbox{
		&notify.Aside{Box: p.store, Clock: time.Now},
		func(name, text string) (string, bool) { return p.current.Load().masks.Header(name, text) },
	}
	p.notifier = notify.New(p.outbox, notify.Options{
		Silent:     func() bool { return p.current.Load().isSilent() },
		Record:     p.store.Record,
		Log:        p.log,
		Registerer: p.lasting,
		Crash:      p.crash,
	})
	p.useChannels(cfg, channels)
	p.digester = notify.NewDigester(p.store, scheduleOf(cfg.Digest), nil, p.log, p.notifier.Wake)
	p.watched = &notify.Problems{
		Store:    p.outbox,
		Now:      func() []deadletter.Problem { return p.current.Load().toldProblems() },
		Unknown:  func() map[string]bool { return p.current.Load().unknownPaths() },
		Channels: p.problemChannels,
		Log:      p.log,
		Clock:    time.Now,
	}
	p.tender = operation.NewTender(p.store, p.log, p.notifier.Wake)
	return nil
}

// useChannels starts to use the given channels. If a channel was removed, notices that still wait
// for it fail, so that people see them.
func (p *process) useChannels(cfg config.Config, channels map[string]notify.Channel) {
	if waiting, err := p.store.Channels(context.Background()); err != nil {
		p.log.Error("the channels of waiting notices cannot be read", "err", err)
	} else {
		for _, name := range waiting {
			if _, ok := channels[name]; !ok {
				channels[name] = notify.Gone(name)
			}
		}
	}
	var machines []string
	scopes := map[string]deadletter.Scope{}
	for _, c := range cfg.Channels {
		scopes[c.Name] = deadletter.ScopeFor(c.Places)
		if c.Webhook != nil {
			machines = append(machines, c.Name)
		}
	}
	p.store.Machines(machines...)
	p.channels.Store(&channels)
	p.told.Store(&cfg.Problems.Notify)
	p.notifier.Replace(notify.Settings{
		Office:   p.office(cfg),
		Quiet:    quietOf(cfg.Quiet),
		Channels: channels,
		Scopes:   scopes,
	})
}

// office returns the address at which people reach this dlo, and the name by which receivers
// distinguish it from other instances.
func (p *process) office(cfg config.Config) notify.Office {
	address := p.Addr()
	// uses the name in the configuration, such as localhost, because requests with this name are
	// accepted
	if host, _, err := net.SplitHostPort(cfg.Listen); err == nil {
		if _, port, err := net.SplitHostPort(address); err == nil {
			address = net.JoinHostPort(host, port)
		}
	}
	return notify.Office{PublicURL: cmp.Or(cfg.PublicURL, schemeOf(cfg)+address), Name: p.name}
}

// Check checks what a configuration needs outside its file, as dlo does when it starts: the senders
// of the channels, the certificates and CA files, whether dlo may listen on the addresses, and the
// folders of its files. It creates nothing.
func Check(cfg config.Config) error {
	_, channels := channelsOf(cfg.Channels)
	_, brokers := linksOf(cfg, nil, slog.New(slog.DiscardHandler), nil)
	unasked := func(context.Context, string, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.IPv6Loopback()}, nil // a check must not ask a name server
	}
	_, err := allAddresses(context.Background(), cfg, unasked)
	if err == nil && cfg.TLS.Cert != "" {
		_, err = readCertificate(cfg.TLS)
	}
	if err == nil && cfg.OpsListen != "" {
		_, err = addresses(context.Background(), cfg.OpsListen, missingForOps(cfg), unasked)
	}
	return errors.Join(channels, brokers, err, folderOf("store", cfg.Store), folderOf("audit.file", cfg.AuditFile))
}

// folderOf returns an error if the folder of a file does not exist.
func folderOf(key, path string) error {
	folder := filepath.Dir(path)
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return wrong("%s: the folder %s does not exist; create it, and let the user of dlo write there", key, folder)
	}
	return nil
}

// channelsOf creates a sender for each channel of the configuration.
func channelsOf(list []config.Channel) (map[string]notify.Channel, error) {
	channels := map[string]notify.Channel{}
	for _, c := range list {
		channel, err := channelOf(c)
		if err != nil {
			return nil, wrong("channel %s: %w", c.Name, err)
		}
		channels[c.Name] = channel
	}
	return channels, nil
}

func channelOf(c config.Channel) (notify.Channel, error) {
	switch {
	case c.Slack != nil:
		return channelOfSender(notify.NewSlack(notify.SlackOptions{URL: c.Slack.URL, AllowPrivate: c.AllowPrivate}))
	case c.PagerDuty != nil:
		return channelOfSender(notify.NewPagerDuty(notify.PagerDutyOptions{
			Key:          c.PagerDuty.Key,
			URL:          c.PagerDuty.URL,
			AllowPrivate: c.AllowPrivate,
		}))
	case c.Alertmanager != nil:
		return channelOfSender(notify.NewAlertmanager(notify.AlertmanagerOptions{
			URL:          c.Alertmanager.URL,
			AllowPrivate: c.AllowPrivate,
		}))
	case c.SMTP != nil:
		m := c.SMTP
		return channelOfSender(notify.NewMail(notify.MailOptions{
			Host:         m.Host,
			Port:         m.Port,
			User:         m.User,
			Password:     m.Password,
			From:         m.From,
			To:           m.To,
			AllowPrivate: c.AllowPrivate,
		}))
	case c.Webhook != nil:
		return channelOfSender(notify.NewWebhook(notify.WebhookOptions{
			URL:          c.Webhook.URL,
			Secret:       c.Webhook.Secret,
			AllowPrivate: c.AllowPrivate,
		}))
	}
	return notify.Channel{}, errors.New("dlo has no sender for a channel of this kind")
}

// channelOfSender returns the notification channel of a sender. Its parameters are the results of a
// function that creates the sender. If this function has failed, channelOfSender returns its error.
func channelOfSender[S interface{ Channel() notify.Channel }](sender S, err error) (notify.Channel, error) {
	if err != nil {
		return notify.Channel{}, err
	}
	return sender.Channel(), nil
}

func quietOf(q config.QuietHours) notify.Quiet {
	return notify.Quiet{From: timeOfDay(q.From), To: timeOfDay(q.To), Days: q.Days, Zone: location(q.Zone)}
}

func scheduleOf(d config.Digest) notify.Schedule {
	return notify.Schedule{
		Clock:    notify.Clock{At: timeOfDay(d.At), Days: d.Days, Zone: location(d.Zone)},
		Channels: d.Notify,
	}
}

func timeOfDay(t config.TimeOfDay) notify.TimeOfDay {
	return notify.TimeOfDay{Hour: int(t) / 60, Minute: int(t) % 60}
}

// location returns the time zone with the given name. The configuration has already checked the
// name.
func location(name string) *time.Location {
	zone, _ := time.LoadLocation(name) // if this machine does not know the zone, the result is nil, which means UTC
	return zone
}

const repeatEvery = 5 * time.Minute

// repeatAlerts sends open alerts to the Alertmanagers again and again until ctx is done. An
// Alertmanager forgets alerts that are not repeated.
func (s *Server) repeatAlerts(ctx context.Context) error {
	for {
		select {
		case <-time.After(repeatEvery):
		case <-ctx.Done():
			return nil
		}
		channels := *s.channels.Load()
		for _, name := range slices.Sorted(maps.Keys(channels)) {
			a, ok := channels[name].Sender.(*notify.Alertmanager)
			if !ok {
				continue
			}
			if err := s.repeatAlert(ctx, name, a); err != nil && ctx.Err() == nil {
				s.log.Warn("firing alerts could not be repeated", "channel", name, "err", err)
			}
		}
	}
}

func (s *Server) repeatAlert(ctx context.Context, name string, a *notify.Alertmanager) error {
	told, err := s.store.Told(ctx, name)
	if err != nil {
		return err
	}
	var open []notify.Message
	for i := range told {
		s.outbox.maskTexts(&told[i])
		open = append(open, notify.Compose(s.office(*s.loaded.Load()), told[i]))
	}
	return a.Repeat(ctx, open)
}
