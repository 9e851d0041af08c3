// Package cli is dlo's command line, without the server. Most commands talk to a running server
// over its API, and a few need no server. The package depends neither on the store nor on the
// client for brokers.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

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
	// Look reads vhosts of a broker. The parameter "management" is the URL of its management API. If
	// "vhosts" is empty, Look reads all vhosts.
	Look func(ctx context.Context, management string, vhosts []string) ([]topology.Snapshot, error)
	// Dropped returns how many rejected messages a node has dropped since it started. The parameter
	// "metrics" is the URL of the node's metrics. If it is "", Dropped uses the usual URL for a node
	// that has this management API.
	Dropped func(ctx context.Context, management, metrics string) (int64, error)
	// Tokens opens a store file to add API tokens to it. No server may have that file open.
	Tokens func(ctx context.Context, store string) (TokenFile, error)
	// Rename gives everything that the store of a configuration has of one broker to another name.
	// No server may have that store open.
	Rename func(ctx context.Context, cfg config.Config, from, to string) error

	said bool // whether the command has printed the URL of its server
}

// Commands are the commands of dlo, without those that open the file of a store or connect to a
// broker. Most of them talk to a running server.
type Commands struct {
	Letters     lettersCmd     `cmd:"" help:"Find, show and act on the letters of a running server."`
	Operations  operationsCmd  `cmd:"" help:"Show what was done to letters, and steer operations in progress."`
	Groups      groupsCmd      `cmd:"" help:"Triage letters that fail for one cause: look at them, decide, requeue or discard them."`
	Brokers     brokersCmd     `cmd:"" help:"Look at the connections to brokers, try them now, and rename brokers in the store."`
	Broker      brokerCmd      `cmd:"" hidden:"" help:"Rename a broker in the store."`
	Try         tryCmd         `cmd:"" help:"Send a test letter through every step, and report each step."`
	Queues      queuesCmd      `cmd:"" help:"Look at queues, pause and resume their retries, and take letters out of queues that are not inboxes."`
	Topology    topologyCmd    `cmd:"" help:"Find faults that lose dead letters, and cure them with policies."`
	Types       typesCmd       `cmd:"" help:"Manage descriptor sets, with which dlo decodes bodies."`
	Rules       rulesCmd       `cmd:"" help:"List and test the rules in use, try other rules, apply the rules to scheduled letters, and manage redirects."`
	Views       viewsCmd       `cmd:"" help:"Saved queries."`
	Digest      digestCmd      `cmd:"" help:"The morning digest."`
	Notify      notifyCmd      `cmd:"" help:"The channels through which people are notified."`
	Deploys     deploysCmd     `cmd:"" help:"Mark deploys, and list them."`
	Audit       auditCmd       `cmd:"" help:"What was done, by whom."`
	Annotations annotationsCmd `cmd:"" help:"Say why messages were rejected."`
	Token       tokenCmd       `cmd:"" help:"Tokens of the API, for programs and for this command line."`
	User        userCmd        `cmd:"" help:"Manage dlo's own users, who sign in with a password."`
	Login       loginCmd       `cmd:"" help:"Save a server and a token, so that the other commands use them."`
	Context     contextCmd     `cmd:"" help:"The servers that dlo login has saved: list them, use another, forget one."`
	Whoami      whoamiCmd      `cmd:"" help:"Print who the server takes you for, and what you may do."`
	Config      configCmd      `cmd:"" help:"Check the configuration file."`
	Completion  completionCmd  `cmd:"" help:"Write the completion of a shell."`
	Man         manCmd         `cmd:"" help:"Write the manual, for man -l -"`
	Version     versionCmd     `cmd:"" help:"Print the version."`
}

// errUsage is the error for a wrong command line.
var errUsage = errors.New("usage")

// errPartly is the error for a command that did only a part of its work.
var errPartly = errors.New("partly done")

// Run runs the command that the arguments name. The parameter "commands" points to a struct that
// embeds Commands and may declare other commands for kong. The Run methods of these other commands
// may have parameters besides a context.Context. The parameter "further" holds the values for those
// parameters.
func Run(p Program, commands any, args []string, further ...any) error {
	exited := false
	command, err := Parse(p, commands, args, kong.Exit(func(int) { exited = true }))
	if exited {
		return nil // kong printed the help text
	}
	if err != nil {
		return err
	}
	return command.Run(append(further, &p)...)
}

// Parse parses a command line without running it.
func Parse(p Program, commands any, args []string, options ...kong.Option) (*kong.Context, error) {
	parser, err := newParser(commands, p, options...)
	if err != nil {
		return nil, err
	}
	command, err := parser.Parse(arguments(args))
	if err != nil {
		return nil, fmt.Errorf("%w: %w; see dlo --help", errUsage, err)
	}
	return command, nil
}

// arguments prepares the command line for the parser. A query may begin with a minus, as in -q
// '-queue:sms', and the parser would take such a query for a flag. arguments therefore writes the
// flag and the query as one word, such as --query=-queue:sms.
func arguments(args []string) []string {
	var out []string
	for i := 0; i < len(args); i++ {
		if (args[i] == "-q" || args[i] == "--query") && i+1 < len(args) && len(args[i+1]) > 2 && args[i+1][0] == '-' &&
			args[i+1][1] != '-' {
			out = append(out, "--query="+args[i+1])
			i++
			continue
		}
		out = append(out, args[i])
	}
	return out
}

// newParser returns the parser for the command line.
func newParser(commands any, p Program, options ...kong.Option) (*kong.Kong, error) {
	return kong.New(commands, append([]kong.Option{
		kong.Name("dlo"),
		kong.Description("Dead Letter Office takes over every message that a RabbitMQ consumer gave up on."),
		kong.Writers(p.Stdout, p.Stderr), kong.UsageOnError(),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.BindTo(p.Ctx, (*context.Context)(nil)), kong.Bind(&p),
	}, options...)...)
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

func (versionCmd) Run(p *Program) error {
	fmt.Fprintln(p.Stdout, "dlo", p.Version)
	return nil
}
