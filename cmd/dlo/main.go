// Command dlo is Dead Letter Office: it takes over the messages that RabbitMQ consumers gave up on.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	_ "time/tzdata" // zones of the digest, where the machine has none

	"github.com/alecthomas/kong"
	"github.com/deadletteroffice/dlo/internal/config"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/store"
)

// version is set by the linker.
var version = ""

// Exit codes (docs: CONTRACT of the command line).
const (
	exitFailed = 1
	exitUsage  = 2
	exitPartly = 3
	exitLocked = 4
)

func main() { os.Exit(process(os.Args[1:], nil)) }

// process runs the program with the signals, environment and streams of this process and returns its exit code.
func process(args []string, crash func(point string)) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	go func() {
		<-ctx.Done()
		stop() // a second signal ends the process at once
	}()
	return exitCode(run(ctx, args, os.Getenv, os.Stdin, os.Stdout, os.Stderr, crash), os.Stderr)
}

// cli is the command line.
type cli struct {
	Serve       serveCmd       `cmd:"" help:"Drain, retry and show dead letters until stopped."`
	Letters     lettersCmd     `cmd:"" help:"Find letters of a running server, look at them, and act on them."`
	Operations  operationsCmd  `cmd:"" help:"Look at what was done to letters, and steer what is under way."`
	Groups      groupsCmd      `cmd:"" help:"Triage letters that fail for one cause: look at them, decide, requeue or discard them."`
	Queues      queuesCmd      `cmd:"" help:"Look at queues, pause and resume their retries, and take letters out of queues that are no inboxes."`
	Types       typesCmd       `cmd:"" help:"Descriptor sets: what bodies are read by."`
	Rules       rulesCmd       `cmd:"" help:"What people saved on top of the rules of the configuration."`
	Views       viewsCmd       `cmd:"" help:"Saved queries."`
	Digest      digestCmd      `cmd:"" help:"The morning digest."`
	Deploys     deploysCmd     `cmd:"" help:"Marks of deploys."`
	Audit       auditCmd       `cmd:"" help:"What was done, by whom."`
	Annotations annotationsCmd `cmd:"" help:"Say why messages were rejected."`
	Config      configCmd      `cmd:"" help:"Check the configuration file."`
	Completion  completionCmd  `cmd:"" help:"Write the completion of a shell."`
	Man         manCmd         `cmd:"" help:"Write the manual, for man -l -"`
	Version     versionCmd     `cmd:"" help:"Print the version."`
}

// program is what every command may use.
type program struct {
	ctx    context.Context
	getenv func(string) string
	stdin  io.Reader
	stdout io.Writer
	stderr io.Writer
	crash  func(point string) // named crash points, for tests; nil in the product
}

// errUsage marks what is wrong with the command line itself.
var errUsage = errors.New("usage")

// errPartly says that some of the work was done.
var errPartly = errors.New("partly done")

// run is the whole program but for the process: crash is nil in the product.
func run(ctx context.Context, args []string, getenv func(string) string, stdin io.Reader, stdout, stderr io.Writer, crash func(point string)) error {
	var c cli
	exited := false
	parser, err := newParser(&c, getenv, stdout, stderr, kong.Exit(func(int) { exited = true }))
	if err != nil {
		return err
	}
	command, err := parser.Parse(arguments(args))
	if exited {
		return nil // --help was printed
	}
	if err != nil {
		return fmt.Errorf("%w: %w; see dlo --help", errUsage, err)
	}
	return command.Run(&program{ctx, getenv, stdin, stdout, stderr, crash})
}

// arguments joins the query flag and a query that begins with a minus, as -q '-queue:sms': the parser would take that for a flag.
func arguments(args []string) []string {
	var out []string
	for i := 0; i < len(args); i++ {
		if (args[i] == "-q" || args[i] == "--query") && i+1 < len(args) && len(args[i+1]) > 2 && args[i+1][0] == '-' && args[i+1][1] != '-' {
			out = append(out, "--query="+args[i+1])
			i++
			continue
		}
		out = append(out, args[i])
	}
	return out
}

// newParser returns the parser of the command line.
func newParser(c *cli, getenv func(string) string, stdout, stderr io.Writer, options ...kong.Option) (*kong.Kong, error) {
	return kong.New(c, append([]kong.Option{
		kong.Name("dlo"), kong.Description("Dead Letter Office takes over every message that a RabbitMQ consumer gave up on."), kong.Writers(stdout, stderr), kong.UsageOnError(),
		kong.Vars{"server": defaultServer(getenv)},
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
	}, options...)...)
}

// exitCode prints an error and returns the code that stands for it.
func exitCode(err error, stderr io.Writer) int {
	if err == nil {
		return 0
	}
	fmt.Fprintln(stderr, "dlo:", deadletter.VisibleLines(err.Error()))
	var bad *config.Error
	switch {
	case errors.Is(err, store.ErrLocked):
		return exitLocked
	case errors.As(err, &bad), errors.Is(err, errUsage), errors.Is(err, deadletter.ErrInvalid):
		return exitUsage
	case errors.Is(err, errPartly):
		return exitPartly
	}
	return exitFailed
}

type versionCmd struct{}

func (versionCmd) Run(p *program) error {
	fmt.Fprintln(p.stdout, "dlo", versionText())
	return nil
}

func versionText() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}
