// Package schemas is the life of descriptor sets: uploads, the watched directory and gRPC servers
// put them into the registry by which bodies are read, and into the store, whole or not at all.
// Every version is kept, so that old letters can be read after a set has changed. It reads no
// bodies, but for a try.
package schemas

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/descriptor"
	"github.com/deadletteroffice/dlo/internal/payload"
)

// Store keeps descriptor sets. A change, its audit and the letters that are to be read again are
// one commit.
type Store interface {
	SchemaVersions(ctx context.Context, newest int, each func(deadletter.SchemaVersion) error) error // in the order in which they became current
	AddSchemaVersion(ctx context.Context, v deadletter.SchemaVersion, detail string, r deadletter.Reread) (deadletter.SchemaVersion, error)
	RemoveSchema(ctx context.Context, name, by, detail string, r deadletter.Reread) error
	TypeCounts(ctx context.Context, types []string) (map[string]int, error) // of letters
}

// Options are the parts of a Library; every zero value is usable.
type Options struct {
	Directory  string                                                        // watched; "" = none
	Reflection []string                                                      // gRPC servers, host:port
	Decoder    func() *payload.Decoder                                       // how bodies are read now; with Untyped, to try sets
	Untyped    func(ctx context.Context, n int) ([]deadletter.Letter, error) // the newest letters that no schema reads; nil: sets are not tried
	Between    func(change func() error) error                               // runs a change while no letter is read anew; nil: at once
	Log        *slog.Logger                                                  // discarded when nil
	Now        func() time.Time                                              // time.Now when nil
}

// Library owns the registry. Its methods are safe for concurrent use.
type Library struct {
	Options
	store    Store
	registry *descriptor.Registry
	change   sync.Mutex // held while sets change: one change at a time

	mu       sync.Mutex
	problems map[string][]string // by where they are: stored, the directory
	servers  map[string]deadletter.SchemaServer
	seen     footprint // of the directory, as it was read last
}

// New returns a library without sets; Load fills it.
func New(store Store, o Options) *Library {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Between == nil {
		o.Between = func(change func() error) error { return change() }
	}
	return &Library{Options: o, store: store, registry: descriptor.NewRegistry(), problems: map[string][]string{}, servers: map[string]deadletter.SchemaServer{}}
}

// Registry is what bodies are read by. It is the same for the life of the library, and changes with
// it.
func (l *Library) Registry() *descriptor.Registry { return l.registry }

// Places of problems.
const (
	stored  = "stored"
	watched = "the directory"
)

// Load takes in the stored versions, and reads the directory. What cannot be read is a problem, and
// the rest counts. An error is one of the store.
func (l *Library) Load(ctx context.Context) error {
	var bad []string
	err := l.store.SchemaVersions(ctx, descriptor.MaxVersions, func(v deadletter.SchemaVersion) error {
		s, err := descriptor.ReadSet(v.Content)
		if err != nil {
			bad = append(bad, fmt.Sprintf("%s %s, as it is stored: %v", deadletter.Visible(v.Name), short(v.Version), err))
			return nil
		}
		payload.Prepare(s)
		l.registry.Add(v, s)
		return nil
	})
	if err != nil {
		return err
	}
	l.say(stored, bad)
	if err := l.dropGone(ctx); err != nil {
		return err
	}
	if err := l.readDirectory(ctx); err != nil {
		return err
	}
	l.Log.Info("schemas", "sets", len(l.current()), "types", len(l.registry.Types()))
	return nil
}

// Refresh reads the directory and asks the servers at once.
func (l *Library) Refresh(ctx context.Context) {
	if err := l.readDirectory(ctx); err != nil {
		l.Log.Error("schemas", "directory", l.Directory, "err", err)
	}
	var asked sync.WaitGroup
	for _, address := range l.Reflection {
		asked.Go(func() { l.ask(ctx, address) })
	}
	asked.Wait()
}

// Run watches the directory and asks the servers, until ctx ends.
func (l *Library) Run(ctx context.Context) error {
	var loops sync.WaitGroup
	if l.Directory != "" {
		loops.Go(func() { every(ctx, look, func() { l.watch(ctx) }) })
	}
	for _, address := range l.Reflection {
		loops.Go(func() {
			l.ask(ctx, address)
			every(ctx, askAgain, func() { l.ask(ctx, address) })
		})
	}
	loops.Wait()
	return nil
}

func every(ctx context.Context, d time.Duration, f func()) {
	tick := time.NewTicker(d)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			f()
		case <-ctx.Done():
			return
		}
	}
}

// Status says where sets come from and what is wrong there.
func (l *Library) Status() deadletter.SchemaStatus {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := deadletter.SchemaStatus{Directory: l.Directory, Problems: slices.Concat(l.problems[stored], l.problems[watched])}
	for _, address := range l.Reflection {
		server := l.servers[address]
		server.Address = address
		s.Servers = append(s.Servers, server)
	}
	return s
}

// say replaces the problems of a place, and logs them when they are new.
func (l *Library) say(place string, list []string) {
	l.mu.Lock()
	same := slices.Equal(l.problems[place], list)
	l.problems[place] = list
	l.mu.Unlock()
	if same {
		return
	}
	for _, text := range list {
		l.Log.Error("schemas", "place", place, "err", text)
	}
}

// adopt makes a schema the newest version of a set, for good. The caller holds change.
func (l *Library) adopt(ctx context.Context, v deadletter.SchemaVersion, s *descriptor.Schema, c *descriptor.Change) error {
	content, err := s.Content()
	if err != nil {
		return err
	}
	v.Version, v.Content = s.Version(), content
	name := v.Name + " " + short(v.Version)
	detail := fmt.Sprintf("set %s from %s: %s; %s and %s added, %d changed, %d removed", name, cmp.Or(v.Detail, string(v.Source)),
		deadletter.Plural(len(s.Types()), "type", "types"), deadletter.Plural(len(c.Added)-c.Enums, "type", "types"), deadletter.Plural(c.Enums, "enum", "enums"), len(c.Changed), len(c.Removed))
	err = l.Between(func() error {
		kept, err := l.store.AddSchemaVersion(ctx, v, deadletter.Visible(deadletter.Cut(detail, 1000)), deadletter.Reread{Why: "set " + deadletter.Visible(name), Types: notNil(c.Affected)})
		if err == nil {
			payload.Prepare(s)
			l.registry.Add(kept, s)
		}
		return err
	})
	if err == nil {
		l.Log.Info("set in use", "set", deadletter.Visible(name), "source", string(v.Source), "types", len(s.Types()))
	}
	return err
}

// drop takes a set out of use, for good. The caller holds change.
func (l *Library) drop(ctx context.Context, name, by, why string) error {
	types := l.typesOf(name)
	detail := fmt.Sprintf("set %s with %d types%s", name, len(types), why)
	err := l.Between(func() error {
		err := l.store.RemoveSchema(ctx, name, by, deadletter.Visible(deadletter.Cut(detail, 1000)), deadletter.Reread{Why: "without set " + deadletter.Visible(name), Types: notNil(types)})
		if err == nil {
			l.registry.Remove(name)
		}
		return err
	})
	if err == nil {
		l.Log.Info("set removed", "set", deadletter.Visible(name))
	}
	return err
}

// notNil: of a Reread, no types is not the same as all types.
func notNil(types []string) []string { return append([]string{}, types...) }

func short(version string) string { return version[:min(8, len(version))] }

// current lists the newest version of each set.
func (l *Library) current() []descriptor.Set {
	return slices.DeleteFunc(l.registry.Sets(), func(s descriptor.Set) bool { return !s.Current })
}

// typesOf returns the types of all versions of a set.
func (l *Library) typesOf(name string) []string {
	var types []string
	for _, s := range l.registry.Sets() {
		if s.Name == name {
			types = append(types, s.Types...)
		}
	}
	slices.Sort(types)
	return slices.Compact(types)
}

// letters counts those that have one of the types.
func (l *Library) letters(ctx context.Context, types []string) (int, error) {
	counts, err := l.store.TypeCounts(ctx, notNil(types))
	n := 0
	for _, c := range counts {
		n += c
	}
	return n, err
}

// setName checks the name of a set, which is made of that of the file when there is none.
func setName(name, fileName string) (string, error) {
	if name == "" {
		name = fileName[strings.LastIndexAny(fileName, `/\`)+1:]
		for _, ext := range []string{".gz", ".binpb", ".pb", ".desc", ".protoset", ".proto", ".zip", ".bin"} {
			name = strings.TrimSuffix(name, ext)
		}
	}
	switch {
	case name == "":
		return "", fmt.Errorf("%w: the set needs a name", deadletter.ErrInvalid)
	case len(name) > maxName || !nameOfASet.MatchString(name):
		return "", fmt.Errorf("%w: the name of a set begins with a letter or a digit, has letters, digits, spaces and . _ - + ( ) alone, and at most %d bytes", deadletter.ErrInvalid, maxName)
	}
	return name, nil
}

const maxName = 200 // bytes

// nameOfASet is what a set may be called that is uploaded: no path, and nothing that a page, a
// shell or a log would take for something else.
var nameOfASet = regexp.MustCompile(`^[\pL\pN]([\pL\pN\pM ._+()-]*[\pL\pN\pM._+()-])?$`)
