package deadletter_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// TestNamesOfUsers checks which names a user can have.
func TestNamesOfUsers(t *testing.T) {
	t.Parallel()
	const form, kept, other = "1 to 64 bytes of visible text", "dlo keeps the name", "means something else"
	for name, want := range map[string]string{
		"lena": "", "Łucja 樹": "", "x/y": "", "x%2Fy": "", "a.b": "", "...": "", "everyone else": "", "ana@example.com": "", strings.Repeat("a", 64): "",
		"": form, " lena": form, "a\u200bb": form, "a:b": form, "{user}": form, strings.Repeat("a", 65): form, "\xff": form,
		"dlo": kept, "Local": kept, "unknown": kept,
		"everyone": other, "Everyone": other, ".": other, "..": other, "(null)": other, "-": other,
	} {
		u, err := deadletter.NewUser(name, deadletter.Grant{Role: deadletter.RoleViewer}, "test")
		switch {
		case want == "" && (err != nil || u.Name != name):
			t.Errorf("%q: %+v, %v", name, u, err)
		case want != "" && (!errors.Is(err, deadletter.ErrInvalid) || !strings.Contains(err.Error(), want)):
			t.Errorf("%q: %v, want %q", name, err, want)
		}
	}
}
