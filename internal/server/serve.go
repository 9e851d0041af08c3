// Package server assembles dlo. It creates the store, the links to the brokers and all other
// components, connects them, and starts and stops them in order. It also contains the commands that
// open a file or connect to a broker.
package server

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/deadletteroffice/dlo/internal/config"
)

// Serve is the command `dlo serve`.
type Serve struct {
	config.File
	AcceptStore bool `name:"accept-store" help:"Confirm that the store is current if nothing proves any more that it is not an older copy. Letters that are due are then sent."`
}

// Run drains, retries and shows letters until ctx is done.
func (c Serve) Run(ctx context.Context, o Options) error {
	path, err := c.Path(o.Getenv)
	if err != nil {
		return wrong("%w", err)
	}
	if path != "" {
		path = kong.ExpandPath(path) // pages show this path to people who do not know the working directory of dlo
	}
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP) // a SIGHUP during a long start is a reload, and not the end
	defer signal.Stop(hangups)
	cfg, err := config.Load(path, o.Getenv)
	if err != nil {
		return err
	}
	tuneMemory(o.Getenv)
	o.Hangups = hangups
	o.AcceptStore = c.AcceptStore
	s, err := New(ctx, cfg, o)
	if err != nil {
		return err
	}
	return s.Run(ctx)
}

// Options contains what a server gets from its process.
type Options struct {
	Getenv      func(string) string
	Log         io.Writer // gets the log as text, one line for each event
	Out         io.Writer // gets the output of a command
	Version     string
	Commit      string // the commit and the day of the commit, as deadletter.About shows them; may be ""
	Date        string
	Hangups     <-chan os.Signal   // asks for a reload; nil = nothing does
	AcceptStore bool               // true if a person has confirmed that the store is current
	Crash       func(point string) // called at the named crash points in tests; nil in production
}

// refusedError is an error that also determines the exit code of the process.
type refusedError struct {
	error
	code int
}

func (e refusedError) ExitCode() int { return e.code }
func (e refusedError) Unwrap() error { return e.error }

// wrong returns the error for a mistake in the configuration or on the command line. The process
// then ends with exit code 2.
func wrong(format string, args ...any) error {
	return refusedError{fmt.Errorf("usage: "+format, args...), 2}
}

const (
	// per cent by which the heap may grow until the next collection; most memory of a window is
	// free before the next window
	collectAt = 300
	// bytes; near this limit, the collector works hard; a larger body exceeds it while the body is
	// in memory
	softCeiling = 200 << 20
)

// tuneMemory sets the garbage collector so that it uses spare memory and saves processor time. The
// environment variables GOGC and GOMEMLIMIT have priority.
func tuneMemory(getenv func(string) string) {
	if getenv("GOGC") == "" {
		debug.SetGCPercent(collectAt)
	}
	if getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(softCeiling)
	}
}
