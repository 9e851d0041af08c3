package system

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
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

func splitList(s string) []string { return strings.Split(s, ", ") }

const noPage = "no page for it yet"

var capabilities = []capability{
	{"find letters", splitList("GET /letters, GET /jump"), splitList("GET /letters"), splitList("letters list"), ""},
	{"count letters", splitList("GET /letters"), splitList("GET /letters/count"), splitList("letters count"), ""},
	{
		"see what values letters have", splitList("GET /letters"), splitList("GET /letters/facets"),
		splitList("letters facets"), "",
	},
	{
		"see when letters were received", splitList("GET /letters"), splitList("GET /letters/histogram"), nil,
		"a picture; the counts behind it are letters count with since: and before:",
	},
	{"read a letter", splitList("GET /letters/{id}"), splitList("GET /letters/{id}"), splitList("letters show"), ""},
	{
		"take the bytes of a letter", splitList("GET /letters/{id}/body"), splitList("GET /letters/{id}/body"),
		splitList("letters body"), "",
	},
	{
		"copy a letter as JSON or as a command", splitList("GET /letters/{id}/copy"), splitList("GET /letters/{id}"),
		splitList("letters show"), "",
	},
	{
		"reveal a masked value", splitList("POST /letters/{id}/reveal"), splitList("POST /letters/{id}/reveal"),
		splitList("letters reveal"), "",
	},
	{
		"plan an action", splitList("POST /letters/confirm"), splitList("POST /operations"),
		splitList("letters requeue"), "",
	},
	{"requeue letters", splitList("POST /operations"), splitList("POST /operations"), splitList("letters requeue"), ""},
	{
		"retry letters now", splitList("POST /operations"), splitList("POST /operations"),
		splitList("letters retry-now"), "",
	},
	{
		"retry letters at another time", splitList("POST /operations"), splitList("POST /operations"),
		splitList("letters reschedule"), "",
	},
	{"hold letters", splitList("POST /operations"), splitList("POST /operations"), splitList("letters hold"), ""},
	{"release letters", splitList("POST /operations"), splitList("POST /operations"), splitList("letters release"), ""},
	{
		"edit letters and requeue them", splitList("GET /letters/{id}/edit, POST /letters/{id}/edit, POST /operations"),
		splitList("POST /letters/{id}/revisions, POST /operations"), splitList("letters edit"), "",
	},
	{"discard letters", splitList("POST /operations"), splitList("POST /operations"), splitList("letters discard"), ""},
	{"restore letters", splitList("POST /operations"), splitList("POST /operations"), splitList("letters restore"), ""},
	{"purge letters", splitList("POST /operations"), splitList("POST /operations"), splitList("letters purge"), ""},
	{
		"export letters", splitList("GET /letters/export"), splitList("GET /letters/export"),
		splitList("letters export"), "",
	},
	{"import letters", nil, splitList("POST /letters/import"), splitList("letters import"), noPage},
	{"list operations", splitList("GET /operations"), splitList("GET /operations"), splitList("operations list"), ""},
	{
		"read an operation", splitList("GET /operations/{id}"), splitList("GET /operations/{id}"),
		splitList("operations show"), "",
	},
	{
		"watch an operation", splitList("GET /operations/{id}, GET /events"),
		splitList("GET /operations/{id}, GET /events"), splitList("operations watch"), "",
	},
	{
		"cancel an operation", splitList("POST /operations/{id}/cancel"), splitList("POST /operations/{id}/cancel"),
		splitList("operations cancel"), "",
	},
	{
		"pause an operation", splitList("POST /operations/{id}/pause"), splitList("POST /operations/{id}/pause"),
		splitList("operations pause"), "",
	},
	{
		"resume an operation", splitList("POST /operations/{id}/resume"), splitList("POST /operations/{id}/resume"),
		splitList("operations resume"), "",
	},
	{
		"change the rate of an operation", splitList("POST /operations/{id}/rate"), splitList("PATCH /operations/{id}"),
		splitList("operations rate"), "",
	},
	{"list saved views", splitList("GET /letters"), splitList("GET /views"), splitList("views list"), ""},
	{"see who one is", splitList("GET /account"), splitList("GET /me"), splitList("whoami"), ""},
	{
		"view the pages under another grant", splitList("POST /view-as, POST /view-as/stop"), nil, nil,
		"a token of that grant shows the same",
	},
	{
		"save servers with their tokens", nil, nil, splitList("login, context list, context use, context remove"),
		"a file of the machine where the command line runs",
	},
	{
		"sign in and out", splitList("GET /signin, POST /signin, POST /signout, GET /signin/again, POST /signin/again"),
		nil, nil, "passwords are for people with a browser; programs have tokens",
	},
	{
		"choose a password, change it, and end sessions",
		splitList("GET /welcome, POST /welcome, POST /account/password, POST /account/sessions/{id}/end"), nil, nil,
		"passwords are for people with a browser; programs have tokens",
	},
	{"list tokens", splitList("GET /access"), splitList("GET /tokens"), splitList("token list"), ""},
	{"add a token", splitList("POST /access/tokens"), splitList("POST /tokens"), splitList("token add"), ""},
	{
		"revoke a token", splitList("POST /access/tokens/revoke"), splitList("DELETE /tokens/{name}"),
		splitList("token revoke"), "",
	},
	{"list users", splitList("GET /access"), splitList("GET /users"), splitList("user list"), ""},
	{"add a user", splitList("POST /access/users"), splitList("POST /users"), splitList("user add"), ""},
	{
		"reset a user", splitList("POST /access/users/reset"), splitList("POST /users/{name}/reset"),
		splitList("user reset"), "",
	},
	{
		"remove a user", splitList("POST /access/users/remove"), splitList("DELETE /users/{name}"),
		splitList("user remove"), "",
	},
	{"save a view", splitList("POST /views"), splitList("POST /views"), splitList("views add"), ""},
	{
		"remove a view", splitList("POST /views/{id}/remove"), splitList("DELETE /views/{id}"),
		splitList("views remove"), "",
	},
	{
		"list the types that bodies are read by, and look for some", splitList("GET /schemas"), splitList("GET /types"),
		splitList("types list"), "",
	},
	{
		"add a set of types, or see what it would change", splitList("POST /schemas/upload, POST /schemas/upload/use"),
		splitList("POST /types"), splitList("types add"), "",
	},
	{
		"remove a set of types", splitList("POST /schemas/remove/confirm, POST /schemas/remove"),
		splitList("DELETE /types/{set}"), splitList("types remove"), "",
	},
	{"read a type as .proto", splitList("GET /schemas"), splitList("GET /types/proto"), splitList("types show"), ""},
	{
		"see how far letters can be read, and what no type matches", splitList("GET /schemas"), nil, nil,
		"a picture; the letters behind it are letters count and letters list with read:",
	},
	{"list bindings and picks", splitList("GET /schemas"), splitList("GET /bindings"), splitList("types bindings"), ""},
	{
		"tie queues to a type", splitList("POST /schemas/bindings"), splitList("POST /bindings"),
		splitList("types bind"), "",
	},
	{
		"take a binding or a pick back", splitList("POST /schemas/picks/{id}/remove"),
		splitList("DELETE /bindings/{id}"), splitList("types unbind"), "",
	},
	{
		"say of which type a letter is", splitList("POST /letters/{id}/type"), splitList("POST /letters/{id}/type"),
		splitList("letters type"), "",
	},
	{
		"ask what a body matches and decodes to", nil, splitList("POST /types/match"),
		splitList("types match, types decode"), noPage,
	},
	{"read the rules", splitList("GET /rules"), splitList("GET /rules"), splitList("rules list"), ""},
	{
		"test rules, those in use or others", splitList("POST /rules/try"), splitList("POST /rules/test"),
		splitList("rules test"), "",
	},
	{
		"decide again about letters that wait", splitList("POST /rules/apply/confirm, POST /rules/apply"),
		splitList("POST /rules/apply"), splitList("rules apply"), "",
	},
	{"list redirects", splitList("GET /rules"), splitList("GET /overrides"), splitList("rules overrides list"), ""},
	{
		"save a redirect", splitList("POST /rules/overrides"), splitList("POST /overrides"),
		splitList("rules overrides add"), "",
	},
	{
		"remove a redirect", splitList("POST /rules/overrides/{id}/remove"), splitList("DELETE /overrides/{id}"),
		splitList("rules overrides remove"), "",
	},
	{
		"read the audit", splitList("GET /audit, GET /audit/export, GET /audit/complete"), splitList("GET /audit"),
		splitList("audit list"), "",
	},
	{"see whether brokers are connected", splitList("GET /"), splitList("GET /brokers"), splitList("brokers list"), ""},
	{
		"try a broker that is away at once", splitList("POST /brokers/connect"),
		splitList("POST /brokers/{name}/connect"), splitList("brokers connect"), "",
	},
	{
		"send a letter of dlo's own the whole way", splitList("GET /, POST /trial"),
		splitList("POST /trial, GET /trial"), splitList("try"), "",
	},
	{
		"see what will lose dead letters", splitList("GET /queues"), splitList("GET /topology/findings"),
		splitList("topology check"), "",
	},
	{
		"plan policies that lead dead letters to dlo", splitList("GET /queues"), splitList("POST /topology/plan"),
		splitList("topology plan"), "",
	},
	{
		"set the policies of a plan", splitList("POST /queues/adopt"), splitList("POST /topology/apply"),
		splitList("topology apply"), "",
	},
	{
		"see which policies dlo has set, and delete one", splitList("GET /queues, POST /queues/undo"),
		splitList("GET /topology/adopted, POST /topology/undo"), splitList("topology undo"), "",
	},
	{
		"take queues out of the policies that dlo has set", splitList("POST /queues/leave"),
		splitList("POST /topology/leave"), splitList("topology leave"), "",
	},
	{"check everything that dlo needs on one screen", nil, nil, splitList("doctor"), "it also works while no dlo runs"},
	{"remove what dlo declared on the brokers", nil, nil, splitList("leave"), "no dlo may be running meanwhile"},
	{"rename a broker in the store", nil, nil, splitList("brokers rename"), "no dlo may be running meanwhile"},
	{
		"see the dead-letter path, the groups and the past of a queue", splitList("GET /queues/one"), nil, nil,
		"a picture; its parts are topology check, groups list and audit list",
	},
	{"list queues", splitList("GET /queues"), splitList("GET /queues"), splitList("queues list"), ""},
	{
		"pause the retries of a queue", splitList("POST /queues/pause"), splitList("POST /queues/pause"),
		splitList("queues pause"), "",
	},
	{
		"resume the retries of a queue", splitList("POST /queues/resume"), splitList("POST /queues/resume"),
		splitList("queues resume"), "",
	},
	{
		"pause the retries of a group", splitList("POST /groups/{id}/pause"), splitList("POST /groups/{id}/pause"),
		splitList("groups pause"), "",
	},
	{
		"resume the retries of a group", splitList("POST /groups/{id}/resume"), splitList("POST /groups/{id}/resume"),
		splitList("groups resume"), "",
	},
	{"list groups", splitList("GET /triage"), splitList("GET /groups"), splitList("groups list"), ""},
	{"read a group", splitList("GET /groups/{id}"), splitList("GET /groups/{id}"), splitList("groups show"), ""},
	{
		"requeue or discard the letters of groups", splitList("POST /triage/confirm"), splitList("POST /operations"),
		splitList("groups requeue, groups discard"), "",
	},
	{
		"decide about groups", splitList("POST /triage"), splitList("PATCH /groups/{id}, POST /groups/decisions"),
		splitList("groups snooze, groups resolve, groups reopen, groups assign, groups note, groups severity"), "",
	},
	{
		"show groups as one, and as several again", splitList("POST /groups/merge, POST /groups/split"),
		splitList("POST /groups/{id}/merge, POST /groups/{id}/split"), splitList("groups merge, groups split"), "",
	},
	{
		"read what was decided, and take it back", splitList("GET /triage, POST /triage/undo"),
		splitList("GET /groups/decisions, POST /groups/decisions/{id}/undo"), splitList("groups undo"), "",
	},
	{
		"read the digest, and send it", splitList("GET /triage, POST /triage/digest"),
		splitList("GET /digest, POST /digest/send"), splitList("digest preview, digest send"), "",
	},
	{"mark deploys", nil, splitList("POST /deploys"), splitList("deploys add"), "whatever deploys says it"},
	{"list deploys", splitList("GET /groups/{id}"), splitList("GET /deploys"), splitList("deploys list"), ""},
	{
		"say why a message was rejected", nil, splitList("POST /annotations"), splitList("annotations add"),
		"consumers say it, in a program or a queue",
	},
	{"drain a queue once", nil, splitList("POST /queues/drain"), splitList("queues drain"), noPage},
	{"list drains", nil, splitList("GET /queues/drains"), splitList("queues drains"), noPage},
	{"stop a drain", nil, splitList("POST /queues/drains/{id}/stop"), splitList("queues stop"), noPage},
	{"choose light or dark", splitList("POST /theme"), nil, nil, "of pages only"},
	{
		"see what needs a person first", splitList("GET /"), nil, nil,
		"a picture of what letters, groups and operations say",
	},
	{
		"find what has a name", splitList("GET /palette"), nil, nil,
		"the API and the command line find it by the lists of each kind",
	},
	{
		"be helped with a query", splitList("GET /letters/complete"), nil, splitList("completion"),
		"shells complete from their own copy; the fields are in docs/query.md",
	},
	{"read how the API works", nil, splitList("GET /openapi.json"), splitList("man"), "the pages are their own manual"},
	{
		"say whether the store is current", splitList("POST /store/accept, POST /store/hold"),
		splitList("POST /store/accept, POST /store/hold"), splitList("serve"), "",
	},
	{
		"send a test to a channel", splitList("POST /channels/test"), splitList("POST /channels/test"),
		splitList("notify test"), "",
	},
	{"run the server", nil, nil, splitList("serve, config check, version"), "of the machine that it runs on"},
}

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

// TestWhatOneFaceCanDoTheOthersCan compares pages, API and command line with the table of
// capabilities. Every route and command must be in the table, and everything in the table must
// exist. If pages, API or command line lack a capability, the table must give a reason.
func TestWhatOneFaceCanDoTheOthersCan(t *testing.T) {
	t.Parallel()
	var pages, api, leaves []string
	err := chi.Walk(web.New(web.Options{
		Users: identity.NewAccounts(nil, nil),
	}).Routes(), func(method, route string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
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
