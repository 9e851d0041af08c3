package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

const (
	maxLists    = 2                // half of the store's readers; the other half is for requests by id
	maxOwnLists = maxLists - 1     // the maximum for one principal, so that nobody can use all places
	listTime    = 20 * time.Second // how long a request may read lists of letters, after it has got its place
)

// lists is a limit for requests that read many letters: only some of them run at the same time. One
// text query may scan all letters. Other requests to the store must not have to wait for such
// queries.
type lists struct {
	places
	mu sync.Mutex
	// by principal; an entry is removed when its principal has no place and does not wait for one
	own map[string]*ownLists
}

type ownLists struct {
	places
	users int
}

// waitForPlace waits until the principal with the given name may read a list, because the number of
// lists that run at the same time is limited. It gives up when ctx ends. The caller must call the
// returned function when the list is read. If "name" is "", there is no limit for the principal.
func (l *lists) waitForPlace(ctx context.Context, name string) (release func(), err error) {
	if name == "" {
		return l.places.waitForPlace(ctx)
	}
	own := l.enter(name)
	leave, err := own.waitForPlace(ctx)
	if err != nil {
		l.leave(name)
		return nil, err
	}
	give, err := l.places.waitForPlace(ctx)
	if err != nil {
		leave()
		l.leave(name)
		return nil, err
	}
	return func() { give(); leave(); l.leave(name) }, nil
}

func (l *lists) enter(name string) *ownLists {
	l.mu.Lock()
	defer l.mu.Unlock()
	own := l.own[name]
	if own == nil {
		own = &ownLists{places: make(places, maxOwnLists)}
		l.own[name] = own
	}
	own.users++
	return own
}

func (l *lists) leave(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.own[name].users--; l.own[name].users == 0 {
		delete(l.own, name)
	}
}

// errSlow is the error of a list that has taken too long.
var errSlow = fmt.Errorf(
	"%w: the search was stopped after %d s; narrow it, for example with queue: or since:, or use fewer words with * or -",
	deadletter.ErrInvalid, listTime/time.Second,
)

// list reads lists of letters with the function "read". Before that, it waits until the principal
// may do so, because the number of lists that run at the same time is limited. If the reading takes
// too long, list returns errSlow.
func (w *Web) list(ctx context.Context, by deadletter.Principal, read func(ctx context.Context) error) error {
	name := by.Name
	if w.open {
		name = ""
	}
	done, err := w.lists.waitForPlace(ctx, name)
	if err != nil {
		return err
	}
	defer done()
	ctx, cancel := context.WithTimeoutCause(ctx, listTime, errSlow)
	defer cancel()
	if err = read(ctx); err != nil && errors.Is(context.Cause(ctx), errSlow) {
		return errSlow
	}
	return err
}

// inTurn wraps a handler that reads many letters from the store. Such a handler must wait until few
// enough others are running.
func inTurn[T any](w *Web, f func(r *http.Request) (T, error)) func(r *http.Request) (T, error) {
	return func(r *http.Request) (v T, err error) {
		err = w.list(r.Context(), principal(r.Context()), func(ctx context.Context) error {
			v, err = f(r.WithContext(ctx))
			return err
		})
		return v, err
	}
}
