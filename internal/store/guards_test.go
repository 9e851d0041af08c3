package store_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/storetest"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/store"
	"github.com/google/go-cmp/cmp"
)

// ofQueue returns a guard for a queue on the broker main.
func ofQueue(queue, why, by string) deadletter.Guard {
	return deadletter.Guard{Origin: deadletter.Origin{Broker: "main", VHost: "/", Queue: queue}, Why: why, By: by}
}

func guards(t *testing.T, s *store.Store) []deadletter.Guard {
	t.Helper()
	list, err := s.Guards(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// retryEvents lists the global events about retries, oldest first.
func retryEvents(t *testing.T, s *store.Store) []string {
	t.Helper()
	rows, err := s.Reader().Query(`SELECT kind || ' by ' || actor || ': ' || detail FROM events
		WHERE kind LIKE 'retries %' ORDER BY id`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var list []string
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			t.Fatal(err)
		}
		list = append(list, text)
	}
	return list
}

func TestPauseAndResumeAQueue(t *testing.T) {
	t.Parallel()
	s, c := open(t)
	ctx := t.Context()
	receive(t, s, window(t, 1, "sms", 2))
	receive(t, s, window(t, 2, "email", 1))
	classify(t, s, deadletter.ClassifiedDead, time.Time{})
	if list := guards(t, s); len(list) != 0 {
		t.Fatal(list)
	}
	if err := s.Resume(ctx, ofQueue("sms", "", "ann")); !errors.Is(err, deadletter.ErrConflict) {
		t.Fatal("what runs was resumed", err)
	}
	got, err := s.Pause(ctx, ofQueue("sms", "the gateway is down", "ann"))
	if err != nil {
		t.Fatal(err)
	}
	want := ofQueue("sms", "the gateway is down", "ann")
	want.State, want.Since = deadletter.GuardPaused, c.now()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	c.at = c.at.Add(time.Minute)
	if _, err := s.Pause(ctx, ofQueue("sms", "mine", "bob")); !errors.Is(err, deadletter.ErrConflict) ||
		!strings.Contains(err.Error(), "queue sms of broker main are already paused") {
		t.Error(err)
	}
	if diff := cmp.Diff([]deadletter.Guard{want}, guards(t, s)); diff != "" {
		t.Error("the second pause changed the first:", diff)
	}
	for _, unknown := range []deadletter.Guard{
		ofQueue("nope", "", "ann"),
		{Origin: deadletter.Origin{Broker: "other", VHost: "/", Queue: "sms"}},
		{Origin: deadletter.Origin{Broker: "main", VHost: "shop", Queue: "sms"}},
		{Group: 99},
	} {
		if _, err := s.Pause(ctx, unknown); !errors.Is(err, deadletter.ErrNotFound) {
			t.Errorf("pause of %+v: %v", unknown, err)
		}
		if err := s.Resume(ctx, unknown); !errors.Is(err, deadletter.ErrNotFound) {
			t.Errorf("resume of %+v: %v", unknown, err)
		}
	}
	if err := s.Resume(ctx, ofQueue("sms", "it is back", "bob")); err != nil {
		t.Fatal(err)
	}
	if list := guards(t, s); len(list) != 0 {
		t.Error(list)
	}
	if err := s.Resume(ctx, ofQueue("sms", "", "bob")); !errors.Is(err, deadletter.ErrConflict) {
		t.Error("resumed twice", err)
	}
	events := retryEvents(t, s)
	if len(events) != 2 || !strings.HasPrefix(events[0], "retries paused by ann: queue sms of broker main") ||
		!strings.Contains(events[0], "the gateway is down") ||
		!strings.HasPrefix(events[1], "retries resumed by bob: queue sms of broker main") ||
		!strings.Contains(events[1], "it is back") {
		t.Errorf("%q", events)
	}
}

func TestPauseAGroup(t *testing.T) {
	t.Parallel()
	s, c := open(t)
	ctx := t.Context()
	receive(t, s, window(t, 1, "sms", 2))
	classify(t, s, deadletter.ClassifiedDead, time.Time{})
	got, err := s.Pause(ctx, deadletter.Guard{Group: 1, Why: "new template", By: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	want := ofQueue("sms", "new template", "ann")
	want.Group, want.Title, want.State, want.Since = 1, "g", deadletter.GuardPaused, c.now()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if _, err := s.Pause(
		ctx, deadletter.Guard{Group: 1, By: "bob"},
	); !errors.Is(err, deadletter.ErrConflict) || !strings.Contains(err.Error(), "group G-1") {
		t.Error(err)
	}
	// The pauses of a queue and of a group in that queue are independent.
	if err := s.Resume(ctx, ofQueue("sms", "", "ann")); !errors.Is(err, deadletter.ErrConflict) {
		t.Error("the queue was resumed with its group", err)
	}
	if _, err := s.Pause(ctx, ofQueue("sms", "", "ann")); err != nil {
		t.Fatal(err)
	}
	if list := guards(t, s); len(list) != 2 || list[0].Group != 0 || list[1].Group != 1 {
		t.Error(list)
	}
	if err := s.Resume(ctx, ofQueue("sms", "", "ann")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]deadletter.Guard{want}, guards(t, s)); diff != "" {
		t.Error(diff)
	}
	if err := s.Resume(ctx, deadletter.Guard{Group: 1, By: "ann"}); err != nil {
		t.Fatal(err)
	}
	if list := guards(t, s); len(list) != 0 {
		t.Error(list)
	}
}

// TestAGuardOfABreakerIsResumed checks retries that a breaker held back. If a person resumes them,
// their rate must rise slowly.
func TestAGuardOfABreakerIsResumed(t *testing.T) {
	t.Parallel()
	s, c := open(t)
	ctx := t.Context()
	receive(t, s, window(t, 1, "sms", 1))
	classify(t, s, deadletter.ClassifiedDead, time.Time{})
	for _, state := range []deadletter.GuardState{deadletter.GuardTripped, deadletter.GuardProbing} {
		if err := s.Writer(ctx, `DELETE FROM breakers`); err != nil {
			t.Fatal(err)
		}
		if err := s.Writer(ctx, `INSERT INTO breakers (origin, state, why, since, until, wait)
			SELECT id, '`+string(state)+
			`', '49 of 50 came back', 1763625600000, 1763625900000, 300000 FROM origins WHERE queue = 'sms'`); err != nil {
			t.Fatal(err)
		}
		want := ofQueue("sms", "49 of 50 came back", deadletter.Service.Name)
		want.State, want.Since, want.Until = state, time.UnixMilli(
			1763625600000,
		).UTC(), time.UnixMilli(1763625900000).UTC()
		if diff := cmp.Diff([]deadletter.Guard{want}, guards(t, s)); diff != "" {
			t.Error(diff)
		}
		if err := s.Resume(ctx, ofQueue("sms", "", "ann")); err != nil {
			t.Fatal(err)
		}
		want.State, want.Since, want.Until = deadletter.GuardRamping, c.now(), time.Time{}
		if diff := cmp.Diff([]deadletter.Guard{want}, guards(t, s)); diff != "" {
			t.Error(diff)
		}
	}
	if err := s.Resume(ctx, ofQueue("sms", "", "ann")); !errors.Is(err, deadletter.ErrConflict) {
		t.Error("what ramps was resumed", err)
	}
	// The breaker of the queue is ramping, which means that it raises the rate slowly. A pause of
	// the queue does not affect the breaker: when the pause ends, the breaker is still ramping.
	if _, err := s.Pause(ctx, ofQueue("sms", "", "ann")); err != nil {
		t.Fatal(err)
	}
	if list := guards(t, s); len(list) != 2 {
		t.Error(list)
	}
	if err := s.Resume(ctx, ofQueue("sms", "", "ann")); err != nil {
		t.Fatal(err)
	}
	if list := guards(t, s); len(list) != 1 || list[0].State != deadletter.GuardRamping {
		t.Error(list)
	}
}

func TestGuardsOutliveARestart(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	path := storetest.File(t)
	c := &clock{time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)}
	s, err := store.Open(ctx, path, store.Options{Now: c.now})
	if err != nil {
		t.Fatal(err)
	}
	receive(t, s, window(t, 1, "sms", 1))
	classify(t, s, deadletter.ClassifiedDead, time.Time{})
	for _, g := range []deadletter.Guard{ofQueue("sms", "down", "ann"), {Group: 1, Why: "why", By: "bob"}} {
		if _, err := s.Pause(ctx, g); err != nil {
			t.Fatal(err)
		}
	}
	before := guards(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = store.Open(ctx, path, store.Options{Now: c.now}); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if diff := cmp.Diff(before, guards(t, s)); diff != "" || len(before) != 2 {
		t.Error(before, diff)
	}
}

func TestQueuesAreCounted(t *testing.T) {
	t.Parallel()
	s, c := open(t)
	if list, err := s.Queues(t.Context()); err != nil || len(list) != 0 {
		t.Fatal(list, err)
	}
	receive(t, s, window(t, 1, "sms", 3))
	if list, err := s.Queues(t.Context()); err != nil || len(list) != 0 {
		t.Fatal("a queue that nobody has read from a letter yet", list, err)
	}
	classify(t, s, deadletter.ClassifiedDead, time.Time{})
	receive(t, s, window(t, 2, "sms", 2))
	receive(t, s, window(t, 3, "email", 1))
	classify(t, s, deadletter.ClassifiedRetry, c.now().Add(time.Hour))
	list, err := s.Queues(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []deadletter.QueueCounts{
		{Origin: ofQueue("email", "", "").Origin, Counts: map[deadletter.State]int{deadletter.StateScheduled: 1}},
		{
			Origin: ofQueue("sms", "", "").Origin,
			Counts: map[deadletter.State]int{deadletter.StateDead: 3, deadletter.StateScheduled: 2},
		},
	}
	if diff := cmp.Diff(want, list); diff != "" {
		t.Error(diff)
	}
}

// TestABreakerIsOfAGroup checks breakers of single groups and the breaker of a whole queue. Each
// breaker must be recorded, resumed and closed separately, and must report how many letters it
// holds back.
func TestABreakerIsOfAGroup(t *testing.T) {
	t.Parallel()
	s, c := open(t)
	ctx := t.Context()
	receive(t, s, window(t, 1, "sms", 3))
	classify(t, s, deadletter.ClassifiedRetry, c.now().Add(time.Hour))
	origin := deadletter.Origin{Broker: "main", VHost: "/", Queue: "sms"}
	breaker := func(group deadletter.GroupID, waits int) deadletter.Breaker {
		return deadletter.Breaker{
			Origin: origin, Group: group, State: deadletter.GuardTripped, Why: "all came back",
			Since: c.now().Truncate(time.Millisecond),
			Until: c.now().Add(time.Minute).Truncate(time.Millisecond), Wait: time.Minute, Waits: waits,
		}
	}
	want := []deadletter.Breaker{breaker(0, 3), breaker(1, 3), breaker(99, 0)}
	for _, b := range want {
		if err := s.SetBreaker(ctx, b, nil); err != nil {
			t.Fatal(err)
		}
	}
	recorded := func() []deadletter.Breaker {
		t.Helper()
		list, err := s.Breakers(ctx, "main")
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	if diff := cmp.Diff(want, recorded()); diff != "" {
		t.Error(diff)
	}
	if list := guards(
		t, s,
	); len(list) != 3 || list[1].Group != 1 || list[1].Title != "g" || list[1].State != deadletter.GuardTripped {
		t.Error(list)
	}
	if err := s.Resume(ctx, deadletter.Guard{Group: 1, By: "ann"}); err != nil {
		t.Fatal(err)
	}
	if list := recorded(); list[0].State != deadletter.GuardTripped || list[1].State != deadletter.GuardRamping {
		t.Error("a group was resumed:", list)
	}
	if err := s.Resume(ctx, deadletter.Guard{Group: 1, By: "ann"}); !errors.Is(err, deadletter.ErrConflict) {
		t.Error("what ramps was resumed", err)
	}
	if err := s.CloseBreaker(ctx, want[1]); err != nil {
		t.Fatal(err)
	}
	if list := recorded(); len(list) != 2 || list[0].Group != 0 || list[1].Group != 99 {
		t.Error("a group's is closed:", list)
	}
	if err := s.Resume(ctx, ofQueue("sms", "", "ann")); err != nil {
		t.Fatal(err)
	}
	for _, b := range recorded() {
		if b.State != deadletter.GuardRamping {
			t.Error("the queue was resumed:", b)
		}
	}
}
