package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/deadletteroffice/dlo/internal/config"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/descriptor"
	"github.com/deadletteroffice/dlo/internal/rabbitmq"
	"github.com/deadletteroffice/dlo/internal/store"
	"github.com/deadletteroffice/dlo/internal/topology"
)

// Doctor checks everything that a dlo with the configuration file at a path needs. If the path is
// "", only the environment configures dlo. It changes nothing, and works while another dlo runs.
func Doctor(ctx context.Context, path string, getenv func(string) string) ([]deadletter.Checkup, error) {
	cfg, err := config.Load(path, getenv)
	if err != nil {
		return nil, err
	}
	links, err := linksOf(cfg, nil, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		return nil, err
	}
	list := []deadletter.Checkup{{
		Part: "configuration", Text: "every setting of " + cmp.Or(path, "the environment") + " is valid",
	}}
	for i, link := range links {
		b := &cfg.Brokers[i]
		status, why := link.Ask(ctx, b.Annotations), ""
		if looksForManagement(b) && status.Connected {
			if status.ManagementFound, err = link.FindManagement(ctx); err != nil {
				why = ", and " + err.Error()
			}
		}
		list = append(list, atBroker(ctx, &cfg, b, link, status, why)...)
	}
	return append(list, besideBrokers(ctx, &cfg)...), nil
}

// patience is how long a broker may take for its answers, if the checks are those of a running dlo.
const patience = 10 * time.Second

var errNoAnswer = fmt.Errorf("no answer within %s", patience)

// doctor checks everything that this dlo needs, through the connections that it has.
func (s *Server) doctor(ctx context.Context) []deadletter.Checkup {
	list := []deadletter.Checkup{{
		Part: "configuration", Text: "read from " + cmp.Or(s.cfg.Rules.File, "the environment"),
	}}
	for _, p := range s.problems() {
		list = append(list, checkupOf("dlo", p, ""))
	}
	atBrokers := make([][]deadletter.Checkup, len(s.links))
	var asked sync.WaitGroup
	for i, link := range s.links {
		asked.Go(func() {
			ctx, cancel := context.WithTimeoutCause(ctx, patience, errNoAnswer)
			defer cancel()
			atBrokers[i] = atBroker(ctx, &s.cfg, &s.cfg.Brokers[i], link, link.Status(), "")
		})
	}
	beside := besideBrokers(ctx, s.loaded.Load())
	asked.Wait()
	return slices.Concat(list, slices.Concat(atBrokers...), beside)
}

// besideBrokers checks what dlo needs besides its brokers.
func besideBrokers(ctx context.Context, cfg *config.Config) []deadletter.Checkup {
	return slices.Concat(atStore(cfg), ofChannels(cfg), ofSchemas(ctx, cfg))
}

// checkupOf returns the check that found a problem. The parameter "cure" is for a problem that
// names none.
func checkupOf(part string, p deadletter.Problem, cure string) deadletter.Checkup {
	return deadletter.Checkup{
		Part: part, Problem: true, Text: p.Title + " " + p.Text,
		Cure: cmp.Or(p.Cure, cure, "see docs/troubleshooting.md"),
	}
}

// atBroker checks everything about one broker: the connection, the rights, dlo's own queues, the
// dead-letter paths, the room for letters, and the clock. The parameter "why" says, after a comma,
// why the management API was not found.
func atBroker(
	ctx context.Context, cfg *config.Config, b *config.Broker, link *rabbitmq.Link, status deadletter.BrokerStatus,
	why string,
) []deadletter.Checkup {
	part := "broker " + b.Name
	var list []deadletter.Checkup
	for _, p := range status.Problems() {
		cure := ""
		if !status.Connected {
			cure = "check the address, the user and the password of broker " + b.Name + ", and whether it runs"
		}
		list = append(list, checkupOf(part, p, cure))
	}
	if status.Connected && len(list) == 0 {
		list = append(list, deadletter.Checkup{
			Part: part,
			Text: fmt.Sprintf(
				"RabbitMQ %s, vhost %s, user %s: every right and every queue that dlo needs is there, or can be declared",
				status.Version, link.VHost(), status.User,
			),
		})
	}
	if status.ManagementFound != "" {
		list = append(list, deadletter.Checkup{
			Part: part, Text: "the management API was found at " + status.ManagementFound + ", and is not configured",
		})
	}
	if !link.Managed() {
		return append(list, deadletter.Checkup{
			Part: part, Problem: true,
			Text: "no management API: none is configured" + why + "; depths, consumers, policies and dead-letter paths are unknown",
			Cure: "set management of broker " + b.Name + " in the configuration",
		})
	}
	s, err := link.Snapshot(ctx)
	if err != nil {
		return append(list, deadletter.Checkup{
			Part: "paths of " + b.Name, Problem: true, Text: "the management API does not answer: " + err.Error(),
			Cure: "check the URL, the user and the password of management, and its tag: rabbitmqctl set_user_tags <user> management",
		})
	}
	return append(list, ofPaths(&s, b), ofRoom(ctx, cfg.Store, b.Name, link), ofClock(ctx, b.Name, link))
}

// ofPaths returns the check of the dead-letter paths of a vhost.
func ofPaths(s *topology.Snapshot, b *config.Broker) deadletter.Checkup {
	one := deadletter.Checkup{Part: "paths of " + b.Name}
	found := topology.Inspect(s, topology.Options{Inboxes: b.Inboxes, Intents: b.Intents})
	urgent := 0
	for _, f := range found {
		if f.Severity != deadletter.SeverityDigest {
			urgent++
		}
	}
	switch {
	case len(s.Gaps) > 0:
		one.Problem, one.Text, one.Cure = true, "not known: "+s.Gaps[0].What+": "+
			s.Gaps[0].Why, "see the log of the broker, and try again"
	case urgent > 0:
		one.Problem, one.Text, one.Cure = true, fmt.Sprintf(
			"%d of %d findings lose dead letters or can lose them", urgent, len(found),
		), "run dlo topology check, and then dlo topology plan"
	default:
		one.Text = fmt.Sprintf("%d queues were checked, and none loses its dead letters", len(s.Queues))
	}
	return one
}

// roomWanted is how long the broker should have room for letters while dlo is down.
const roomWanted = 24 * time.Hour

// letterRest is the number of bytes that a letter needs on a broker's disk besides its body: for
// its properties, and for its entry in the index of the queue.
const letterRest = 1 << 10

// ofRoom estimates how long the broker has room for letters while dlo is down. After that time, the
// disk alarm of the broker blocks all publishers.
func ofRoom(ctx context.Context, file, name string, link *rabbitmq.Link) deadletter.Checkup {
	one := deadletter.Checkup{Part: "room at " + name}
	room, err := link.DiskRoom(ctx)
	if err != nil {
		one.Text = "how long letters have room in the broker while dlo is down is not known: " + err.Error() +
			". The user needs the tag monitoring to read it"
		return one
	}
	now := time.Now()
	arrived, err := store.ReadArrivals(ctx, file, now)
	return roomFor(one, room, arrived, err, now)
}

// roomFor adds to a check how many hours the broker has room for letters while dlo is down. The
// parameter "room" is in bytes.
func roomFor(one deadletter.Checkup, room int64, arrived store.Arrivals, err error, now time.Time) deadletter.Checkup {
	free := fmt.Sprintf(
		"the broker can write %.1f GiB before its disk alarm blocks all publishers", float64(room)/(1<<30),
	)
	if err != nil || arrived.Letters == 0 {
		one.Text = free + "; how long that lasts while dlo is down is not known, because the store has no letter of the last week"
		return one
	}
	perHour, size := arrived.PerHour(now), float64(arrived.Bytes)/float64(arrived.Letters)
	hours := float64(room) / (perHour * (size + letterRest))
	one.Text = fmt.Sprintf(
		"%s; while dlo is down, the inbox has room for %s, at %.0f letters an hour with %.1f KiB each",
		free, roughly(hours), perHour, size/(1<<10),
	)
	if hours < roomWanted.Hours() {
		one.Problem, one.Cure = true, "free disk space on the broker, and see that somebody restarts dlo within that time"
	}
	return one
}

// roughly returns a number of hours in words, in the unit that fits.
func roughly(hours float64) string {
	const day, year = 24, 24 * 365
	switch {
	case hours >= year:
		return fmt.Sprintf("more than %.0f years", math.Floor(hours/year))
	case hours >= 3*day:
		return fmt.Sprintf("about %.0f days", hours/day)
	}
	return fmt.Sprintf("about %.0f hours", hours)
}

// skewed is the maximum difference between the clocks of this machine and of a broker. dlo reports
// a larger difference as a problem, because such a difference makes the times of deaths and
// arrivals confusing.
const skewed = 5 * time.Second

// ofClock compares the clock of this machine with the clock of the broker.
func ofClock(ctx context.Context, name string, link *rabbitmq.Link) deadletter.Checkup {
	ahead, err := link.Ahead(ctx)
	return clockOf(name, ahead, err)
}

// clockOf returns the check for a measured difference. The parameter "ahead" is how far the
// broker's clock is ahead.
func clockOf(name string, ahead time.Duration, err error) deadletter.Checkup {
	one := deadletter.Checkup{Part: "clock"}
	switch {
	case err != nil:
		one.Text = "not compared with broker " + name + ": " + err.Error()
	case ahead.Abs() > skewed:
		one.Problem, one.Text, one.Cure = true, fmt.Sprintf(
			"the clock of broker %s is %s ahead of the clock here", name, ahead.Round(time.Second),
		), "synchronise both clocks, for example with chrony"
	default:
		one.Text = "it agrees with that of broker " + name
	}
	return one
}

// atStore checks the file of the store and its disk.
func atStore(cfg *config.Config) []deadletter.Checkup {
	file := deadletter.Checkup{Part: "store"}
	switch info, err := os.Stat(cfg.Store); {
	case errors.Is(err, os.ErrNotExist):
		file.Text = absolutePath(cfg.Store) + " does not exist yet: dlo serve creates it"
		if dir, err := os.Stat(filepath.Dir(cfg.Store)); err != nil || !dir.IsDir() {
			file.Problem, file.Text, file.Cure = true, "its folder "+filepath.Dir(absolutePath(cfg.Store))+
				" does not exist", "create the folder, and let the user of dlo write there"
		}
	case err != nil:
		file.Problem, file.Text, file.Cure = true, err.Error(), "let the user of dlo read and write the file and its folder"
	case !info.Mode().IsRegular():
		file.Problem, file.Text, file.Cure = true, absolutePath(cfg.Store)+
			" is not a file", "give the path of a file as store"
	default:
		file.Text = fmt.Sprintf("%s has %.1f MiB", absolutePath(cfg.Store), float64(info.Size())/(1<<20))
	}
	if file.Problem {
		return []deadletter.Checkup{file}
	}
	disk, space := deadletter.Checkup{Part: "disk"}, newSpace(cfg, 0)
	disk.Text = space.Free()
	if err := space.Room(); err != nil {
		disk.Problem, disk.Text, disk.Cure = true, err.Error(), "free some space, or lower disk.stop_below and disk.stop_below_percent"
	}
	return []deadletter.Checkup{file, disk}
}

// ofChannels checks the settings of the channels. It sends no message, so that it disturbs nobody.
func ofChannels(cfg *config.Config) []deadletter.Checkup {
	if len(cfg.Channels) == 0 {
		return []deadletter.Checkup{
			{
				Part: "channels",
				Text: "none is configured, so nobody is told about dead letters and problems; " +
					"docs/notifications.md says how to add one",
			},
		}
	}
	var list []deadletter.Checkup
	for _, c := range cfg.Channels {
		one := deadletter.Checkup{Part: "channel " + c.Name, Text: "its settings are valid; nothing was sent"}
		if _, err := channelOf(c); err != nil {
			one.Problem, one.Text, one.Cure = true, err.Error(), "correct the channel in the configuration"
		}
		list = append(list, one)
	}
	return list
}

// ofSchemas checks whether the schemas in the directory can be read.
func ofSchemas(ctx context.Context, cfg *config.Config) []deadletter.Checkup {
	if cfg.Schemas.Directory == "" {
		return []deadletter.Checkup{{Part: "schemas", Text: "no directory is configured; uploaded sets are in the store"}}
	}
	if _, err := os.Stat(cfg.Schemas.Directory); errors.Is(err, fs.ErrNotExist) {
		return []deadletter.Checkup{
			{
				Part: "schemas",
				Text: fmt.Sprintf(
					"the directory %s does not exist; uploaded sets are in the store", cfg.Schemas.Directory,
				),
			},
		}
	}
	found, failed := descriptor.ReadDir(ctx, os.DirFS(cfg.Schemas.Directory))
	list := []deadletter.Checkup{
		{Part: "schemas", Text: fmt.Sprintf("%d sets can be read from %s", len(found), cfg.Schemas.Directory)},
	}
	for _, err := range failed {
		list = append(list, deadletter.Checkup{
			Part: "schemas", Problem: true, Text: err.Error(), Cure: "correct the file, or remove it from " + cfg.Schemas.Directory,
		})
	}
	return list
}
