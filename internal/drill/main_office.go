package drill

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// mainOffice is the name of the dlo that most failures use.
const mainOffice = "main"

// readyWait is the time limit until a dlo drains all its inboxes. It is long, because the
// management API shows a new quorum queue only after some seconds.
const readyWait = time.Minute

// createFiles creates the files that every configuration names.
func (g *ground) createFiles() error {
	secret := make([]byte, 32)
	rand.Read(secret)
	if err := os.WriteFile(
		filepath.Join(g.folder, "secret"), []byte("whsec_"+base64.StdEncoding.EncodeToString(secret)), 0o600,
	); err != nil {
		return err
	}
	return os.Mkdir(filepath.Join(g.folder, "schemas"), 0o700)
}

// prepare declares the queues that the failures need, starts the main dlo, and prepares the
// failures.
func (g *ground) prepare(ctx context.Context, list []Failure) error {
	for _, f := range list {
		if f.inbox != "" {
			if err := g.site.declare(ctx, f.inbox); err != nil {
				return err
			}
		}
	}
	if err := g.open(ctx, mainOffice, g.mainConfig(list)); err != nil {
		return err
	}
	for _, f := range list {
		if f.work != "" {
			if err := g.site.workQueue(ctx, f.work); err != nil {
				return err
			}
		}
		if f.before != nil {
			if err := f.before(ctx, g); err != nil {
				return fmt.Errorf("before %s: %w", f.Name, err)
			}
		}
	}
	return nil
}

// open starts a dlo. It waits until this dlo drains its inboxes and has no problems.
func (g *ground) open(ctx context.Context, name, config string) error {
	o, err := g.start(ctx, name, config)
	if err != nil {
		return err
	}
	err = waitUntil(ctx, "dlo is ready", readyWait, func() bool {
		l := o.lastLook()
		for _, read := range l.inboxes {
			if !read {
				return false
			}
		}
		return l.status == 200 && len(l.problems) == 0
	})
	if l := o.lastLook(); err != nil && len(l.problems) > 0 {
		return fmt.Errorf(
			"something is wrong before anything was done: %s %s %s", l.problems[0].Title, l.problems[0].Text,
			l.problems[0].Cure,
		)
	}
	return err
}

// entry returns an entry for the brokers section of a configuration. The entry has no URL, because
// the file must not contain a password. The function Start gets the URL instead.
func (g *ground) entry(name, more string) string {
	return fmt.Sprintf("  - {name: %s, %s}\n", name, more)
}

// amqp returns the URL of the broker with the vhost and the user of the drill. It keeps the TLS
// options of the configured URL.
func (g *ground) amqp() string {
	u := g.o.AMQP
	u.User, u.Path, u.RawPath = url.UserPassword(
		g.site.user, g.site.password,
	), "/"+g.site.vhost, "/"+url.PathEscape(g.site.vhost)
	return u.String()
}

func (g *ground) management() string {
	u := g.o.Management
	u.User = url.UserPassword(g.site.user, g.site.password)
	return u.String()
}

// config returns a configuration for a dlo of the drill. It contains the default settings, a
// smaller disk reserve, and the given additions.
func (g *ground) config(name, entries, more string) string {
	return fmt.Sprintf(`listen: 127.0.0.1:0
store: %q
schemas: {directory: %q}
disk: {reserve: 1MiB}
brokers:
%sproblems: {notify: [pager]}
default: {retry: {delays: [1h]}, dead: {severity: page, notify: [pager]}}
channels:
  pager: {webhook: {url: %q, secret_file: %q}, allow_private: true}
  broken: {webhook: {url: %q, secret_file: %q}, allow_private: true}
%s`, filepath.Join(g.folder, name+".db"), filepath.Join(g.folder, "schemas"), entries, g.pager.url+"/"+name,
		filepath.Join(g.folder, "secret"), g.pager.url+"/broken", filepath.Join(g.folder, "secret"), more)
}

// mainConfig returns the configuration of the main dlo.
func (g *ground) mainConfig(list []Failure) string {
	inboxes, entries, rules := []string{"dlo.letters"}, "", ""
	for _, f := range list {
		if f.inbox != "" {
			inboxes = append(inboxes, f.inbox)
		}
		if f.own != "" {
			entries += g.entry(
				entryOf(f.own), fmt.Sprintf("exchange: %s.dlx, inboxes: [%s], annotations: \"\"", f.own, f.own),
			)
		}
		if f.rule != "" {
			rules += fmt.Sprintf("  - {name: %s, match: {queue: %s}, %s}\n", f.Name, f.work, f.rule)
		}
	}
	if rules != "" {
		rules = "rules:\n" + rules
	}
	return g.config(mainOffice, g.entry(mainEntry, "inboxes: ["+strings.Join(inboxes, ", ")+"]")+entries, rules)
}

// mainEntry is the name of the broker in the configuration of the main dlo. Some inboxes of the
// drill have a broker entry of their own. The function entryOf returns the name of such an entry.
const mainEntry = "drill"

func entryOf(inbox string) string { return strings.ReplaceAll(inbox, ".", "-") }
