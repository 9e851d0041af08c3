package identity_test

import (
	"testing"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/identity"
)

// TestTheFirstUserHasAllRights checks that the link for the first user gives all rights, even if
// somebody has already added a user with that name. Names that differ only in upper and lower case
// are the same name.
func TestTheFirstUserHasAllRights(t *testing.T) {
	t.Parallel()
	everything := deadletter.Local.Grants[0]
	for name, g := range map[string]deadletter.Grant{
		"lea":   {Role: deadletter.RoleReader},
		"admin": everything,
		"Admin": everything,
		"ADMİN": {Role: deadletter.RoleViewer},
		"aDmin": {
			Role:   deadletter.RoleAdmin,
			Reveal: true,
			Purge:  true,
			Places: deadletter.Places{Queues: []string{"sms"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, a, _, _ := invited(t)
			u, err := deadletter.NewUser(name, g, "test")
			if err != nil {
				t.Fatal(err)
			}
			earlier, err := a.Add(t.Context(), u)
			if err != nil {
				t.Fatal(err)
			}
			logged, err := a.FirstRun(t.Context())
			if err != nil || logged == "" {
				t.Fatal(logged, err)
			}
			newest, err := a.FirstRun(t.Context()) // dlo is restarted
			if err != nil || newest == "" {
				t.Fatal(newest, err)
			}
			for _, code := range []string{earlier, logged} {
				if name, _ := a.Invited(t.Context(), code); name != "" && name != "lea" {
					t.Errorf("an earlier link of %s is still valid", name)
				}
			}
			if _, err := a.Accept(t.Context(), newest, chosen, identity.Browser{}); err != nil {
				t.Fatal(err)
			}
			if first, err := a.User(
				t.Context(), identity.FirstUser,
			); err != nil || first.Grant.Words() != everything.Words() || first.Invited {
				t.Errorf("%+v %v", first, err)
			}
			if code, err := a.FirstRun(t.Context()); err != nil || code != "" {
				t.Errorf("a link although somebody has a password: %q %v", code, err)
			}
		})
	}
}
