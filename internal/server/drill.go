package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/deadletteroffice/dlo/internal/config"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/drill"
	"github.com/deadletteroffice/dlo/internal/rabbitmq"
)

// Drill is the command `dlo drill`.
type Drill struct {
	config.File
	Broker     string   `name:"broker" help:"The broker of the configuration to drill on; by default the first one."`
	Management string   `name:"management-file" help:"A file with the URL of the broker's management API, which includes an administrator and the password: http://admin:password@host:15672. Without it, the URL in the configuration is used."`
	VHost      string   `name:"vhost" help:"An existing empty vhost to drill in; the drill leaves it empty again. Without it, the drill makes a vhost."`
	Only       []string `name:"only" help:"Drill only these failures; --list prints their names."`
	List       bool     `name:"list" help:"Print which failures can be drilled, which cannot, and why. No broker is contacted."`
	Clean      bool     `name:"clean" help:"Remove the vhosts and users left behind by drills that were killed, and do nothing else."`
	Keep       bool     `name:"keep" help:"Keep the vhost, its user and the folder with stores and configurations."`
	Output     string   `name:"output" short:"o" enum:"table,json,jsonl" default:"table" help:"How to print: table, json or jsonl."`
}

// Run runs a drill: it causes failures on purpose. For each of them, it prints what dlo reported.
func (c Drill) Run(ctx context.Context, o Options) error {
	if c.List {
		return c.list(o.Out)
	}
	options, err := c.options(o)
	if err != nil {
		return err
	}
	left, err := drill.Left(ctx, options.API)
	if err != nil {
		return err
	}
	if c.Clean {
		return removeLeftovers(ctx, options.API, left, o.Out)
	}
	if len(left) > 0 {
		options.Say(
			"left by earlier drills, or by one that is running: " + strings.Join(left, ", ") +
				"; dlo drill --clean removes them",
		)
	}
	if len(c.Only) == 0 {
		options.Say("this takes about " + drill.Lasts + "; Ctrl-C ends it and cleans up")
	}
	report, err := drill.Run(ctx, options)
	if errors.Is(err, drill.ErrNotAdmin) || errors.Is(err, drill.ErrNotEmpty) {
		return wrong("%w", err)
	}
	if errors.Is(err, drill.ErrEnded) || len(report.Rows) == 0 {
		return err
	}
	if err = errors.Join(c.print(o.Out, &report), err); err != nil {
		return err
	}
	return verdict(&report)
}

// verdict returns an error if dlo did not report or cure one of the failures that the drill caused.
// It also returns an error if the drill did not cause one of the failures that it should cause.
func verdict(r *drill.Report) error {
	switch failed, skipped := r.Failed(), r.Skipped(); {
	case failed > 0:
		return fmt.Errorf("%d of %d failures were not reported, or not cured, as they should be", failed, len(r.Rows))
	case skipped > 0:
		return refusedError{fmt.Errorf("%d of %d failures were left out; the others passed", skipped, len(r.Rows)), 3}
	}
	return nil
}

// options returns the options of the drill that the command line describes.
func (c Drill) options(o Options) (drill.Options, error) {
	options := drill.Options{
		VHost: c.VHost,
		Only:  c.Only,
		Keep:  c.Keep,
		Start: o.startOffice,
		Lose:  rabbitmq.LoseDeliveries,
		Say:   func(text string) { fmt.Fprintln(o.Log, deadletter.Visible(text)) },
	}
	broker, err := c.broker(o.Getenv)
	if err != nil {
		return options, err
	}
	if options.API, err = rabbitmq.NewAdmin(broker.Management); err != nil {
		return options, wrong("%w", err)
	}
	for raw, into := range map[string]*url.URL{broker.URL: &options.AMQP, broker.Management: &options.Management} {
		u, err := url.Parse(raw)
		if err != nil {
			return options, wrong("a URL of broker %s cannot be read", broker.Name)
		}
		*into = *u
	}
	return options, nil
}

// broker returns the broker of the configuration on which the drill runs. If the command line names
// a file with a management API, the broker gets this API.
func (c Drill) broker(getenv func(string) string) (config.Broker, error) {
	path, err := c.Path(getenv)
	if err != nil {
		return config.Broker{}, wrong("%w", err)
	}
	cfg, err := config.Load(path, getenv)
	if err != nil {
		return config.Broker{}, err
	}
	i := slices.IndexFunc(
		cfg.Brokers, func(b config.Broker) bool { return b.Name == cmp.Or(c.Broker, cfg.Brokers[0].Name) },
	)
	if i < 0 {
		return config.Broker{}, wrong("there is no broker %s in the configuration", deadletter.Visible(c.Broker))
	}
	b := cfg.Brokers[i]
	if c.Management != "" {
		text, err := os.ReadFile(c.Management)
		if err != nil {
			return b, wrong("%w", err)
		}
		b.Management = strings.TrimSpace(string(text))
	}
	if b.Management == "" {
		return b, wrong(
			"broker %s has no management API in the configuration, and the drill needs one: use --management-file to give its URL, which includes an administrator and the password",
			b.Name,
		)
	}
	return b, nil
}

// running is a dlo that the drill has started.
type running struct {
	*Server
	cancel context.CancelFunc
	ended  chan error
}

// Stop stops the dlo cleanly and waits for its end.
func (r running) Stop() error {
	r.cancel()
	return <-r.ended
}

// startOffice starts a dlo in this process. This dlo writes its log next to its configuration file.
// It ignores the environment of the process.
func (o Options) startOffice(ctx context.Context, path, amqp, management string) (drill.Running, error) {
	nothing := func(string) string { return "" }
	cfg, err := config.Load(path, nothing)
	if err != nil {
		return nil, err
	}
	for i := range cfg.Brokers {
		cfg.Brokers[i].URL, cfg.Brokers[i].Management = amqp, management
	}
	log, err := os.OpenFile(strings.TrimSuffix(path, ".yaml")+".log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	s, err := New(ctx, cfg, Options{Getenv: nothing, Log: log, Version: o.Version})
	if err != nil {
		log.Close()
		return nil, err
	}
	running := running{Server: s, ended: make(chan error, 1)}
	ctx, running.cancel = context.WithCancel(context.WithoutCancel(ctx)) // only the drill stops this dlo
	go func() {
		defer log.Close()
		running.ended <- s.Run(ctx)
	}()
	return running, nil
}

// removeLeftovers removes what earlier drills left.
func removeLeftovers(ctx context.Context, api drill.API, names []string, out io.Writer) error {
	var errs []error
	for _, name := range names {
		err := drill.Clean(ctx, api, name)
		if err == nil {
			fmt.Fprintln(out, "removed", name)
		}
		errs = append(errs, err)
	}
	if len(names) == 0 {
		fmt.Fprintln(out, "nothing is left")
	}
	return errors.Join(errs...)
}

// print prints a report in the requested format.
func (c Drill) print(out io.Writer, r *drill.Report) error {
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	switch c.Output {
	case "json":
		e.SetIndent("", "  ")
		return e.Encode(r)
	case "jsonl":
		for _, row := range r.Rows {
			if err := e.Encode(row); err != nil {
				return err
			}
		}
		return nil
	}
	return r.Write(out)
}

// list prints the failures that a drill can cause, and the kinds of problems that it cannot cause.
func (c Drill) list(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "FAILURE\tPROBLEM\tWHAT IS DONE")
	for _, f := range drill.List() {
		fmt.Fprintf(w, "%s\t%s\t%s\n", f.Name, cmp.Or(f.Kind, "-"), f.Does)
	}
	for _, n := range drill.NotMade {
		fmt.Fprintf(w, "-\t%s\tcannot be drilled: %s\n", n.Kind, n.Why)
	}
	return w.Flush()
}
