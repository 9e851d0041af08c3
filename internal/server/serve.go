// Package server assembles dlo. It creates the store, the broker links and all other components,
// connects them, and starts and stops them in order. It contains the commands that open a file or
// connect to a broker.
package server

import (
	"context"
	"fmt"
	"io"
	"runtime/debug"

	"github.com/alecthomas/kong"

	"github.com/deadletteroffice/dlo/internal/config"
)

// Serve is the command `dlo serve`.
type Serve struct {
	config.File
	AcceptStore bool `name:"accept-store" help:"Confirm that the store is current if nothing proves any more that it is not an older copy. Letters that are due are then sent."`
}

// Run drains, retries and shows letters until ctx ends.
func (c Serve) Run(ctx context.Context, o Options) error {
	path, err := c.Path(o.Getenv)
	if err != nil {
		return wrong("%w", err)
	}
	if path != "" {
		path = kong.ExpandPath(path) // pages show the path to people who do not know dlo's working directory
	}
	cfg, err := config.Load(path, o.Getenv)
	if err != nil {
		return err
	}
	tuneMemory(o.Getenv)
	o.AcceptStore = c.AcceptStore
	s, err := New(ctx, cfg, o)
	if err != nil {
		return err
	}
	return s.Run(ctx)
}

// Options holds the inputs and outputs that a server gets from its process.
type Options struct {
	Getenv      func(string) string
	Log         io.Writer // text, one line per event
	Out         io.Writer // output of a command
	Version     string
	AcceptStore bool               // set if a person has confirmed that the store is current
	Crash       func(point string) // called at named points, for tests; nil in production
}

// refusedError is an error that carries the exit code of the process.
type refusedError struct {
	error
	code int
}

func (e refusedError) ExitCode() int { return e.code }
func (e refusedError) Unwrap() error { return e.error }

// wrong returns the error for a mistake in the configuration or on the command line. The process
// then exits with code 2.
func wrong(format string, args ...any) error {
	return refusedError{fmt.Errorf("usage: "+format, args...), 2}
}

const (
	collectAt   = 300       // growth in per cent; most memory of a window is free before the next window
	softCeiling = 200 << 20 // bytes; the collector works hard near this limit. A larger body exceeds it while it is in memory
)

// tuneMemory sets the garbage collector to use spare memory and save processor time. The
// environment variables GOGC and GOMEMLIMIT take precedence.
func tuneMemory(getenv func(string) string) {
	if getenv("GOGC") == "" {
		debug.SetGCPercent(collectAt)
	}
	if getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(softCeiling)
	}
}
