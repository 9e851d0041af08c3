// Command dlo for Windows has the commands that talk to a running dlo. It has no server, because
// the store needs locks and facts about the disk that dlo reads only from Unix.
package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"

	"github.com/deadletteroffice/dlo/internal/cli"
	"github.com/deadletteroffice/dlo/internal/config"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/topology"
)

// errNoServer is the error of a command that opens a store or connects to a broker.
var errNoServer = errors.New(
	"dlo for Windows has no server; run this command with dlo for Linux or macOS, for example in a container",
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := cli.Run(cli.Program{
		Ctx:     ctx,
		Getenv:  os.Getenv,
		Stdin:   os.Stdin,
		Stdout:  os.Stdout,
		Stderr:  os.Stderr,
		Version: deadletter.About(build()),
		Ask: func(context.Context, config.Config) ([]deadletter.BrokerStatus, error) {
			return nil, errNoServer
		},
		Look: func(context.Context, string, []string) ([]topology.Snapshot, error) {
			return nil, errNoServer
		},
		Explore: func(
			context.Context, config.Config,
		) (deadletter.BrokerStatus, []string, topology.Snapshot, error) {
			return deadletter.BrokerStatus{}, nil, topology.Snapshot{}, errNoServer
		},
		Tokens: func(context.Context, string) (cli.TokenFile, error) { return nil, errNoServer },
		Rename: func(context.Context, config.Config, string, string) error { return errNoServer },
		Doctor: func(context.Context, string, func(string) string) ([]deadletter.Checkup, error) {
			return nil, errNoServer
		},
		Backups: noBackups{},
	}, &struct{}{}, os.Args[1:])
	os.Exit(cli.ExitCode(err, os.Stderr))
}

// noBackups are the commands of backups that open a store. A backup from a server needs none of
// them.
type noBackups struct{}

func (noBackups) Make(context.Context, config.Config, string, bool) (deadletter.Backup, error) {
	return deadletter.Backup{}, errNoServer
}

func (noBackups) Take(context.Context, config.Config, bool) (io.ReadCloser, deadletter.Backup, error) {
	return nil, deadletter.Backup{}, errNoServer
}

func (noBackups) Restore(context.Context, string, string, bool, bool) (deadletter.Backup, string, error) {
	return deadletter.Backup{}, "", errNoServer
}

func (noBackups) Rehearse(context.Context, config.Config, string) (string, deadletter.Rehearsal, error) {
	return "", deadletter.Rehearsal{}, errNoServer
}
