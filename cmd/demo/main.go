// Command demo is the program that `make demo` runs. It starts a private RabbitMQ, sample services
// and dlo, so that people can see dlo at work within a minute. Two of the services have bugs. The
// command `demo fix` deploys the fix in a running demo, and `demo break` brings the bugs back.
//
// The compose file runs parts of it: `demo shop` runs only the services, with the broker in
// DLO_AMQP_URL and the dlo in DLO_SERVER, and `demo forward` makes a dashboard reachable that
// listens on loopback.
//
// Only the image of the demo contains the command, and dlo does not need it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/deadletteroffice/dlo/internal/testenv"
)

// These are the exit codes of the demo.
const (
	exitFailed  = 1
	exitUsage   = 2
	exitMissing = 3 // RabbitMQ is not installed
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		<-ctx.Done()
		stop() // a second signal ends the demo immediately, and its children with it
	}()
	os.Exit(exitCode(run(withLauncher(ctx), os.Args[1:], os.Getenv, os.Stdin, os.Stdout, os.Stderr), os.Stderr))
}

// withLauncher returns a context that is done when ctx is done, or when the `go run` or `make`
// process that started the demo has ended.
func withLauncher(ctx context.Context) context.Context {
	parent := launcher()
	if parent == 0 {
		return ctx
	}
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		for range time.Tick(time.Second) {
			if os.Getppid() != parent {
				cancel()
				return
			}
		}
	}()
	return ctx
}

// program holds what every command of the demo needs.
type program struct {
	*teller
	module string // folder that contains go.mod
	getenv func(string) string
	stdin  io.Reader
	stdout io.Writer
	stderr io.Writer
}

var errUsage = errors.New(
	"usage: demo [-folder DIR] [-install=false] [-listen ADDRESS] [fix | break | shop | forward]",
)

func run(
	ctx context.Context, args []string, getenv func(string) string, stdin io.Reader, stdout, stderr io.Writer,
) error {
	module, outside := moduleFolder()
	usual := filepath.Join(module, ".cache", "demo")
	if outside != nil {
		usual = filepath.Join(os.TempDir(), "dlo-demo")
	}
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	folder := flags.String("folder", usual, "")
	install := flags.Bool("install", true, "")
	listen := flags.String("listen", "", "")
	if err := flags.Parse(args); err != nil {
		return errUsage
	}
	p := &program{&teller{out: stdout}, module, getenv, stdin, stdout, stderr}
	switch {
	case flags.NArg() == 0 && outside != nil:
		return outside
	case flags.NArg() == 0:
		err := show(ctx, p, options{*folder, *install, *listen})
		if err == nil {
			p.say("stopped; nothing is left running")
		}
		return err
	case flags.NArg() == 1 && (flags.Arg(0) == "fix" || flags.Arg(0) == "break"):
		return tellDemo(ctx, *folder, flags.Arg(0), stdout)
	case flags.NArg() == 1 && flags.Arg(0) == "shop":
		return runShop(ctx, p, *folder)
	case flags.NArg() == 1 && flags.Arg(0) == "forward" && *listen != "":
		l, err := net.Listen("tcp", *listen)
		if err != nil {
			return err
		}
		return forward(ctx, l, dashboard(getenv))
	}
	return errUsage
}

// exitCode prints an error and returns the exit code for it.
func exitCode(err error, stderr io.Writer) int {
	if err == nil {
		return 0
	}
	fmt.Fprintln(stderr, "demo:", err)
	switch {
	case errors.Is(err, errUsage):
		return exitUsage
	case errors.Is(err, testenv.ErrMissing):
		return exitMissing
	}
	return exitFailed
}
