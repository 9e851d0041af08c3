package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/deadletteroffice/dlo/internal/config"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/descriptor"
	"github.com/deadletteroffice/dlo/internal/rabbitmq"
	"github.com/deadletteroffice/dlo/internal/store"
	"github.com/deadletteroffice/dlo/internal/topology"
)

// Doctor is the command `dlo doctor`.
type Doctor struct {
	config.File
	Output string `name:"output" short:"o" enum:"table,json" default:"table" help:"How to print: table or json."`
}

// checkup is the result of one check. If Problem is false, Cure is "".
type checkup struct {
	Part    string `json:"part"`
	Problem bool   `json:"problem"`
	Text    string `json:"text"`
	Cure    string `json:"cure,omitzero"`
}

// Run checks everything that dlo needs. It changes nothing, and works while another dlo runs.
func (c Doctor) Run(ctx context.Context, o Options) error {
	path, err := c.Path(o.Getenv)
	if err != nil {
		return wrong("%w", err)
	}
	cfg, err := config.Load(path, o.Getenv)
	if err != nil {
		return err
	}
	list := []checkup{{Part: "configuration", Text: "every setting of " + shownPath(path) + " is valid"}}
	links, err := linksOf(cfg, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		return err
	}
	for i, link := range links {
		list = append(list, atBroker(ctx, &cfg, &cfg.Brokers[i], link)...)
	}
	list = append(list, atStore(&cfg)...)
	list = append(list, ofChannels(&cfg)...)
	list = append(list, ofSchemas(ctx, &cfg)...)
	return c.print(o.Out, list)
}

func shownPath(path string) string {
	if path == "" {
		return "the environment"
	}
	return path
}

func (c Doctor) print(out io.Writer, list []checkup) error {
	problems := 0
	for _, one := range list {
		if one.Problem {
			problems++
		}
	}
	if c.Output == "json" {
		text, err := json.MarshalIndent(list, "", "  ")
		if err != nil {
			return err
		}
		fmt.Fprintln(out, string(text))
	} else {
		for _, one := range list {
			state := "ok"
			if one.Problem {
				state = "problem"
			}
			fmt.Fprintf(out, "%-8s %-22s %s\n", state, deadletter.Visible(one.Part), deadletter.Visible(one.Text))
			if one.Cure != "" {
				fmt.Fprintf(out, "%-31s cure: %s\n", "", deadletter.Visible(one.Cure))
			}
		}
	}
	if problems > 0 {
		return fmt.Errorf("problems: %d", problems)
	}
	return nil
}

// atBroker checks everything about one broker: the connection, the rights, dlo's own queues, the
// dead-letter paths, the room for letters, and the clock.
func atBroker(ctx context.Context, cfg *config.Config, b *config.Broker, link *rabbitmq.Link) []checkup {
	part := "broker " + b.Name
	status := link.Ask(ctx, b.Annotations)
	var list []checkup
	for _, p := range status.Problems() {
		cure := p.Cure
		if cure == "" && !status.Connected {
			cure = "check the address, the user and the password of broker " + b.Name + ", and whether it runs"
		}
		list = append(list, checkup{part, true, p.Title + " " + p.Text, cmp.Or(cure, "see docs/troubleshooting.md")})
	}
	if status.Connected && len(list) == 0 {
		list = append(list, checkup{
			Part: part,
			Text: fmt.Sprintf(
				"RabbitMQ %s, vhost %s, user %s: every right and every queue that dlo needs is there, or can be declared",
				status.Version, link.VHost(), status.User,
			),
		})
	}
	why := "none is configured"
	if looksForManagement(b) && status.Connected {
		address, err := link.FindManagement(ctx)
		if err == nil {
			list = append(list, checkup{
				Part: part, Text: "the management API was found at " + address + ", and is not configured",
			})
		} else {
			why += ", and " + err.Error()
		}
	}
	if !link.Managed() {
		return append(list, checkup{
			part, true,
			"no management API: " + why + "; depths, consumers, policies and dead-letter paths are unknown",
			"set management of broker " + b.Name + " in the configuration",
		})
	}
	s, err := link.Snapshot(ctx)
	if err != nil {
		return append(list, checkup{
			"paths of " + b.Name, true, "the management API does not answer: " + err.Error(),
			"check the URL, the user and the password of management, and its tag: rabbitmqctl set_user_tags <user> management",
		})
	}
	return append(list, ofPaths(&s, b), ofRoom(ctx, cfg.Store, b.Name, link), ofClock(ctx, b.Name, link))
}

// ofPaths returns the check of the dead-letter paths of a vhost.
func ofPaths(s *topology.Snapshot, b *config.Broker) checkup {
	one := checkup{Part: "paths of " + b.Name}
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
func ofRoom(ctx context.Context, file, name string, link *rabbitmq.Link) checkup {
	one := checkup{Part: "room at " + name}
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
func roomFor(one checkup, room int64, arrived store.Arrivals, err error, now time.Time) checkup {
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
func ofClock(ctx context.Context, name string, link *rabbitmq.Link) checkup {
	ahead, err := link.Ahead(ctx)
	return clockOf(name, ahead, err)
}

// clockOf returns the check for a measured difference. The parameter "ahead" is how far the
// broker's clock is ahead.
func clockOf(name string, ahead time.Duration, err error) checkup {
	one := checkup{Part: "clock"}
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
func atStore(cfg *config.Config) []checkup {
	file := checkup{Part: "store"}
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
		return []checkup{file}
	}
	disk, space := checkup{Part: "disk"}, newSpace(cfg, 0)
	disk.Text = space.Free()
	if err := space.Room(); err != nil {
		disk.Problem, disk.Text, disk.Cure = true, err.Error(), "free some space, or lower disk.stop_below and disk.stop_below_percent"
	}
	return []checkup{file, disk}
}

// ofChannels checks the settings of the channels. It sends no message, so that it disturbs nobody.
func ofChannels(cfg *config.Config) []checkup {
	if len(cfg.Channels) == 0 {
		return []checkup{
			{
				"channels", false, "none is configured, so nobody is told about dead letters and problems; " +
					"docs/notifications.md says how to add one", "",
			},
		}
	}
	var list []checkup
	for _, c := range cfg.Channels {
		one := checkup{Part: "channel " + c.Name, Text: "its settings are valid; nothing was sent"}
		if _, err := channelOf(c); err != nil {
			one.Problem, one.Text, one.Cure = true, err.Error(), "correct the channel in the configuration"
		}
		list = append(list, one)
	}
	return list
}

// ofSchemas checks whether the schemas in the directory can be read.
func ofSchemas(ctx context.Context, cfg *config.Config) []checkup {
	if cfg.Schemas.Directory == "" {
		return []checkup{{Part: "schemas", Text: "no directory is configured; uploaded sets are in the store"}}
	}
	if _, err := os.Stat(cfg.Schemas.Directory); errors.Is(err, fs.ErrNotExist) {
		return []checkup{
			{
				Part: "schemas",
				Text: fmt.Sprintf(
					"the directory %s does not exist; uploaded sets are in the store", cfg.Schemas.Directory,
				),
			},
		}
	}
	found, failed := descriptor.ReadDir(ctx, os.DirFS(cfg.Schemas.Directory))
	list := []checkup{
		{Part: "schemas", Text: fmt.Sprintf("%d sets can be read from %s", len(found), cfg.Schemas.Directory)},
	}
	for _, err := range failed {
		list = append(list, checkup{
			"schemas", true, err.Error(), "correct the file, or remove it from " + cfg.Schemas.Directory,
		})
	}
	return list
}
