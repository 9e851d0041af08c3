package system

import (
	"context"
	"fmt"
	"html"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/deadletteroffice/dlo/internal/cli"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/identity"
	"github.com/deadletteroffice/dlo/web"
	"github.com/go-chi/chi/v5"
)

// capability is something that people can do with dlo. The fields "page", "api" and "cli" list
// where they can do it: routes of pages, routes of the API below /api/v1, and commands. If one of
// these lists is empty, the field "why" contains the reason.
type capability struct {
	what           string
	page, api, cli []string
	why            string
}

func one(s string) []string { return strings.Split(s, ", ") }

const noPage = "no page for it yet"

var capabilities = []capability{
	{"find letters", one("GET /letters, GET /jump"), one("GET /letters"), one("letters list"), ""},
	{"count letters", one("GET /letters"), one("GET /letters/count"), one("letters count"), ""},
	{"see what values letters have", one("GET /letters"), one("GET /letters/facets"), one("letters facets"), ""},
	{"see when letters were received", one("GET /letters"), one("GET /letters/histogram"), nil, "a picture; the counts behind it are letters count with since: and before:"},
	{"read a letter", one("GET /letters/{id}"), one("GET /letters/{id}"), one("letters show"), ""},
	{"take the bytes of a letter", one("GET /letters/{id}/body"), one("GET /letters/{id}/body"), one("letters body"), ""},
	{"compare two letters", one("GET /letters/compare"), one("GET /letters/compare"), one("letters compare"), ""},
	{"copy a letter as JSON or as a command", one("GET /letters/{id}/copy"), one("GET /letters/{id}"), one("letters show"), ""},
	{"reveal a masked value", one("POST /letters/{id}/reveal"), one("POST /letters/{id}/reveal"), one("letters reveal"), ""},
	{"plan an action", one("POST /letters/confirm"), one("POST /operations"), one("letters requeue"), ""},
	{"requeue letters", one("POST /operations"), one("POST /operations"), one("letters requeue"), ""},
	{"retry letters now", one("POST /operations"), one("POST /operations"), one("letters retry-now"), ""},
	{"retry letters at another time", one("POST /operations"), one("POST /operations"), one("letters reschedule"), ""},
	{"hold letters", one("POST /operations"), one("POST /operations"), one("letters hold"), ""},
	{"release letters", one("POST /operations"), one("POST /operations"), one("letters release"), ""},
	{"edit letters and requeue them", one("GET /letters/{id}/edit, POST /letters/{id}/edit, POST /operations"), one("POST /letters/{id}/revisions, POST /operations"), one("letters edit"), ""},
	{"discard letters", one("POST /operations"), one("POST /operations"), one("letters discard"), ""},
	{"restore letters", one("POST /operations"), one("POST /operations"), one("letters restore"), ""},
	{"purge letters", one("POST /operations"), one("POST /operations"), one("letters purge"), ""},
	{"export letters", one("GET /letters/export"), one("GET /letters/export"), one("letters export"), ""},
	{"import letters", nil, one("POST /letters/import"), one("letters import"), noPage},
	{"list operations", one("GET /operations"), one("GET /operations"), one("operations list"), ""},
	{"read an operation", one("GET /operations/{id}"), one("GET /operations/{id}"), one("operations show"), ""},
	{"watch an operation", one("GET /operations/{id}, GET /events"), one("GET /operations/{id}, GET /events"), one("operations watch"), ""},
	{"cancel an operation", one("POST /operations/{id}/cancel"), one("POST /operations/{id}/cancel"), one("operations cancel"), ""},
	{"pause an operation", one("POST /operations/{id}/pause"), one("POST /operations/{id}/pause"), one("operations pause"), ""},
	{"resume an operation", one("POST /operations/{id}/resume"), one("POST /operations/{id}/resume"), one("operations resume"), ""},
	{"change the rate of an operation", one("POST /operations/{id}/rate"), one("PATCH /operations/{id}"), one("operations rate"), ""},
	{"list saved views", one("GET /letters"), one("GET /views"), one("views list"), ""},
	{"see who one is", one("GET /account"), one("GET /me"), one("whoami"), ""},
	{"view the pages under another grant", one("POST /view-as, POST /view-as/stop"), nil, nil, "a token of that grant shows the same"},
	{"save servers with their tokens", nil, nil, one("login, context list, context use, context remove"), "a file of the machine where the command line runs"},
	{"sign in and out", one("GET /signin, POST /signin, POST /signout, GET /signin/again, POST /signin/again"), nil, nil, "passwords are for people with a browser; programs have tokens"},
	{"choose a password, change it, and end sessions", one("GET /welcome, POST /welcome, POST /account/password, POST /account/sessions/{id}/end"), nil, nil, "passwords are for people with a browser; programs have tokens"},
	{"list tokens", one("GET /access"), one("GET /tokens"), one("token list"), ""},
	{"add a token", one("POST /access/tokens"), one("POST /tokens"), one("token add"), ""},
	{"revoke a token", one("POST /access/tokens/revoke"), one("DELETE /tokens/{name}"), one("token revoke"), ""},
	{"list users", one("GET /access"), one("GET /users"), one("user list"), ""},
	{"add a user", one("POST /access/users"), one("POST /users"), one("user add"), ""},
	{"reset a user", one("POST /access/users/reset"), one("POST /users/{name}/reset"), one("user reset"), ""},
	{"remove a user", one("POST /access/users/remove"), one("DELETE /users/{name}"), one("user remove"), ""},
	{"save a view", one("POST /views"), one("POST /views"), one("views add"), ""},
	{"remove a view", one("POST /views/{id}/remove"), one("DELETE /views/{id}"), one("views remove"), ""},
	{"list the types that bodies are read by, and look for some", one("GET /schemas"), one("GET /types"), one("types list"), ""},
	{"add a set of types, or see what it would change", one("POST /schemas/upload, POST /schemas/upload/use"), one("POST /types"), one("types add"), ""},
	{"remove a set of types", one("POST /schemas/remove/confirm, POST /schemas/remove"), one("DELETE /types/{set}"), one("types remove"), ""},
	{"read a type as .proto", one("GET /schemas"), one("GET /types/proto"), one("types show"), ""},
	{"see how far letters can be read, and what no type matches", one("GET /schemas"), nil, nil, "a picture; the letters behind it are letters count and letters list with read:"},
	{"list bindings and picks", one("GET /schemas"), one("GET /bindings"), one("types bindings"), ""},
	{"tie queues to a type", one("POST /schemas/bindings"), one("POST /bindings"), one("types bind"), ""},
	{"take a binding or a pick back", one("POST /schemas/picks/{id}/remove"), one("DELETE /bindings/{id}"), one("types unbind"), ""},
	{"say of which type a letter is", one("POST /letters/{id}/type"), one("POST /letters/{id}/type"), one("letters type"), ""},
	{"ask what a body matches and decodes to", nil, one("POST /types/match"), one("types match, types decode"), noPage},
	{"read the rules", one("GET /rules"), one("GET /rules"), one("rules list"), ""},
	{"ask which rule applies, and what the rules would do", one("GET /rules"), one("POST /rules/test"), one("rules test"), ""},
	{"try rules that are not in use", one("POST /rules/try"), one("POST /rules/test"), one("rules test"), ""},
	{"decide again about letters that wait", one("POST /rules/apply/confirm, POST /rules/apply"), one("POST /rules/apply"), one("rules apply"), ""},
	{"list redirects", one("GET /rules"), one("GET /overrides"), one("rules overrides list"), ""},
	{"save a redirect", one("POST /rules/overrides"), one("POST /overrides"), one("rules overrides add"), ""},
	{"remove a redirect", one("POST /rules/overrides/{id}/remove"), one("DELETE /overrides/{id}"), one("rules overrides remove"), ""},
	{"read the audit", one("GET /audit, GET /audit/export, GET /audit/complete"), one("GET /audit"), one("audit list"), ""},
	{"see whether brokers are connected", one("GET /"), one("GET /brokers"), one("brokers list"), ""},
	{"try a broker that is away at once", one("POST /brokers/connect"), one("POST /brokers/{name}/connect"), one("brokers connect"), ""},
	{"send a letter of dlo's own the whole way", one("GET /, POST /trial"), one("POST /trial, GET /trial"), one("try"), ""},
	{"see what will lose dead letters", one("GET /queues"), one("GET /topology/findings"), one("topology check"), ""},
	{"plan policies that lead dead letters to dlo", one("GET /queues"), one("POST /topology/plan"), one("topology plan"), ""},
	{"set the policies of a plan", one("POST /queues/adopt"), one("POST /topology/apply"), one("topology apply"), ""},
	{"see which policies dlo has set, and delete one", one("GET /queues, POST /queues/undo"), one("GET /topology/adopted, POST /topology/undo"), one("topology undo"), ""},
	{"take queues out of the policies that dlo has set", one("POST /queues/leave"), one("POST /topology/leave"), one("topology leave"), ""},
	{"check everything that dlo needs on one screen", nil, nil, one("doctor"), "it also works while no dlo runs"},
	{"remove what dlo declared on the brokers", nil, nil, one("leave"), "no dlo may be running meanwhile"},
	{"see the dead-letter path, the groups and the past of a queue", one("GET /queues/one"), nil, nil, "a picture; its parts are topology check, groups list and audit list"},
	{"list queues", one("GET /queues"), one("GET /queues"), one("queues list"), ""},
	{"pause the retries of a queue", one("POST /queues/pause"), one("POST /queues/pause"), one("queues pause"), ""},
	{"resume the retries of a queue", one("POST /queues/resume"), one("POST /queues/resume"), one("queues resume"), ""},
	{"pause the retries of a group", one("POST /groups/{id}/pause"), one("POST /groups/{id}/pause"), one("groups pause"), ""},
	{"resume the retries of a group", one("POST /groups/{id}/resume"), one("POST /groups/{id}/resume"), one("groups resume"), ""},
	{"list groups", one("GET /triage"), one("GET /groups"), one("groups list"), ""},
	{"read a group", one("GET /groups/{id}"), one("GET /groups/{id}"), one("groups show"), ""},
	{"requeue or discard the letters of groups", one("POST /triage/confirm"), one("POST /operations"), one("groups requeue, groups discard"), ""},
	{"decide about groups", one("POST /triage"), one("PATCH /groups/{id}, POST /groups/decisions"), one("groups snooze, groups resolve, groups reopen, groups assign, groups note, groups severity"), ""},
	{"show groups as one, and as several again", one("POST /triage"), one("POST /groups/{id}/merge, POST /groups/{id}/split"), one("groups merge, groups split"), ""},
	{"read what was decided, and take it back", one("GET /triage, POST /triage/undo"), one("GET /groups/decisions, POST /groups/decisions/{id}/undo"), one("groups undo"), ""},
	{"read the digest, and send it", one("GET /triage, POST /triage/digest"), one("GET /digest, POST /digest/send"), one("digest preview, digest send"), ""},
	{"mark deploys", nil, one("POST /deploys"), one("deploys add"), "whatever deploys says it"},
	{"list deploys", one("GET /groups/{id}"), one("GET /deploys"), one("deploys list"), ""},
	{"say why a message was rejected", nil, one("POST /annotations"), one("annotations add"), "consumers say it, in a program or a queue"},
	{"drain a queue once", nil, one("POST /queues/drain"), one("queues drain"), noPage},
	{"list drains", nil, one("GET /queues/drains"), one("queues drains"), noPage},
	{"stop a drain", nil, one("POST /queues/drains/{id}/stop"), one("queues stop"), noPage},
	{"choose light or dark", one("POST /theme"), nil, nil, "of pages only"},
	{"see what needs a person first", one("GET /"), nil, nil, "a picture of what letters, groups and operations say"},
	{"find what has a name", one("GET /palette"), nil, nil, "the API and the command line find it by the lists of each kind"},
	{"be helped with a query", one("GET /letters/complete"), nil, one("completion"), "shells complete from their own copy; the fields are in docs/query.md"},
	{"read how the API works", nil, one("GET /openapi.yaml"), one("man"), "the pages are their own manual"},
	{"say whether the store is current", one("POST /store/accept, POST /store/hold"), one("POST /store/accept, POST /store/hold"), one("serve"), ""},
	{"try what people are told of", nil, nil, one("drill"), "it makes a vhost, and servers of its own"},
	{"run the server", nil, nil, one("serve, config check, version"), "of the machine that it runs on"},
}

func parseCommand(args ...string) (*kong.Context, error) {
	return cli.Parse(cli.Program{Ctx: context.Background(), Getenv: noEnvironment, Stdout: io.Discard, Stderr: io.Discard}, &commands{}, args)
}

// arguments splits a command line as a shell does. It leaves out the name of the program.
func arguments(command string) ([]string, error) {
	split, err := exec.Command("bash", "-c", "printf '%s\\0' "+command).Output()
	if err != nil {
		return nil, fmt.Errorf("%s is not one command to a shell: %w", command, err)
	}
	return strings.Split(strings.TrimSuffix(string(split), "\x00"), "\x00")[1:], nil
}

// TestWhatOneFaceCanDoTheOthersCan compares pages, API and command line with the table of
// capabilities. Every route and command must be in the table, and everything in the table must
// exist. If pages, API or command line lack a capability, the table must give a reason.
func TestWhatOneFaceCanDoTheOthersCan(t *testing.T) {
	t.Parallel()
	var pages, api, leaves []string
	err := chi.Walk(web.New(web.Options{Users: identity.NewAccounts(nil, nil)}).Routes(), func(method, route string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		switch path, ok := strings.CutPrefix(route, "/api/v1"); {
		case ok:
			api = append(api, method+" "+path)
		case strings.HasPrefix(route, "/static/") || route == "/healthz" || route == "/readyz" || route == "/metrics":
		default:
			pages = append(pages, method+" "+path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	none, err := parseCommand("version")
	if err != nil {
		t.Fatal(err)
	}
	for _, leaf := range none.Model.Leaves(true) {
		leaves = append(leaves, strings.TrimPrefix(leaf.FullPath(), "dlo "))
	}
	for _, face := range []struct {
		name  string
		there []string
		in    func(c capability) []string
	}{
		{"page", pages, func(c capability) []string { return c.page }},
		{"API", api, func(c capability) []string { return c.api }},
		{"command line", leaves, func(c capability) []string { return c.cli }},
	} {
		listed := map[string]bool{}
		for _, c := range capabilities {
			for _, name := range face.in(c) {
				listed[name] = true
				if !slices.Contains(face.there, name) {
					t.Errorf("%s: there is no %s in the %s", c.what, name, face.name)
				}
			}
			if len(face.in(c)) == 0 && c.why == "" {
				t.Errorf("%s: not in the %s, for no reason", c.what, face.name)
			}
		}
		for _, name := range face.there {
			if !listed[name] {
				t.Errorf("%s of the %s is in no line of the table", name, face.name)
			}
		}
	}
	for _, c := range capabilities {
		if c.why != "" && len(c.page) > 0 && len(c.api) > 0 && len(c.cli) > 0 {
			t.Errorf("%s: it is everywhere, and has a reason for where it is not", c.what)
		}
	}
	for _, v := range deadletter.Actions {
		if !slices.Contains(leaves, "letters "+strings.ReplaceAll(string(v), "_", "-")) {
			t.Errorf("the API can %s letters, and the command line cannot", v)
		}
	}
}

var (
	pageVerb    = regexp.MustCompile(`name="action" value="([a-z_]+)"`)
	pageForm    = regexp.MustCompile(`action="(/[^"]*)"`)
	pageCommand = regexp.MustCompile(`dlo (?:letters|groups|operations|rules|views|audit|queues|types show|types add -) ?[^"<\n]*`)
)

// TestThePagesOfferWhatIsThere checks the golden pages. They must offer every action on letters,
// and each form must lead to an existing route. The commands that they show for copying must exist.
func TestThePagesOfferWhatIsThere(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../web/view/testdata/*.html")
	if err != nil || len(files) == 0 {
		t.Fatal("no golden pages", err)
	}
	verbs, forms, copied := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range pageVerb.FindAllSubmatch(b, -1) {
			verbs[string(m[1])] = true
		}
		for _, m := range pageForm.FindAllSubmatch(b, -1) {
			path, _, _ := strings.Cut(string(m[1]), "?")
			forms[path] = true
		}
		for _, text := range pageCommand.FindAllString(string(b), -1) {
			copied[html.UnescapeString(strings.TrimSpace(text))] = true
		}
	}
	for _, v := range deadletter.Actions {
		if !verbs[string(v)] {
			t.Errorf("the API can %s letters, and no page can", v)
		}
	}
	routes := web.New(web.Options{Users: identity.NewAccounts(nil, nil)}).Routes()
	for path := range forms {
		if !routes.Match(chi.NewRouteContext(), http.MethodPost, path) && !routes.Match(chi.NewRouteContext(), http.MethodGet, path) {
			t.Errorf("a form leads to %s, which is no route", path)
		}
	}
	for text := range copied {
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
