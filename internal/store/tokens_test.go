package store_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/store"
	"github.com/deadletteroffice/dlo/internal/storetest"
	"github.com/google/go-cmp/cmp"
)

// TestATokenUsedFromTwoPlaces checks that the first use of a token from each network is recorded as
// an act. It also checks that the token shows the address from which it was last used. If somebody
// uses a token from many addresses, at most one act is recorded per minute, and at most one per
// hour for each address.
func TestATokenUsedFromTwoPlaces(t *testing.T) {
	t.Parallel()
	s, c := open(t)
	hash := deadletter.SecretHash("dlo_1")
	add := func() {
		t.Helper()
		if _, err := s.AddToken(t.Context(), deadletter.APIToken{
			Name:      "ci",
			CreatedBy: "root",
			Grant:     deadletter.Grant{Role: deadletter.RoleReader},
		}, hash); err != nil {
			t.Fatal(err)
		}
	}
	use := func(from string) {
		t.Helper()
		ctx := deadletter.FromAddress(deadletter.Through(t.Context(), deadletter.WayAPI), from)
		if token, err := s.TokenBy(ctx, hash); err != nil || token.Name != "ci" {
			t.Fatal(token, err)
		}
	}
	moves := func() (list []string) {
		t.Helper()
		for _, a := range slices.Backward(audited(t, s, "action:token-at-new-address", c.now())) {
			list = append(list, strings.TrimSpace(fmt.Sprintf("%s %s %s %s", a.Actor, a.Through, a.Address, a.Detail)))
		}
		return list
	}
	add()
	want := []string(nil)
	for _, step := range []struct {
		name  string
		after time.Duration
		from  string
		moved string // new act
		last  string // address from which the token was last used
	}{
		{"the first use", 0, "192.0.2.7", "token:ci api 192.0.2.7", "192.0.2.7"},
		{"the same place", time.Hour, "192.0.2.7", "", "192.0.2.7"},
		{"another place, at once", 0, "203.0.113.9", "token:ci api 203.0.113.9 before from 192.0.2.7", "203.0.113.9"},
		{"the first place again", 0, "192.0.2.7", "", "203.0.113.9"},
		{"a third place in the same minute", time.Second, "2001:db8::1", "", "203.0.113.9"},
		{
			"the third place a minute later", time.Minute, "2001:db8::1",
			"token:ci api 2001:db8::1 before from 203.0.113.9", "2001:db8::1",
		},
		{"another address of its network", 2 * time.Minute, "2001:db8::beef", "", "2001:db8::beef"},
		{"a socket of the machine", 2 * time.Minute, "", "", ""},
		{"after a month", 30 * 24 * time.Hour, "203.0.113.9", "", "203.0.113.9"},
		{
			"the clock is set back", -20 * 24 * time.Hour, "198.51.100.1",
			"token:ci api 198.51.100.1 before from 203.0.113.9", "198.51.100.1",
		},
	} {
		c.at = c.at.Add(step.after)
		use(step.from)
		if step.moved != "" {
			want = append(want, step.moved)
		}
		if diff := cmp.Diff(want, moves()); diff != "" {
			t.Fatalf("%s: %s", step.name, diff)
		}
		if list, err := s.Tokens(t.Context()); err != nil || list[0].UsedFrom != step.last {
			t.Fatalf("%s: %+v %v", step.name, list, err)
		}
	}

	// For three hours, a request with the token is sent every 20 s. The requests come from 100
	// addresses in turn.
	before := len(moves())
	for i := range 3 * 180 {
		c.at = c.at.Add(20 * time.Second)
		use(fmt.Sprintf("10.0.0.%d", i%100))
	}
	all := moves()[before:]
	if len(all) < 100 || len(all) > 180 {
		t.Errorf("%d acts in three hours", len(all))
	}
	seen := map[string]int{}
	for _, line := range all {
		seen[strings.Fields(line)[2]]++
	}
	for address, n := range seen {
		if n > 3 {
			t.Errorf("%d acts of %s in three hours", n, address)
		}
	}
	var kept int
	if err := s.Reader().QueryRow(`SELECT count(*) FROM token_networks`).Scan(&kept); err != nil || kept != 64 {
		t.Errorf("%d networks are remembered: %v", kept, err)
	}
	if err := s.RevokeToken(t.Context(), "ci", "root"); err != nil {
		t.Fatal(err)
	}
	if err := s.Reader().QueryRow(`SELECT count(*) FROM token_networks`).Scan(&kept); err != nil || kept != 0 {
		t.Errorf("%d networks of a revoked token: %v", kept, err)
	}
	add() // the new token does not know from where the revoked token was used
	n := len(moves())
	use("10.0.0.1")
	if got := moves(); len(got) != n+1 || got[n] != "token:ci api 10.0.0.1" {
		t.Errorf("%q", got[n:])
	}
}

// TestATokenIsRevokedDuringARequest revokes a token, and adds another one, while a request with the
// first token is being checked. The request must be refused. The second token has the id of the
// first one, so the request must not be recorded as a use of the second token.
func TestATokenIsRevokedDuringARequest(t *testing.T) {
	t.Parallel()
	var meanwhile func()
	c := &clock{time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)}
	s, err := store.Open(t.Context(), storetest.File(t), store.Options{Now: func() time.Time {
		if do := meanwhile; do != nil { // the store asks for the time after it has read the token
			meanwhile = nil
			do()
		}
		return c.now()
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	add := func(name string) deadletter.APIToken {
		t.Helper()
		a, err := s.AddToken(t.Context(), deadletter.APIToken{
			Name:      name,
			CreatedBy: "root",
			Grant:     deadletter.Grant{Role: deadletter.RoleReader},
		}, deadletter.SecretHash(name))
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	first := add("first")
	meanwhile = func() {
		if err := s.RevokeToken(t.Context(), "first", "root"); err != nil {
			t.Error(err)
		}
		if second := add("second"); second.ID != first.ID {
			t.Errorf("the tokens have the ids %d and %d", first.ID, second.ID)
		}
	}
	ctx := deadletter.FromAddress(t.Context(), "192.0.2.7")
	if a, err := s.TokenBy(ctx, deadletter.SecretHash("first")); !errors.Is(err, deadletter.ErrNotFound) {
		t.Errorf("%+v %v", a, err)
	}
	if list, err := s.Tokens(t.Context()); err != nil || len(list) != 1 || !list[0].UsedAt.IsZero() || list[0].UsedFrom != "" {
		t.Errorf("%+v %v", list, err)
	}
	var networks int
	if err := s.Reader().QueryRow(`SELECT count(*) FROM token_networks`).Scan(&networks); err != nil || networks != 0 {
		t.Errorf("%d networks %v", networks, err)
	}
	if acts := audited(t, s, "action:token-at-new-address", c.now()); len(acts) > 0 {
		t.Errorf("%+v", acts)
	}
}
