package requeue_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/store"
	"github.com/deadletteroffice/dlo/internal/testenv"
)

// TestTheShelfDecidesAsTheStore runs some random schedules on the store in memory and on the real
// store, and compares the outcomes. It shows that the store in memory decides as the real store
// does. The other schedules use only the store in memory, because a thousand of them take too long
// on the real store.
func TestTheShelfDecidesAsTheStore(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "empty.db")
	s, err := store.Open(t.Context(), path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	empty, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, seed := range testenv.Seeds(t, 20) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "dlo.db")
			if err := os.WriteFile(path, empty, 0o600); err != nil {
				t.Fatal(err)
			}
			var memory, real string
			synctest.Test(t, func(t *testing.T) { memory = schedule(t, seed, nil) })
			synctest.Test(t, func(t *testing.T) {
				f := &file{t: t, path: path, ids: map[int]deadletter.ID{}, groups: map[int]deadletter.GroupID{}}
				real = schedule(t, seed, func(d *desk) {
					f.fill(d)
					d.books = f
				})
				f.Close()
			})
			if memory != real {
				t.Errorf("in memory: %s\non the store: %s", memory, real)
			}
		})
	}
}

// file is a real store. Each process opens it again.
type file struct {
	*store.Store
	t      *testing.T
	path   string
	ids    map[int]deadletter.ID // number of a letter -> its id
	groups map[int]deadletter.GroupID
	mu     sync.Mutex // held while the store is opened again
}

func (f *file) open() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.Store != nil {
		f.try(f.Close())
	}
	var err error
	f.Store, err = store.Open(f.t.Context(), f.path, store.Options{})
	f.try(err)
}

func (f *file) try(err error) {
	if err != nil {
		f.t.Error(err)
	}
}

// fill stores and classifies the letters of a desk.
func (f *file) fill(d *desk) {
	f.open()
	w := deadletter.Window{
		Session: 1, Number: 1, Broker: "main", VHost: "/", Inbox: "dlo.letters", Horizon: time.Minute,
		HorizonRows: 1000, Uncertain: deadletter.UncertainHold,
	}
	for _, i := range d.letters {
		a := deadletter.Arrival{
			Exchange:   "dlo.dlx",
			RoutingKey: i.queue,
			Tag:        uint64(i.number),
			Body:       i.body,
			Properties: deadletter.Properties{Headers: deadletter.Table{}},
		}
		w.Arrivals = append(w.Arrivals, a)
	}
	ctx := f.t.Context()
	r, err := f.Receive(ctx, w)
	f.try(err)
	f.try(f.SettleWindow(ctx, r.Window))
	var verdicts []deadletter.Classified
	for n, i := range d.letters {
		f.ids[i.number], d.numbers[r.New[n]] = r.New[n], i.number
		verdicts = append(verdicts, deadletter.Classified{
			Letter:       r.New[n],
			To:           deadletter.ClassifiedRetry,
			Origin:       deadletter.Origin{Broker: "main", VHost: "/", Queue: i.queue},
			Rule:         i.rule,
			DueAt:        i.due,
			Waiter:       i.waiter,
			Wait:         i.wait,
			GroupKey:     [32]byte{byte(i.group)},
			GroupTitle:   "group",
			GroupVersion: 1,
		})
	}
	f.try(f.Classify(ctx, verdicts))
	for _, i := range d.letters {
		l, err := f.Letter(ctx, f.ids[i.number])
		f.try(err)
		f.groups[i.group] = l.Group
	}
}

func (f *file) pause(queue string, group int, on bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	g := deadletter.Guard{
		Origin: deadletter.Origin{Broker: "main", VHost: "/", Queue: queue},
		Group:  f.groups[group],
		By:     "local",
	}
	var err error
	if on {
		_, err = f.Pause(f.t.Context(), g)
	} else {
		err = f.Resume(f.t.Context(), g)
	}
	if !errors.Is(err, deadletter.ErrConflict) { // A conflict means that the retries are already paused or resumed.
		f.try(err)
	}
}

func (f *file) look(i *item) (deadletter.State, int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	l, err := f.Letter(f.t.Context(), f.ids[i.number])
	f.try(err)
	return l.State, l.Attempts
}
