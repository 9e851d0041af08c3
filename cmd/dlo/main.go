//go:build !windows

// Command dlo is the program Dead Letter Office. It takes over the messages that the consumers of
// RabbitMQ queues gave up on.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // time zones for the digest, for a machine that has no time zone files

	_ "golang.org/x/crypto/x509roots/fallback" // certificate authorities, for a machine or image that has none

	"github.com/deadletteroffice/dlo/internal/cli"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/server"
)

// commands are the commands of dlo that open its store or connect to a broker. Package cli has all
// others.
type commands struct {
	Serve server.Serve `cmd:"" help:"Drain, retry and show dead letters until stopped." group:"Server"`
	Leave server.Leave `cmd:"" help:"Remove everything that dlo declared on the brokers, and the policies that it set. No dlo may be running." group:"Server"`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	go func() {
		<-ctx.Done()
		stop() // a second signal ends the process immediately
	}()
	version, commit, date := build()
	program := cli.Program{
		Ctx:     ctx,
		Getenv:  os.Getenv,
		Stdin:   os.Stdin,
		Stdout:  os.Stdout,
		Stderr:  os.Stderr,
		Version: deadletter.About(version, commit, date),
		Check:   server.Check,
		Ask:     server.Ask,
		Look:    server.Look,
		Explore: server.Explore,
		Dropped: server.Dropped,
		Tokens:  openTokens,
		Rename:  server.RenameBroker,
		Doctor:  server.Doctor,
		Backups: server.Backups{Version: version},
	}
	err := cli.Run(program, &commands{}, os.Args[1:], server.Options{
		Getenv:  os.Getenv,
		Log:     os.Stderr,
		Out:     os.Stdout,
		Version: version,
		Commit:  commit,
		Date:    date,
	})
	os.Exit(cli.ExitCode(err, os.Stderr))
}

// openTokens opens the API tokens in a store file, for `dlo token add --store`.
func openTokens(ctx context.Context, store string) (cli.TokenFile, error) {
	return server.Tokens(ctx, store)
}
