package deadletter_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// TestUnfilledVariablesAreNoNames checks which names of people and groups are taken for variables
// that a proxy did not fill in. Names that real directories contain must not be among them.
func TestUnfilledVariablesAreNoNames(t *testing.T) {
	t.Parallel()
	for from, names := range map[string][]string{
		"nginx":          {"$remote_user", "$upstream_http_x_user", "$http_x_groups", "$1", "${remote_user}"},
		"a part":         {`CORP\$remote_user`, "$1@example.com"},
		"Apache, Envoy":  {"%u", "%{REMOTE_USER}e", "%REQ(X-USER)%", "%[req.hdr(x)]", "(null)", "-"},
		"Caddy, Windows": {"{user}", "{http.auth.user.id}", "%USERNAME%", "$(USER)"},
		"templates":      {"{{x}}", "{{ .User }}", "<no value>", "<nil>", "null", "NULL", "undefined"},
		"Python, Ruby":   {"None", "nil", "anonymous", "Anonymous", "<user>", "[user]", "REMOTE_USER"},
	} {
		for _, name := range names {
			if !deadletter.UnfilledName(name) {
				t.Errorf("%s: %s is a name", from, name)
			}
		}
	}
	for why, names := range map[string][]string{
		"people": {
			"o'neil", "user@corp", "ana+dlo@example.com", "Łucja 樹", "Nil", "Nullmeyer", "A$AP", "a-b",
		},
		"accounts of Windows": {
			`DOMAIN\user`, "CORP/user", "CN=Ana Lis", "OU=Groups", "S-1-5-21-1-2-3-513",
		},
		"parts of names":                  {"none.the.wiser", "anonymous-coward", "[eu] ops", "ana (ops)", "remote_user_7"},
		"accounts of machines":            {"HOST$", `DOMAIN\HOST$`},
		"a group that Exchange has named": {"$331000-N5J0I1Q9A6KC"},
		"a GUID in braces":                {"{6B29FC40-CA47-1067-B31D-00DD010662DA}"},
		"percent-encoding":                {"ana%40example.com", "%C5%81ucja"},
		"a percentage":                    {"100%", "team 50% off"},
	} {
		for _, name := range names {
			if deadletter.UnfilledName(name) {
				t.Errorf("%s: %s is taken for a variable", why, name)
			}
		}
	}
}

// TestNamesOfUsers checks which names a user can have.
func TestNamesOfUsers(t *testing.T) {
	t.Parallel()
	const form, kept, other = "1 to 64 bytes of visible text", "dlo keeps the name", "means something else"
	for name, want := range map[string]string{
		"lena": "", "Łucja 樹": "", "x/y": "", "x%2Fy": "", "a.b": "", "...": "", "everyone else": "",
		"ana@example.com": "", strings.Repeat("a", 64): "",
		"": form, " lena": form, "a\u200bb": form, "a:b": form, "{user}": form, strings.Repeat("a", 65): form,
		"\xff": form,
		"dlo":  kept, "Local": kept, "unknown": kept,
		"everyone": other, "Everyone": other, ".": other, "..": other, "(null)": other, "-": other,
		"$remote_user": other,
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
