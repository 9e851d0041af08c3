package server

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// TestPermissionsAreAskedAgain checks for how long dlo uses what a broker has answered about the
// permissions of a person. If the broker does not answer, the person must have no permissions.
func TestPermissionsAreAskedAgain(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	asked := map[string]int{}
	var failing error
	p := &permissions{
		now: func() time.Time { return now }, log: slog.New(slog.DiscardHandler),
		ask: func(_ context.Context, user string) ([]deadletter.Written, error) {
			asked[user]++
			if failing != nil {
				return nil, failing
			}
			return []deadletter.Written{{Broker: "main", VHost: "/", Name: "^" + user}}, nil
		},
	}
	for range 3 {
		if list := p.ofUser(t.Context(), "ana"); len(list) != 1 || list[0].Name != "^ana" {
			t.Fatal(list)
		}
	}
	p.ofUser(t.Context(), "bob")
	now = now.Add(permissionsFor)
	failing = errors.New("no answer")
	if list := p.ofUser(t.Context(), "ana"); list != nil {
		t.Errorf("a broker that does not answer gives %v", list)
	}
	p.ofUser(t.Context(), "ana")
	failing, now = nil, now.Add(refusalFor)
	if list := p.ofUser(t.Context(), "ana"); len(list) != 1 || asked["ana"] != 3 || asked["bob"] != 1 {
		t.Error(list, asked)
	}
}
