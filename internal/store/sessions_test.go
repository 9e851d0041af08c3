package store_test

import (
	"errors"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// TestASessionFromTheFuture sets the clock back after a session has begun, after its user has
// entered the password again, or after the session was used. The session must then end. It must not
// become valid again when the clock is set forward, or when the clock reaches the time at which the
// session was last used.
func TestASessionFromTheFuture(t *testing.T) {
	t.Parallel()
	theirs, other, renewed := [32]byte{1}, [32]byte{2}, [32]byte{3}
	for name, c := range map[string]struct {
		ahead time.Duration // the clock is ahead by this much when the session begins
		again time.Duration // the clock is ahead by this much when the user enters the password again
		used  time.Duration // the clock is ahead by this much when the session is used
		do    func(start, read func(hash [32]byte) error, end func(hash [32]byte) error) error
	}{
		"its user reads a page": {
			2 * time.Hour, 2 * time.Hour, 2 * time.Hour,
			func(_, read, _ func([32]byte) error) error { return read(renewed) },
		},
		"its user signs in": {
			2 * time.Hour, 2 * time.Hour, 2 * time.Hour,
			func(start, _, _ func([32]byte) error) error { return start(other) },
		},
		"its user signs out": {
			2 * time.Hour, 2 * time.Hour, 2 * time.Hour,
			func(_, _, end func([32]byte) error) error { return end(renewed) },
		},
		"its user reads a page; the password was entered again": {
			0, 2 * time.Hour, 2 * time.Hour, func(_, read, _ func([32]byte) error) error { return read(renewed) },
		},
		"its user signs in; the password was entered again": {
			0, 2 * time.Hour, 2 * time.Hour, func(start, _, _ func([32]byte) error) error { return start(other) },
		},
		"its user reads a page; the session was used": {
			0, 0, 20 * time.Minute, func(_, read, _ func([32]byte) error) error { return read(renewed) },
		},
		"its user signs in; the session was used": {
			0, 0, 20 * time.Minute, func(start, _, _ func([32]byte) error) error { return start(other) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, clock := open(t)
			right := clock.at
			u, err := deadletter.NewUser("lena", deadletter.Grant{Role: deadletter.RoleReader}, "root")
			if err != nil {
				t.Fatal(err)
			}
			if err := s.AddUser(t.Context(), u, [32]byte{}, right.Add(time.Hour)); err != nil {
				t.Fatal(err)
			}
			limits := func() (idle, oldest time.Time) {
				return clock.at.Add(
					-30 * time.Minute,
				), clock.at.Add(-12 * time.Hour)
			}
			start := func(hash [32]byte) error {
				idle, oldest := limits()
				return s.StartSession(t.Context(), deadletter.Session{User: "lena", Hash: hash}, "", idle, oldest)
			}
			read := func(hash [32]byte) error {
				idle, oldest := limits()
				_, err := s.SessionBy(t.Context(), hash, idle, oldest)
				return err
			}
			clock.at = right.Add(c.ahead)
			if err := start(theirs); err != nil {
				t.Fatal(err)
			}
			clock.at = right.Add(c.again)
			if err := s.RenewSession(t.Context(), theirs, renewed, ""); err != nil {
				t.Fatal(err)
			}
			clock.at = right.Add(c.used)
			if err := read(renewed); err != nil {
				t.Fatal(err)
			}
			clock.at = right
			idle, oldest := limits()
			if list, err := s.Sessions(t.Context(), "lena", idle, oldest); err != nil || len(list) > 0 {
				t.Errorf("%+v %v", list, err)
			}
			if err := c.do(
				start, read, func(hash [32]byte) error { return s.EndSession(t.Context(), hash) },
			); err != nil && !errors.Is(err, deadletter.ErrNotFound) {
				t.Fatal(err)
			}
			for _, later := range []time.Duration{-30 * time.Second, 0, time.Minute} {
				later += c.used
				clock.at = right.Add(later)
				if err := read(renewed); !errors.Is(err, deadletter.ErrNotFound) {
					t.Errorf("the session is alive %s later: %v", later, err)
				}
			}
		})
	}
}

// TestTheClockIsSetBackALittle checks that a session goes on if the clock was set back by less than
// a minute.
func TestTheClockIsSetBackALittle(t *testing.T) {
	t.Parallel()
	s, clock := open(t)
	u, err := deadletter.NewUser("lena", deadletter.Grant{Role: deadletter.RoleReader}, "root")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.AddUser(t.Context(), u, [32]byte{}, clock.at.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		if err := s.StartSession(t.Context(), deadletter.Session{
			User: "lena",
			Hash: [32]byte{byte(i)},
		}, "", clock.at.Add(-time.Hour), clock.at.Add(-time.Hour)); err != nil {
			t.Fatal(err)
		}
		clock.at = clock.at.Add(-50 * time.Second)
		if _, err := s.SessionBy(
			t.Context(), [32]byte{byte(i)}, clock.at.Add(-time.Hour), clock.at.Add(-time.Hour),
		); err != nil {
			t.Error(err)
		}
	}
}
