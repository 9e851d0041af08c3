package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// options are the command-line options of the demo.
type options struct {
	folder  string // folder that is created anew at the start and removed at the end
	install bool   // install RabbitMQ if it is missing
	listen  string // address of the dashboard; "" = the default address, or any free port if that one is in use
}

// show runs the demo until ctx is done or a part of the demo fails. It then stops everything that
// it started.
func show(ctx context.Context, p *program, opts options) (failure error) {
	f, err := takeFolder(opts.folder)
	if err != nil {
		return err
	}
	keep := false // true if the folder must stay, because dlo's log in it explains a failure
	defer func() {
		if keep {
			p.say("dlo's log: " + f.path + "/dlo.log")
			return
		}
		failure = errors.Join(failure, f.remove())
	}()

	b, err := openBroker(ctx, p, opts.install)
	if err != nil {
		return unlessDone(ctx, err)
	}
	defer b.stop()
	p.say("compiling dlo (some 15 s; the first time a minute or two)")
	if err := build(ctx, p.module, f.path); err != nil {
		return unlessDone(ctx, err)
	}
	if err := configure(f.path); err != nil {
		return err
	}
	defer func() { // deferred before dlo starts, so that it runs after dlo has ended; dlo uses these queues
		if err := b.tidy(f.path); err != nil {
			p.say("not everything could be removed from the broker: " + err.Error())
		}
	}()
	p.say("starting dlo, and waiting until it reads its inbox")
	o, err := openOffice(ctx, f.path, cmp.Or(opts.listen, freeListen()), b)
	if err != nil {
		keep = ctx.Err() == nil
		return unlessDone(ctx, err)
	}
	defer func() {
		p.say("stopping what the demo started (up to 10 s)")
		o.stop()
	}()
	p.say("declaring the queues of the shop, and the policy that leads their dead letters to dlo")
	if err := prepare(ctx, b); err != nil {
		return unlessDone(ctx, err)
	}
	err = perform(ctx, p, f, b, o, story(b, o, "Press f and Enter here (or: make demo-fix)")+
		"\n  f Enter: the fix, again: break it    q Enter or Ctrl-C: stop everything\n")
	keep = err != nil
	return err
}

// prepare declares the shop's exchanges and queues on the broker. It also makes the queues send
// their dead letters to dlo.
func prepare(ctx context.Context, b *broker) error {
	if b.management == nil {
		return declare(b.connection, b.names.exchange)
	}
	if err := declare(b.connection, ""); err != nil {
		return err
	}
	return setPolicy(ctx, b.management, b.names.exchange)
}

// These are the two versions of the shop's services: first the one with the bugs, then the one with
// the fix.
const (
	brokenVersion = "1.4.0"
	fixedVersion  = "1.4.1"
)

// perform runs the services and prints the story and their progress. It returns when ctx is done or
// a part of the demo fails.
func perform(ctx context.Context, p *program, f *folder, b *broker, o *office, story string) error {
	ctx, quit := context.WithCancel(ctx)
	defer quit()
	types, err := loadSchemas()
	if err != nil {
		return err
	}
	s := &shop{annotations: b.names.annotations, types: types, tell: p.teller}
	if err := o.recordDeploy(ctx, brokenVersion); err != nil {
		return err
	}
	deploy := func(fixed bool) string {
		s.fixed.Store(fixed)
		version := brokenVersion
		if fixed {
			version = fixedVersion
		}
		if err := o.recordDeploy(ctx, version); err != nil {
			p.say("the deploy could not be marked: " + err.Error())
		}
		if fixed {
			return "the fix is deployed: what you requeue now is accepted (but for three letters that are no protobuf, and a text message that has to be shortened)"
		}
		return "the services are broken again"
	}
	announce := func(fixed bool) string {
		said := deploy(fixed)
		p.say("\n  " + said + "\n")
		return said
	}
	running, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if err := serveControl(running, f.path, o.url, announce); err != nil {
		return err
	}
	p.say(story)
	go keys(p.stdin, func() { announce(!s.fixed.Load()) }, quit) // returns when the terminal is closed
	go p.teller.run(running)

	work := make(chan error, 1)
	go func() { work <- s.serve(running, b) }()
	var dloEnded <-chan struct{}
	if o.process != nil {
		dloEnded = o.process.ended
	}
	var failure error
	select {
	case <-ctx.Done():
	case <-dloEnded:
		failure = fmt.Errorf("dlo ended by itself (%v)%s", o.process.err, o.lastWords())
	case err := <-work:
		work <- nil
		if ctx.Err() == nil {
			failure = fmt.Errorf("a service of the demo failed: %w", err)
		}
	}
	cancel(nil)
	select {
	case <-work:
	case <-time.After(10 * time.Second): // do not wait longer for a channel to which the broker does not respond
	}
	return failure
}

// story returns the text that the demo prints at its start. The text lists the steps that the user
// can try. The parameter "fix" says how to deploy the fix.
func story(b *broker, o *office, fix string) string {
	return fmt.Sprintf(`
  Dashboard    %s
  Broker       %s

  1. A shop publishes. email-queue, sms-queue and billing-queue get a copy of each shop.events message; two of the services have bugs.
  2. dlo takes what they reject, sends it again after 5 s and 15 s, and then shows it as dead. Open one: the decoded payload says why.
  3. %s. The fix is deployed.
  4. Requeue the dead letters that have a type (Letters, exclude no type). Each goes to the tail of the queue it died in, and to no other.
     One of the canary comes back, because no fix helps its cause, and it stops again: Resume anyway.
  5. After 30 s without a return a letter is quiet. One comes back: its text is too long for the provider. Shorten it (Edit and requeue).
  6. Three are left that no fix can read: discard those.
`, o.url, b.describe(), fix)
}

// keys reads lines of input. It calls "toggle" for each line that is "f" and "quit" for each line
// that is "q". It returns at the end of the input.
func keys(in io.Reader, toggle, quit func()) {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		switch strings.ToLower(strings.TrimSpace(lines.Text())) {
		case "f":
			toggle()
		case "q":
			quit()
		}
	}
}
