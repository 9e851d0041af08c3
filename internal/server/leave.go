package server

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"github.com/deadletteroffice/dlo/internal/adopt"
	"github.com/deadletteroffice/dlo/internal/config"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/rabbitmq"
	"github.com/deadletteroffice/dlo/internal/store"
)

// Leave is the command `dlo leave`.
type Leave struct {
	config.File
	Export      string `name:"export" help:"Before anything is removed, write all letters, including their masked values, to this new file; dlo letters import can read it. dlo then leaves even if letters still wait."`
	KeepLetters bool   `name:"keep-letters" help:"Leave although letters in the store still wait for a retry or for people. They stay in the store."`
	Yes         bool   `name:"yes" short:"y" help:"Remove things. Without it, only say what would happen."`
}

// Run removes the objects that dlo declared on the configured brokers, and the policies that it
// set. No dlo may run on the store at the same time.
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
	s := &Server{cfg: cfg, log: log}
	if s.links, err = linksOf(cfg, log); err != nil {
		return err
	}
	if s.store, err = store.Open(ctx, cfg.Store, store.Options{Log: log, Brokers: named(cfg.Brokers)}); err != nil {
		return explainStore(err, cfg.Store)
	}
	defer s.store.Close()
	if err := c.settled(ctx, s); err != nil {
		return err
	}
	if c.Export != "" && c.Yes {
		if err := exportLetters(ctx, s.store, c.Export); err != nil {
			return err
		}
		fmt.Fprintln(o.Out, "written: all letters, to "+c.Export)
	}
	adoption := adopt.New(s.store, s.adoptions(), func(string, string) {}, nil, log)
	applied, err := adoption.Adopted(ctx)
	if err != nil {
		return err
	}
	for _, a := range applied {
		what := fmt.Sprintf("policy %s in vhost %s", a.Name, deadletter.Visible(a.VHost))
		if !c.Yes {
			fmt.Fprintln(o.Out, "would be removed: "+what)
			continue
		}
		if _, err := adoption.Undo(ctx, deadletter.Local, a.ID); err != nil {
			return err
		}
		fmt.Fprintln(o.Out, "removed: "+what)
	}
	if !c.Yes {
		fmt.Fprintln(o.Out, "would be removed: queues and exchanges whose names begin with dlo., unless they hold messages; nothing was changed, and --yes removes them")
		return nil
	}
	return leaveAll(ctx, o.Out, s.links)
}

// settled returns an error if letters in the store still need an action.
func (c Leave) settled(ctx context.Context, s *Server) error {
	queues, err := s.store.Queues(ctx)
	if err != nil || c.KeepLetters || c.Export != "" {
		return err
	}
	open := 0
	for _, q := range queues {
		for _, state := range []deadletter.State{deadletter.StateReceived, deadletter.StateScheduled, deadletter.StatePublishing, deadletter.StateDead, deadletter.StateHeld} {
			open += q.Counts[state]
		}
	}
	if open > 0 {
		return fmt.Errorf("%d letters in the store still wait for a retry or for people. Start dlo again and requeue or discard them, or save them with --export FILE. Or leave with --keep-letters, and the letters stay in the store", open)
	}
	return nil
}

// leaveAll removes dlo's objects from the brokers, and prints what it removed.
func leaveAll(ctx context.Context, out io.Writer, links []*rabbitmq.Link) error {
	kept := 0
	for _, link := range links {
		done, err := link.Leave(ctx)
		if err != nil {
			return fmt.Errorf("broker %s, vhost %s: %w", deadletter.Visible(link.Status().Name), deadletter.Visible(link.VHost()), err)
		}
		for _, r := range done {
			if r.Why != "" {
				kept++
				fmt.Fprintf(out, "not removed: %s: %s\n", r.What, deadletter.Visible(r.Why))
				continue
			}
			fmt.Fprintln(out, "removed: "+r.What)
		}
	}
	if kept > 0 {
		return refusedError{fmt.Errorf("%d things could not be removed; see above", kept), 3}
	}
	return nil
}
