package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/deadletteroffice/dlo/internal/adopt"
	"github.com/deadletteroffice/dlo/internal/config"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/rabbitmq"
	"github.com/deadletteroffice/dlo/internal/store"
	"github.com/deadletteroffice/dlo/internal/topology"
)

// Leave is the command `dlo leave`.
type Leave struct {
	config.File
	Export      string `name:"export" help:"Before anything is removed, write all letters, including their masked values, to this new file; dlo letters import can read it. dlo then leaves even if letters still wait."`
	KeepLetters bool   `name:"keep-letters" help:"Leave although letters in the store still wait for a retry or for people. They stay in the store."`
	Yes         bool   `name:"yes" short:"y" help:"Remove things. Without it, only say what would happen."`
}

// Run removes the objects that dlo declared on the brokers of the configuration, and the policies
// that dlo set. No dlo may run on the store at the same time. If messages would be lost, or if a
// broker cannot be read, Run changes nothing.
func (c Leave) Run(ctx context.Context, o Options) error {
	path, err := c.Path(o.Getenv)
	if err != nil {
		return wrong("%w", err)
	}
	cfg, err := config.Load(path, o.Getenv)
	if err != nil {
		return err
	}
	log := slog.New(slog.DiscardHandler)
	s := &Server{process: &process{log: log}, cfg: cfg}
	if s.links, err = linksOf(cfg, nil, log, o.Crash); err != nil {
		return err
	}
	if s.store, err = store.Open(ctx, cfg.Store, store.Options{
		Log:     log,
		Brokers: storeBrokers(cfg.Brokers),
	}); err != nil {
		return explainStore(err, cfg.Store)
	}
	defer s.store.Close()
	if err := c.checkSettled(ctx, s); err != nil {
		return err
	}
	adoption := adopt.New(s.store, s.adoptions(), func(string, string) {}, o.Crash, log)
	applied, err := adoption.Adopted(ctx)
	if err != nil {
		return err
	}
	vhosts := s.vhosts(applied)
	if err := announce(ctx, o.Out, vhosts, applied, c.Yes); err != nil || !c.Yes {
		return err
	}
	if c.Export != "" {
		if err := exportLetters(ctx, s.store, c.Export); err != nil {
			return err
		}
		fmt.Fprintln(o.Out, "written: all letters, to "+c.Export)
	}
	for _, a := range applied {
		if _, err := adoption.Undo(ctx, deadletter.Local, a.ID); err != nil {
			return err
		}
		fmt.Fprintln(o.Out, "removed: "+policyOf(&a))
	}
	return leaveAll(ctx, o.Out, vhosts)
}

func policyOf(a *topology.Adopted) string {
	return fmt.Sprintf(
		"policy %s in vhost %s of broker %s", a.Name, deadletter.Visible(a.VHost), deadletter.Visible(a.Broker),
	)
}

// leftVHost is a vhost that dlo leaves. The field "names" contains the names of dlo's objects in
// the configuration.
type leftVHost struct {
	*rabbitmq.Link
	names rabbitmq.Configured
}

func (v *leftVHost) describe() string {
	return fmt.Sprintf("vhost %s of broker %s", deadletter.Visible(v.VHost()), deadletter.Visible(v.Status().Name))
}

// vhosts returns the vhosts of the configuration. A vhost that several entries name is listed once.
func (s *Server) vhosts(applied []topology.Adopted) []leftVHost {
	var list []leftVHost
	seen := map[string]int{}
	for i, b := range s.cfg.Brokers {
		at, ok := seen[b.Place()]
		if !ok {
			at, seen[b.Place()] = len(list), len(list)
			list = append(list, leftVHost{Link: s.links[i]})
		}
		v := &list[at]
		if s.links[i].Managed() {
			v.Link = s.links[i] // only an entry with a management API can read the vhost
		}
		if b.Exchange != "" {
			v.names.Exchanges = append(v.names.Exchanges, b.Exchange)
		}
		v.names.Queues = append(v.names.Queues, b.Inboxes...)
		if b.Annotations != "" {
			v.names.Queues = append(v.names.Queues, b.Annotations)
		}
		for _, a := range applied {
			if a.Broker == b.Name && a.VHost == s.links[i].VHost() {
				v.names.Policies = append(v.names.Policies, a.Name)
			}
		}
	}
	return list
}

// announce reads all vhosts. It returns an error if dlo cannot remove its objects from one of them.
// If "yes" is false, it prints what would be removed.
func announce(ctx context.Context, out io.Writer, vhosts []leftVHost, applied []topology.Adopted, yes bool) error {
	var refused []error
	var lines []string
	for i := range applied {
		lines = append(lines, "would be removed: "+policyOf(&applied[i]))
	}
	for i := range vhosts {
		v := &vhosts[i]
		l, err := v.Leaving(ctx, v.names)
		if err == nil {
			err = l.InUse()
		}
		if err != nil {
			refused = append(refused, fmt.Errorf("%s: %w", v.describe(), err))
		}
		for _, what := range l.Removes {
			lines = append(lines, "would be removed: "+what+" in "+v.describe())
		}
		for _, r := range l.Keeps {
			lines = append(lines, "would stay: "+r.What+" in "+v.describe()+": "+r.Why)
		}
	}
	if !yes {
		for _, line := range append(
			lines, "nothing was changed; --yes removes these. A queue that still holds messages stays",
		) {
			fmt.Fprintln(out, line)
		}
	}
	return errors.Join(refused...)
}

// checkSettled returns an error if letters in the store still wait for a retry or for people.
func (c Leave) checkSettled(ctx context.Context, s *Server) error {
	queues, err := s.store.Queues(ctx)
	if err != nil || c.KeepLetters || c.Export != "" {
		return err
	}
	open := 0
	for _, q := range queues {
		for _, state := range []deadletter.State{
			deadletter.StateReceived, deadletter.StateScheduled, deadletter.StatePublishing, deadletter.StateDead,
			deadletter.StateHeld,
		} {
			open += q.Counts[state]
		}
	}
	if open > 0 {
		return fmt.Errorf(
			"%d letters in the store still wait for a retry or for people. Start dlo again and requeue or discard them, or save them with --export FILE. Or leave with --keep-letters, and the letters stay in the store",
			open,
		)
	}
	return nil
}

// leaveAll removes dlo's objects from the brokers and prints what it removed.
func leaveAll(ctx context.Context, out io.Writer, vhosts []leftVHost) error {
	stay := 0
	var failed []error
	for i := range vhosts {
		v := &vhosts[i]
		done, err := v.Leave(ctx, v.names)
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", v.describe(), err))
		}
		for _, r := range done {
			if r.Why != "" {
				stay++
				fmt.Fprintf(out, "not removed: %s in %s: %s\n", r.What, v.describe(), deadletter.Visible(r.Why))
				continue
			}
			fmt.Fprintln(out, "removed: "+r.What+" in "+v.describe())
		}
	}
	if len(failed) > 0 {
		return errors.Join(failed...)
	}
	if stay > 0 {
		return refusedError{fmt.Errorf("%d things could not be removed; see above", stay), 3}
	}
	return nil
}
