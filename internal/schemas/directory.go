package schemas

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/descriptor"
)

// look is the time between two checks of the directory. The check compares names, sizes and times,
// which is enough. It also works on network disks and in containers, where no event reports a
// changed file.
const look = 2 * time.Second

const maxLooked = 20_000 // maximum number of names that are watched; the rest of a larger directory is ignored

// footprint identifies the state of a directory.
type footprint struct {
	hash  [32]byte
	fresh bool // a file was written so recently that another write might not change its time
}

// footprintOf returns the footprint of a directory.
func footprintOf(dir string, now time.Time) footprint {
	var p footprint
	all := sha256.New()
	n := 0
	fsys := os.DirFS(dir)
	err := fs.WalkDir(fsys, ".", func(name string, e fs.DirEntry, err error) error {
		if n++; n > maxLooked {
			return fs.SkipAll
		}
		if base := path.Base(name); base != "." && base[0] == '.' {
			if e != nil && e.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if err != nil {
			fmt.Fprintf(all, "%q %v\n", name, err)
			return nil
		}
		// for a link, these are the facts about its target, because Kubernetes changes the target
		// when a ConfigMap changes
		info, err := fs.Stat(fsys, name)
		if err != nil {
			fmt.Fprintf(all, "%q %v\n", name, err)
			return nil
		}
		if info.IsDir() {
			return nil
		}
		fmt.Fprintf(all, "%q %d %d\n", name, info.Size(), info.ModTime().UnixNano())
		if age := now.Sub(info.ModTime()); age > -look && age < look {
			p.fresh = true
		}
		return nil
	})
	fmt.Fprint(all, err)
	all.Sum(p.hash[:0])
	return p
}

// watch reads the directory if it has changed since the last time.
func (l *Library) watch(ctx context.Context) {
	l.mu.Lock()
	seen := l.seen
	l.mu.Unlock()
	if p := footprintOf(l.Directory, l.Now()); p == seen && !p.fresh {
		return
	}
	if err := l.readDirectory(ctx); err != nil && ctx.Err() == nil {
		l.Log.Error("the directory of schemas cannot be read", "directory", l.Directory, "err", err)
	}
}

// readDirectory reads the sets of the directory and puts them into use. If a file cannot be read,
// readDirectory records a problem and leaves the set of that file unchanged. While there is such a
// problem, no set is removed. readDirectory returns only the errors of the store.
func (l *Library) readDirectory(ctx context.Context) error {
	if l.Directory == "" {
		return nil
	}
	l.change.Lock()
	defer l.change.Unlock()
	p := footprintOf(l.Directory, l.Now())
	if _, err := os.Stat(l.Directory); errors.Is(err, fs.ErrNotExist) {
		var bad []string
		if slices.ContainsFunc(l.current(), fromDirectory) {
			bad = []string{
				"the directory " + deadletter.Visible(l.Directory) +
					" is gone: its sets stay in use; put an empty one there to remove them",
			}
		}
		l.setProblems(watched, bad)
		l.setSeen(p)
		return nil
	}
	found, errs := descriptor.ReadDir(ctx, os.DirFS(l.Directory))
	var bad []string
	for _, err := range errs {
		bad = append(bad, deadletter.VisibleLines(err.Error()))
	}
	var failure error
	for _, f := range found {
		if f.Schema == nil {
			continue
		}
		current, was := l.registry.Current(f.Name)
		switch {
		case current != nil && was.Source == deadletter.SchemaUpload:
			bad = append(
				bad,
				fmt.Sprintf(
					"%s: a set of this name was uploaded, and is the one in use; remove it, or rename the file",
					deadletter.Visible(f.Name),
				),
			)
		case current != nil && was.Source == deadletter.SchemaReflection:
			bad = append(
				bad,
				fmt.Sprintf(
					"%s: a server has this name, and its types are in use; rename the file", deadletter.Visible(f.Name),
				),
			)
		case current != nil && current.LostBy(f.Schema) != "":
			bad = append(bad, fmt.Sprintf(
				"%s: it imports %s, which is gone; the version before stays in use until that file is there again",
				deadletter.Visible(f.Name), deadletter.Visible(current.LostBy(f.Schema)),
			))
		case current != nil && (f.Part || current.Version() == f.Schema.Version()):
		default:
			c := l.registry.Compare(f.Name, f.Schema)
			v := deadletter.SchemaVersion{
				Name:   f.Name,
				Source: deadletter.SchemaDirectory,
				Detail: path.Join(l.Directory, f.Name),
				By:     deadletter.Service.Name,
			}
			failure = l.adopt(ctx, v, f.Schema, &c)
		}
		if failure != nil {
			break
		}
	}
	if failure == nil && len(errs) == 0 {
		failure = l.dropDeleted(ctx, found)
	}
	l.setProblems(watched, bad)
	if failure != nil {
		p = footprint{} // read the directory again at the next check
	}
	l.setSeen(p)
	return failure
}

// dropDeleted removes the sets of the directory whose files no longer exist.
func (l *Library) dropDeleted(ctx context.Context, found []descriptor.Found) error {
	for _, s := range l.current() {
		if !fromDirectory(s) || slices.ContainsFunc(found, func(f descriptor.Found) bool { return f.Name == s.Name }) {
			continue
		}
		if err := l.drop(ctx, s.Name, deadletter.Service.Name, ": "+s.Detail+" is deleted"); err != nil {
			return err
		}
	}
	return nil
}

func fromDirectory(s descriptor.Set) bool { return s.Source == deadletter.SchemaDirectory }

func (l *Library) setSeen(p footprint) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen = p
}
