// Package schemas manages the life of descriptor sets. Uploads, the watched directory and gRPC
// servers put sets into the store and into the registry with which bodies are decoded, completely
// or not at all. All versions are kept, so that old letters can be decoded after a set has changed.
// The package decodes bodies only to try out a set.
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

// Store stores descriptor sets. A change, its audit entry and the list of letters to read again are
// written in one transaction.
type Store interface {
	SchemaVersions(ctx context.Context, newest int, each func(deadletter.SchemaVersion) error) error // in the order in which they became current
	AddSchemaVersion(ctx context.Context, v deadletter.SchemaVersion, detail string, r deadletter.Reread) (deadletter.SchemaVersion, error)
	RemoveSchema(ctx context.Context, name, by, detail string, r deadletter.Reread) error
	TypeCounts(ctx context.Context, types []string) (map[string]int, error) // of letters
}

// Options are the parts of a Library. Every zero value works.
type Options struct {
	Directory  string                                                        // watched; "" = none
	Reflection []string                                                      // gRPC servers, host:port
	Decoder    func() *payload.Decoder                                       // how bodies are currently decoded; used with Untyped to try sets
	Untyped    func(ctx context.Context, n int) ([]deadletter.Letter, error) // newest letters that no schema can decode; nil = sets are not tried
	Between    func(change func() error) error                               // runs a change while no letter is being read again; nil = immediately
	Log        *slog.Logger                                                  // nil = discarded
	Now        func() time.Time                                              // nil = time.Now
}

// Library owns the registry. Its methods are safe for concurrent use.
type Library struct {
	Options
	store    Store
	registry *descriptor.Registry
	change   sync.Mutex // held while sets change, one change at a time

	mu       sync.Mutex
	problems map[string][]string // by place: stored, the directory
	servers  map[string]deadletter.SchemaServer
	seen     footprint // of the directory when it was last read
}

// New returns a library without sets. Load fills it.
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

// Registry returns the registry with which bodies are decoded. It stays the same object for the
// library's lifetime, while its contents change.
func (l *Library) Registry() *descriptor.Registry { return l.registry }

// Places where problems occur.
const (
	stored  = "stored"
	watched = "the directory"
)

// Load loads the stored versions and reads the directory. Anything that cannot be read becomes a
// problem, and the rest is used. The error comes from the store.
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
	l.Log.Info("schemas loaded", "sets", len(l.current()), "types", len(l.registry.Types()))
	return nil
}

// Refresh reads the directory and queries the servers immediately.
func (l *Library) Refresh(ctx context.Context) {
	if err := l.readDirectory(ctx); err != nil {
		l.Log.Error("the directory of schemas cannot be read", "directory", l.Directory, "err", err)
	}
	var asked sync.WaitGroup
	for _, address := range l.Reflection {
		asked.Go(func() { l.ask(ctx, address) })
	}
	asked.Wait()
}

// Run watches the directory and queries the servers until ctx ends.
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

// Status returns the sources of sets and their problems.
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

// say replaces the problems of a place, and logs them if they have changed.
func (l *Library) say(place string, list []string) {
	l.mu.Lock()
	same := slices.Equal(l.problems[place], list)
	l.problems[place] = list
	l.mu.Unlock()
	if same {
		return
	}
	for _, text := range list {
		l.Log.Error("problem with schemas", "place", place, "err", text)
	}
}

// adopt makes a schema the newest version of a set, in the store and the registry. The caller must
// hold change.
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

// drop removes a set from use, in the store and the registry. The caller must hold change.
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

// notNil returns types as a list that is not nil. In a Reread, a list without types differs from
// nil, which means all types.
func notNil(types []string) []string { return append([]string{}, types...) }

func short(version string) string { return version[:min(8, len(version))] }

// current returns the newest version of each set.
func (l *Library) current() []descriptor.Set {
	return slices.DeleteFunc(l.registry.Sets(), func(s descriptor.Set) bool { return !s.Current })
}

// typesOf returns the types in all versions of a set.
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

// letters returns the number of letters that have one of the types.
func (l *Library) letters(ctx context.Context, types []string) (int, error) {
	counts, err := l.store.TypeCounts(ctx, notNil(types))
	n := 0
	for _, c := range counts {
		n += c
	}
	return n, err
}

// setName checks a set's name. If name is empty, it is derived from the file's name.
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
		return "", fmt.Errorf("%w: the name of a set begins with a letter or a digit, contains only letters, digits, spaces and . _ - + ( ), and has at most %d bytes", deadletter.ErrInvalid, maxName)
	}
	return name, nil
}

const maxName = 200 // bytes

// nameOfASet matches valid names of uploaded sets. A valid name contains no path, and nothing that
// a page, a shell or a log could misinterpret.
var nameOfASet = regexp.MustCompile(`^[\pL\pN]([\pL\pN\pM ._+()-]*[\pL\pN\pM._+()-])?$`)
