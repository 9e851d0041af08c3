package system

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/deadletteroffice/dlo/internal/cli"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/identity"
	"github.com/deadletteroffice/dlo/web"
	"github.com/go-chi/chi/v5"
)

func parseCommand(args ...string) (*kong.Context, error) {
	return cli.Parse(cli.Program{
		Ctx: context.Background(), Getenv: noEnvironment, Stdout: io.Discard, Stderr: io.Discard,
	}, &commands{}, args)
}

// arguments splits a command line as a shell does. It leaves out the name of the program.
func arguments(command string) ([]string, error) {
	split, err := exec.Command("bash", "-c", "printf '%s\\0' "+command).Output()
	if err != nil {
		return nil, fmt.Errorf("%s is not one command to a shell: %w", command, err)
	}
	return strings.Split(strings.TrimSuffix(string(split), "\x00"), "\x00")[1:], nil
}

// uncalled says why the command line makes no use of a call of the API.
var uncalled = map[string]string{
	"GET /letters/histogram": "a picture; the counts behind it are letters count with since: and before:",
	"GET /events":            "dlo operations watch asks again and again",
	"GET /openapi.json":      "dlo man is the manual",
	"POST /settings":         "at a command line, people edit the file; dlo config check and dlo rules test try it",
	"POST /store/accept":     "dlo serve --accept-store",
	"POST /store/hold":       "a person sees on Overview that it is a copy",
}

// TestTheCommandLineMakesEveryCall checks that a command makes each call of the API, and that each
// action on letters has a command.
func TestTheCommandLineMakesEveryCall(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../cli/*.go")
	if err != nil {
		t.Fatal(err)
	}
	var code []byte
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(name, "_test.go") {
			code = append(code, b...)
		}
	}
	routes := web.New(web.Options{Users: identity.NewAccounts(nil, nil)}).Routes()
	if err := chi.Walk(routes, func(method, route string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		path, ok := strings.CutPrefix(route, "/api/v1")
		if !ok {
			return nil
		}
		before, after, _ := strings.Cut(path, "{")
		_, after, _ = strings.Cut(after, "}")
		call := fmt.Sprintf(`[" ]%s[^\n]*(%s|/" ?\+)`, before, after) // some names of acts are added to a path
		if made := regexp.MustCompile(call).Match(code); made == (uncalled[method+" "+path] != "") {
			t.Errorf("%s %s: a command calls it: %v; see uncalled", method, path, made)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for _, v := range deadletter.Actions {
		if _, err := parseCommand("letters", strings.ReplaceAll(string(v), "_", "-"), "-q", "", "--due-at", "1h"); err != nil {
			if _, err := parseCommand("letters", strings.ReplaceAll(string(v), "_", "-"), "-q", ""); err != nil {
				t.Errorf("the API can %s letters, and the command line cannot: %v", v, err)
			}
		}
	}
}

var (
	pageVerb    = regexp.MustCompile(`(?m) action=([a-z_]+)`)
	pageForm    = regexp.MustCompile(`(?m)^(?:GET|POST) (/\S*)|^POST .* (/\S*)$`)
	pageCommand = regexp.MustCompile(`(?m)^dlo .*`)
)

// TestThePagesOfferWhatIsThere checks the forms of the pages and the commands that they show for
// copying. The forms must offer every action on letters, and each must lead to an existing route.
// Each command must exist.
func TestThePagesOfferWhatIsThere(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("../../web/view/testdata/forms.txt")
	if err != nil {
		t.Fatal(err)
	}
	verbs, forms := map[string]bool{}, map[string]bool{}
	for _, m := range pageVerb.FindAllSubmatch(b, -1) {
		verbs[string(m[1])] = true
	}
	for _, m := range pageForm.FindAllSubmatch(b, -1) {
		forms[string(m[1])+string(m[2])] = true
	}
	copied := pageCommand.FindAllString(string(b), -1)
	for _, v := range deadletter.Actions {
		if !verbs[string(v)] {
			t.Errorf("the API can %s letters, and no page can", v)
		}
	}
	routes := web.New(web.Options{Users: identity.NewAccounts(nil, nil)}).Routes()
	for path := range forms {
		path, _, _ := strings.Cut(path, "#")
		if !routes.Match(chi.NewRouteContext(), http.MethodPost, path) &&
			!routes.Match(chi.NewRouteContext(), http.MethodGet, path) {
			t.Errorf("a form leads to %s, which is no route", path)
		}
	}
	for _, text := range copied {
		args, err := arguments(text)
		if err == nil {
			_, err = parseCommand(args...)
		}
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	t.Logf("%d forms, %d commands", len(forms), len(copied))
}
