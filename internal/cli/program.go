// Package cli is dlo's command line, without the server. Most commands talk to a running server
// over its API, and a few need no server. The package depends neither on the store nor on the
// client for brokers.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/deadletteroffice/dlo/internal/config"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/topology"
)

// Program holds what every command needs: the standard streams, the environment and functions of
// other packages.
type Program struct {
	Ctx     context.Context
	Getenv  func(string) string
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
	Version string
	// reports errors that only the server's parts find in a valid configuration; nil skips this
	// check
	Check func(config.Config) error
	// reports what each broker in the configuration permits dlo to do
	Ask func(context.Context, config.Config) ([]deadletter.BrokerStatus, error)
	// Look reads vhosts of a broker. The parameter "management" is the URL of its management API.
	// If "vhosts" is empty, Look reads all vhosts.
	Look func(ctx context.Context, management string, vhosts []string) ([]topology.Snapshot, error)
	// Explore returns what a broker permits dlo to do, the names of its vhosts, and what its
	// management API says about the vhost of the URL. The error says why nothing is known.
	Explore func(context.Context, config.Config) (deadletter.BrokerStatus, []string, topology.Snapshot, error)
	// Dropped returns how many rejected messages a node has dropped since it started. The parameter
	// "metrics" is the URL of the node's metrics. If it is "", Dropped uses the usual URL for a
	// node that has this management API.
	Dropped func(ctx context.Context, management, metrics string) (int64, error)
	// Tokens opens a store file to add API tokens to it. No server may have that file open.
	Tokens func(ctx context.Context, store string) (TokenFile, error)
	// Rename gives everything that the store of a configuration has of one broker to another name.
	// No server may have that store open.
	Rename  func(ctx context.Context, cfg config.Config, from, to string) error
	Backups Backups
	// Doctor checks what a dlo with the configuration file at a path needs to start here.
	Doctor func(ctx context.Context, path string, getenv func(string) string) ([]deadletter.Checkup, error)

	rules string // the name of the file that mistakes in the answer are about
	said  bool   // whether the command has printed the URL of its server
}

// These are the headings under which the help of dlo lists its commands.
const (
	groupLetters = "Letters"
	groupBrokers = "Brokers"
	groupRules   = "Rules and types"
	groupPeople  = "People"
	groupHere    = "This command line"
)

// errUsage is the error for a wrong command line.
var errUsage = errors.New("usage")

// errPartly is the error for a command that did only a part of its work.
var errPartly = errors.New("partly done")

// Run runs the command that the arguments name. The parameter "others" points to a struct that may
// declare other commands for kong. The Run methods of these other commands may have parameters
// besides a context.Context. The parameter "further" holds the values for those parameters.
func Run(p Program, others any, args []string, further ...any) error {
	exited := false
	command, err := Parse(p, others, args, kong.Exit(func(int) { exited = true }))
	if exited {
		return nil // kong printed the help text
	}
	if err != nil {
		return err
	}
	return command.Run(append(further, &p)...)
}

// Parse parses a command line without running it.
func Parse(p Program, others any, args []string, options ...kong.Option) (*kong.Context, error) {
	parser, err := newParser(others, p, options...)
	if err != nil {
		return nil, err
	}
	command, err := parser.Parse(arguments(args))
	if err != nil {
		return nil, fmt.Errorf("%w: %w; see dlo --help", errUsage, err)
	}
	return command, nil
}

// arguments prepares the command line for the parser. Without arguments, dlo prints its help. The
// parser takes the flags of a noun alone for unknown, so its command is put before them. A query
// may begin with a minus, as in -q '-queue:sms', and the parser would take such a query for a flag.
// arguments therefore writes the flag and the query as one word, such as --query=-queue:sms.
func arguments(args []string) []string {
	switch {
	case len(args) == 0:
		return []string{"--help"}
	case slices.Equal(args, []string{"--version"}):
		return []string{"version"}
	case len(args) > 1 && strings.HasPrefix(args[1], "-") && args[1] != "-h" && args[1] != "--help":
		for _, c := range commands() {
			n := slices.IndexFunc(c.below, func(b command) bool { return slices.Contains(alone, b.name) })
			if c.name == args[0] && n >= 0 {
				args = slices.Insert(slices.Clone(args), 1, c.below[n].name)
			}
		}
	}
	for i := 0; i+1 < len(args) && args[i] != "--"; i++ {
		isQuery, next := args[i] == "-q" || args[i] == "--query", args[i+1]
		if isQuery && len(next) > 2 && next[0] == '-' && next[1] != '-' {
			args = slices.Replace(slices.Clone(args), i, i+2, "--query="+next)
		}
	}
	return args
}

// newParser returns the parser for the command line: the commands of this package, and others.
func newParser(others any, p Program, options ...kong.Option) (*kong.Kong, error) {
	options = append(options,
		kong.Name("dlo"),
		kong.Description("Dead Letter Office takes over every message that a RabbitMQ consumer gave up on."),
		kong.Writers(p.Stdout, p.Stderr), kong.UsageOnError(),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true}),
		kong.BindTo(p.Ctx, (*context.Context)(nil)), kong.Bind(&p),
	)
	for _, c := range commands() {
		options = append(options, c.option())
	}
	return kong.New(others, options...)
}

// These are the exit codes. If an error has an ExitCode method, that method returns the exit code.
const (
	ExitFailed = 1
	ExitUsage  = 2
	exitPartly = 3
	// Exit code 4 means that another dlo has the store open. No command of this package returns it.
	exitFindings = 5
)

// ExitCode prints an error and returns the exit code for it. For nil it prints nothing and returns
// 0.
func ExitCode(err error, stderr io.Writer) int {
	if err == nil {
		return 0
	}
	fmt.Fprintln(stderr, "dlo:", deadletter.VisibleLines(err.Error()))
	var bad *config.Error
	var own interface{ ExitCode() int }
	switch {
	case errors.As(err, &bad), errors.Is(err, errUsage), errors.Is(err, deadletter.ErrInvalid):
		return ExitUsage
	case errors.Is(err, errPartly):
		return exitPartly
	case errors.As(err, &own): // after errUsage, because the parser's errors have an ExitCode method too
		return own.ExitCode()
	}
	return ExitFailed
}

type versionCmd struct{}

func (versionCmd) Run(p *Program) error { return p.say("dlo %s", p.Version) }
