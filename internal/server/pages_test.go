package server

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/notify"
	"github.com/deadletteroffice/dlo/internal/operation"
	"github.com/deadletteroffice/dlo/internal/store"
)

// troubled is a store with a letter that will be purged soon and a notice that cannot be delivered.
type troubled struct{}

func (troubled) Expire(context.Context, deadletter.State, time.Time, int) (int, error) { return 0, nil }

func (troubled) ExpireTrials(context.Context, time.Time) error { return nil }
func (troubled) Expiring(context.Context, deadletter.State, time.Time, int) (int, error) {
	return 1, nil
}

func (troubled) Due(_ context.Context, channel string, _ int) ([]deadletter.Delivery, error) {
	return []deadletter.Delivery{
		{ID: 1, Channel: channel, Notice: deadletter.Notice{Kind: deadletter.NoticeBreaker}},
	}, nil
}
func (troubled) Delivered(context.Context, []deadletter.Delivered) error { return nil }

// TestEveryFindingIsAProblem makes several parts of dlo fail. Each failure must appear as a problem
// on the pages and in /readyz.
func TestEveryFindingIsAProblem(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		log := slog.New(slog.DiscardHandler)
		s := &Server{keeper: operation.NewKeeper(troubled{}, operation.Retention{Dead: time.Hour}, nil, log)}
		s.process = &process{
			space:    store.NewSpace(dir+"/dlo.db", math.MaxInt64, 0, 0, 0),
			notifier: notify.New(troubled{}, notify.Options{Log: log}),
			history:  oldStore{},
			findStrays: func(context.Context, func(string, string) bool) ([]deadletter.Stray, error) {
				return []deadletter.Stray{
					{Broker: "main", VHost: "/", Counts: map[deadletter.State]int{deadletter.StateDead: 3}},
				}, nil
			},
		}
		if err := s.keeper.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.notifier.Replace(notify.Settings{Channels: map[string]notify.Channel{"team": notify.Gone("team")}})
		go s.notifier.Run(t.Context())
		synctest.Wait()
		var got []string
		for _, p := range s.problems() {
			got = append(got, p.Title)
			if p.Text == "" {
				t.Errorf("%s: no text", p.Title)
			}
		}
		if diff := cmp.Diff([]string{
			"dlo takes in no letters", "Dead letters are about to age out",
			"3 letters belong to broker main, which is not configured.", "The store is damaged.",
			"This store is a copy from an earlier time.", "The progress note beside the store cannot be written.",
			"Another store was in this place before.", "Notices do not get through to team.",
		}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		s.space = store.NewSpace(dir+"/none/dlo.db", 0, 0, 0, 0)
		if got := s.problems()[0].Title; got != "The disk cannot be watched" {
			t.Error(got)
		}
	})
}

// oldStore is a store that was restored from a copy. It has all faults that a store can report, for
// example that another store was in the same place before.
type oldStore struct{}

func (oldStore) Restore(context.Context) (*deadletter.Restore, error) {
	return &deadletter.Restore{At: time.Now(), Missing: 3, Held: 2}, nil
}
func (oldStore) Damaged() error      { return errors.New("malformed") }
func (oldStore) Unnoted() error      { return errors.New("a folder is in the way") }
func (oldStore) Strangers() []string { return []string{"/var/lib/dlo/dlo.db.progress-0011aabb"} }
