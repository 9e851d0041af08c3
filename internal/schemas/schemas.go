// Package schemas manages descriptor sets while dlo runs. Uploads, the watched directory and gRPC
// servers provide sets. The package puts each set into the store and into the registry, either
// completely or not at all. Bodies are decoded with the types in this registry. The package keeps
// all versions, so that old letters can be decoded after a set has changed. It decodes bodies only
// to try out a set.
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

// Store stores descriptor sets. It writes a change, its audit entry and the list of letters to read
// again in one transaction.
type Store interface {
	// in the order in which they became current
	SchemaVersions(ctx context.Context, newest int, each func(deadletter.SchemaVersion) error) error
	AddSchemaVersion(
		ctx context.Context, v deadletter.SchemaVersion, detail string, r deadletter.Reread,
	) (deadletter.SchemaVersion, error)
	RemoveSchema(ctx context.Context, name, by, detail string, r deadletter.Reread) error
	TypeCounts(ctx context.Context, types []string) (map[string]int, error) // how many letters have each of the types
}

// Options are the settings of a Library. The zero value is valid for each of them.
type Options struct {
	Directory  string   // the directory to watch; "" = none
	Reflection []string // gRPC servers, as host:port
	// returns the decoder that is now in use; together with Untyped, it is needed to try out sets
	Decoder func() *payload.Decoder
	// returns the newest letters that no schema can decode; nil = sets are not tried out
	Untyped func(ctx context.Context, n int) ([]deadletter.Letter, error)
	// calls the function change while no letter is being read again; nil = calls it at once
	Between func(change func() error) error
	Log     *slog.Logger     // nil = no log
	Now     func() time.Time // nil = time.Now
}

// Library owns the registry of schemas. Its methods are safe for concurrent use.
type Library struct {
	Options
	store    Store
	registry *descriptor.Registry
	change   sync.Mutex // held while sets change, so that there is only one change at a time

	mu       sync.Mutex
	problems map[string][]string // problems by place, which is one of the constants stored and watched
	servers  map[string]deadletter.SchemaServer
	seen     footprint // the footprint of the directory when it was last read
}

// New returns a Library without sets. Load loads them.
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
	return &Library{
		Options:  o,
		store:    store,
		registry: descriptor.NewRegistry(),
		problems: map[string][]string{},
		servers:  map[string]deadletter.SchemaServer{},
	}
}

// Registry returns the registry with which bodies are decoded. It is always the same object, and
// its contents change.
func (l *Library) Registry() *descriptor.Registry { return l.registry }

// The problems with schemas are listed by the place in which they were found. These constants are
// the names of two places: the sets in the store, and the watched directory.
const (
	stored  = "stored"
	watched = "the directory"
)

// Load loads the stored versions of schema sets and reads the directory. If a version or a file
// cannot be read, Load records a problem and uses the rest. Load returns only the errors of the
// store.
func (l *Library) Load(ctx context.Context) error {
	bad, err := AddStored(ctx, l.store, l.registry)
	if err != nil {
		return err
	}
	l.setProblems(stored, bad)
	if err := l.dropGone(ctx); err != nil {
		return err
	}
	if err := l.readDirectory(ctx); err != nil {
		return err
	}
	l.Log.Info("schemas loaded", "sets", len(l.current()), "types", len(l.registry.Types()))
	return nil
}

// AddStored adds the stored versions of schema sets to a registry. It returns the problems of those
// that cannot be read.
func AddStored(ctx context.Context, store Store, to *descriptor.Registry) (bad []string, err error) {
	err = store.SchemaVersions(ctx, descriptor.MaxVersions, func(v deadletter.SchemaVersion) error {
		s, err := descriptor.ReadSet(v.Content)
		if err != nil {
			bad = append(
				bad,
				fmt.Sprintf("%s %s, as it is stored: %v", deadletter.Visible(v.Name), shortVersion(v.Version), err),
			)
			return nil
		}
		payload.Prepare(s)
		to.Add(v, s)
		return nil
	})
	return bad, err
}

// Refresh reads the directory, and then the types of all servers at the same time. It returns when
// all of them have been read.
func (l *Library) Refresh(ctx context.Context) {
	if err := l.readDirectory(ctx); err != nil {
		l.Log.Error("the directory of schemas cannot be read", "directory", l.Directory, "err", err)
	}
	var asked sync.WaitGroup
	for _, address := range l.Reflection {
		asked.Go(func() { l.readServer(ctx, address) })
	}
	asked.Wait()
}

// Run watches the directory and asks the servers for their types at regular intervals, until ctx
// ends.
func (l *Library) Run(ctx context.Context) error {
	var loops sync.WaitGroup
	if l.Directory != "" {
		loops.Go(func() { runEvery(ctx, look, func() { l.watch(ctx) }) })
	}
	for _, address := range l.Reflection {
		loops.Go(func() {
			l.readServer(ctx, address)
			runEvery(ctx, askAgain, func() { l.readServer(ctx, address) })
		})
	}
	loops.Wait()
	return nil
}

func runEvery(ctx context.Context, d time.Duration, f func()) {
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

// Status returns where sets come from, and the problems with them.
func (l *Library) Status() deadletter.SchemaStatus {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := deadletter.SchemaStatus{
		Directory: l.Directory,
		Problems:  slices.Concat(l.problems[stored], l.problems[watched]),
	}
	for _, address := range l.Reflection {
		server := l.servers[address]
		server.Address = address
		s.Servers = append(s.Servers, server)
	}
	return s
}

// setProblems replaces the problems of a place. It logs the new ones if they differ from the old
// ones.
func (l *Library) setProblems(place string, list []string) {
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

// adopt makes a schema the newest version of a set, in the store and in the registry. The caller
// must hold the mutex "change".
func (l *Library) adopt(
	ctx context.Context, v deadletter.SchemaVersion, s *descriptor.Schema, c *descriptor.Change,
) error {
	content, err := s.Content()
	if err != nil {
		return err
	}
	v.Version, v.Content = s.Version(), content
	name := v.Name + " " + shortVersion(v.Version)
	detail := fmt.Sprintf(
		"set %s from %s: %s; %s and %s added, %d changed, %d removed", name, cmp.Or(v.Detail, string(v.Source)),
		deadletter.Plural(len(s.Types()), "type", "types"), deadletter.Plural(len(c.Added)-c.Enums, "type", "types"),
		deadletter.Plural(c.Enums, "enum", "enums"), len(c.Changed), len(c.Removed),
	)
	err = l.Between(func() error {
		kept, err := l.store.AddSchemaVersion(
			ctx, v, deadletter.Visible(deadletter.Cut(detail, 1000)), deadletter.Reread{
				Why:   "set " + deadletter.Visible(name),
				Types: payload.WithAnyHolders(l.registry, c.Affected),
				Hides: l.Decoder == nil || l.Decoder().HidesMore(s, c.Affected),
			},
		)
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

// drop removes a set from the registry, and from the sets that the store records as being in use.
// The caller must hold the mutex "change".
func (l *Library) drop(ctx context.Context, name, by, why string) error {
	types := l.typesOf(name)
	detail := fmt.Sprintf("set %s with %d types%s", name, len(types), why)
	err := l.Between(func() error {
		err := l.store.RemoveSchema(ctx, name, by, deadletter.Visible(deadletter.Cut(detail, 1000)), deadletter.Reread{
			Why:   "without set " + deadletter.Visible(name),
			Types: payload.WithAnyHolders(l.registry, types),
		})
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

func shortVersion(version string) string { return version[:min(8, len(version))] }

// current returns the newest version of each set.
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

// letterCount returns how many letters have one of the given types.
func (l *Library) letterCount(ctx context.Context, types []string) (int, error) {
	counts, err := l.store.TypeCounts(ctx, append([]string{}, types...))
	n := 0
	for _, c := range counts {
		n += c
	}
	return n, err
}

// setName checks the name of a set. If the name is empty, it takes the name from the file name.
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
		return "", fmt.Errorf(
			"%w: the name of a set begins with a letter or a digit, contains only letters, digits, spaces and . _ - + ( ), and has at most %d bytes",
			deadletter.ErrInvalid, maxName,
		)
	}
	return name, nil
}

const maxName = 200 // maximum length in bytes

// nameOfASet matches valid names of uploaded sets. A valid name contains no path, and nothing that
// a page, a shell or a log could misinterpret.
var nameOfASet = regexp.MustCompile(`^[\pL\pN]([\pL\pN\pM ._+()-]*[\pL\pN\pM._+()-])?$`)
