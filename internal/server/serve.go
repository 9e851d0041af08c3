// Package server puts dlo together: it makes the store, the brokers and every room that works, ties
// them to each other, and starts and stops them in order. It holds the commands that open a file or
// a broker.
package server

import (
	"context"
	"fmt"
	"io"
	"runtime/debug"

	"github.com/alecthomas/kong"

	"github.com/deadletteroffice/dlo/internal/config"
)

// Serve is dlo serve.
type Serve struct {
	config.File
	AcceptStore bool `name:"accept-store" help:"Say that the store is current, when nothing is left that proves it is not an older copy; letters that are due are then sent."`
}

// Run drains, retries and shows letters until ctx ends.
func (c Serve) Run(ctx context.Context, o Options) error {
	path, err := c.Path(o.Getenv)
	if err != nil {
		return wrong("%w", err)
	}
	if path != "" {
		path = kong.ExpandPath(path) // pages name the file, to people who do not know where dlo was started
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

// Options are what a server takes from its process.
type Options struct {
	Getenv      func(string) string
	Log         io.Writer // lines of text, one an event
	Out         io.Writer // what a command prints
	Version     string
	AcceptStore bool               // people say that the store is current
	Crash       func(point string) // called at named points, for tests; nil in the product
}

// refusedError is an error with the exit code that stands for it.
type refusedError struct {
	error
	code int
}

func (e refusedError) ExitCode() int { return e.code }
func (e refusedError) Unwrap() error { return e.error }

// wrong is a mistake in the configuration that only the server finds.
func wrong(format string, args ...any) error {
	return refusedError{fmt.Errorf("usage: "+format, args...), 2}
}

const (
	collectAt   = 300       // per cent of growth: most of what a window allocates is gone with the next
	softCeiling = 200 << 20 // bytes; near it the collector works as hard as it must. A larger body passes it for as long as it is in hand
)

// tuneMemory trades memory that nobody misses for processor time. GOGC and GOMEMLIMIT win.
func tuneMemory(getenv func(string) string) {
	if getenv("GOGC") == "" {
		debug.SetGCPercent(collectAt)
	}
	if getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(softCeiling)
	}
}
