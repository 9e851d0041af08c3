package web_test

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/topology"
	"github.com/deadletteroffice/dlo/web"
	"github.com/deadletteroffice/dlo/web/view"
)

// teams is a dlo with the letters of two teams. Every text of team B contains a certain word, the
// canary, so that tests notice it when team A sees such a text.
type teams struct {
	*house
	who  deadletter.Principal
	a, b []deadletter.ID // some of the letters of each team
	n    map[string]int  // number of letters in each queue, and of letters of unknown origin in each inbox
	said string          // the word in bodies, headers and properties; "" = the word of the queue
}

// teamA returns a principal who may do everything with the queues of team A.
func teamA(role deadletter.Role) deadletter.Principal {
	return deadletter.Principal{
		Name: "ana",
		Grants: []deadletter.Grant{
			{Role: role, Reveal: true, Purge: true, Places: deadletter.Places{Queues: []string{"a.*"}}},
		},
	}
}

var teamB = deadletter.Principal{
	Name:   "kanarie-person",
	Grants: []deadletter.Grant{{Role: deadletter.RoleAdmin, Reveal: true, Purge: true}},
}

// die makes n letters of a queue dead. All their texts contain the given word.
func (h *teams) die(queue, word string, n int) []deadletter.ID {
	h.t.Helper()
	return h.arrive("dlo.letters", queue, word, n)
}

// arrive stores n dead letters that came through the given inbox. All their texts contain the given
// word. If "queue" is "", the origin of the letters is unknown.
func (h *teams) arrive(inbox, queue, word string, n int) []deadletter.ID {
	h.t.Helper()
	said, place := cmp.Or(h.said, word), cmp.Or(queue, inbox)
	var ids []deadletter.ID
	for n > 0 {
		h.window++
		w := deadletter.Window{
			Session: 1, Number: h.window, Broker: "main", VHost: "/", Inbox: inbox, Uncertain: deadletter.UncertainHold,
			Horizon: 10e9, HorizonRows: 1000,
		}
		for i := range min(n, 500) {
			a := deadletter.Arrival{
				Exchange:   "dlo.dlx",
				RoutingKey: place,
				Tag:        uint64(i + 1),
				Body:       []byte(fmt.Sprintf(`{"note": %q, "n": %d}`, said, i)),
				Properties: deadletter.Properties{
					MessageID:     fmt.Sprintf("%s-m-%d-%d", said, h.window, i),
					AppID:         said + "-app",
					CorrelationID: said + "-c",
					Type:          said + ".Type",
					ContentType:   "application/json",
					Headers: deadletter.Table{
						"x-tenant": said, said + "-header": int64(1),
					},
				},
			}
			if queue != "" {
				a.Properties.Headers["x-death"] = []any{
					deadletter.Table{
						"queue":        queue,
						"exchange":     word + ".events",
						"reason":       "rejected",
						"count":        int64(1),
						"routing-keys": []any{word + ".key"},
						"time":         start,
					},
				}
			}
			print, err := a.Print()
			if err != nil {
				h.t.Fatal(err)
			}
			a.Fingerprint = print
			w.Arrivals = append(w.Arrivals, a)
		}
		n -= len(w.Arrivals)
		r, err := h.store.Receive(h.t.Context(), w)
		if err != nil {
			h.t.Fatal(err)
		}
		if err := h.store.SettleWindow(h.t.Context(), r.Window); err != nil {
			h.t.Fatal(err)
		}
		letters, err := h.store.NextReceived(h.t.Context(), 500)
		if err != nil {
			h.t.Fatal(err)
		}
		var verdicts []deadletter.Classified
		for _, l := range letters {
			verdicts = append(verdicts, deadletter.Classified{
				Letter: l.ID,
				To:     deadletter.ClassifiedDead,
				Origin: deadletter.Origin{
					Broker: "main", VHost: "/", Queue: queue, Exchange: word + ".events", RoutingKey: word + ".key",
				},
				DiedAt:       start,
				Reason:       "rejected",
				Type:         word + ".Type",
				Summary:      "note: " + said,
				Error:        word + " failed",
				Rule:         word + "-rule",
				Why:          word + ": used up",
				GroupKey:     sha256.Sum256([]byte(place)),
				GroupTitle:   word + " failed",
				GroupVersion: 1,
				Severity:     deadletter.SeverityPage,
				Channels:     []string{"oncall"},
			})
		}
		if err := h.store.Classify(h.t.Context(), verdicts); err != nil {
			h.t.Fatal(err)
		}
		unindexed, err := h.store.NextUnindexed(h.t.Context(), 500)
		if err != nil {
			h.t.Fatal(err)
		}
		var index []deadletter.Indexed
		for _, l := range unindexed {
			index = append(index, deadletter.Indexed{
				Letter: l.ID,
				Text:   string(l.Body),
				Fields: []deadletter.IndexedField{
					{Name: "id", Value: l.ID.Short()},
					{Name: "body.note", Value: said},
					{Name: "header.x-tenant", Value: said},
				},
			})
		}
		if err := h.store.Index(h.t.Context(), index); err != nil {
			h.t.Fatal(err)
		}
		ids = append(ids, r.New...)
	}
	h.n[place] += len(ids)
	return ids
}

// twoTeams returns a dlo with the letters of two teams. Team B and an admin have done many things
// there, so that dlo contains every kind of text of team B that could get onto a page of team A.
func twoTeams(t *testing.T) *teams {
	t.Helper()
	h := &teams{n: map[string]int{}}
	h.house = open(t, withRetries, withLibrary, withUsers, knownAs(&h.who), func(o *web.Options) {
		o.Fields, o.Topology, o.Adoption, o.Drains, o.Trials, o.Facts = []string{"note"}, looked{
			twoReports(),
		}, &adopted{}, &fakeDrains{}, &staged{}, someFacts
		o.Channels = &testedChannels{}
		o.Told, o.Disk = func() []string { return []string{"kanarie-channel"} }, func() string { return "kanarie free" }
		o.Problems = func() []deadletter.Problem {
			return []deadletter.Problem{
				{Kind: deadletter.ProblemInboxLoses, Title: "kanarie", Text: "kanarie", Cure: "kanarie"},
			}
		}
		o.Metrics = http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { fmt.Fprintln(rw, `dlo_letters{queue="b.kanarie"} 1`) })
	})
	h.brokers[0].Rights = []deadletter.Right{{Operation: "write", Resource: "kanarie", For: "kanarie"}}
	most := 300
	if os.Getenv("DLO_SOAK") != "" {
		most = 50_000
	}
	h.a = h.die("a.one", "apple", most)
	h.b = h.die("b.kanarie", "kanarie", most)
	h.a = append(h.a, h.die("a.two", "avocado", 40)...)
	h.b = append(h.b, h.die("b.kanarie.two", "kanarie", 30)...)
	h.die("b.kanarie.three", "kanarie", 3)
	h.a = append(h.a, h.arrive("a.inbox", "", "apricot", 20)...)
	h.b = append(h.b, h.arrive("b.kanarie.inbox", "", "kanarie", 20)...)

	h.who = teamB
	id := string(h.b[0])
	h.patchJSON(
		"/api/v1/groups/G-2",
		`{"owner":"kanarie-owner","note":"kanarie-note","ticket":"https://kanarie.example/1","severity":"notify"}`,
	).want(t, 200)
	h.postJSON("/api/v1/groups/G-2/merge", `{"groups":["G-3","G-4"]}`).want(t, 200) // G-3 belongs to team A
	h.patchJSON("/api/v1/groups/G-5", `{"status":"resolved"}`)
	h.postJSON("/api/v1/views", `{"name":"kanarie-view","query":"queue:b.kanarie"}`).want(t, 201)
	h.postJSON(
		"/api/v1/overrides", `{"queue":"b.kanarie","to":"b.kanarie.other","reason":"kanarie-reason"}`,
	).want(t, 201)
	h.postJSON("/api/v1/queues/pause", `{"queue":"b.kanarie.two","reason":"kanarie-pause"}`).want(t, 200)
	h.postJSON("/api/v1/groups/G-4/pause", `{"reason":"kanarie-pause"}`).want(t, 200)
	h.postJSON("/api/v1/deploys", `{"service":"kanarie-service","version":"kanarie-1"}`).want(t, 201)
	h.postJSON("/api/v1/letters/"+id+"/revisions", `{"body":"a2FuYXJpZQ==","reason":"kanarie-edit"}`)
	h.postJSON(
		"/api/v1/annotations",
		`{"broker":"main","vhost":"/","queue":"b.kanarie","message_id":"kanarie-m-2-1","error_type":"kanarie.Error","message":"kanarie","stack":"kanarie","service":"kanarie"}`,
	)
	h.postJSON(
		"/api/v1/operations", `{"action":"discard","ids":["`+string(h.b[5])+`"],"reason":"kanarie-alone"}`,
	).want(t, 202)
	h.postJSON("/api/v1/operations", `{"action":"hold","q":"(","reason":"x"}`)
	// if an action was on a letter of team A, the audit shows team A who acted and why
	h.who = deadletter.Principal{Name: "root", Grants: teamB.Grants}
	both := fmt.Sprintf(`["%s","%s","%s"]`, h.a[7], h.b[7], h.b[8])
	h.postJSON("/api/v1/operations", `{"action":"hold","ids":`+both+`,"reason":"both"}`).want(t, 202)
	h.who = teamB
	h.postJSON(
		"/api/v1/operations", `{"action":"requeue","q":"queue:b.kanarie.two","reason":"kanarie-running"}`,
	).want(t, 202)
	h.postJSON("/api/v1/letters/"+string(h.b[9])+"/reveal", `{"field":"note"}`)
	h.postJSON("/api/v1/tokens", `{"name":"kanarie-token","role":"reader"}`).want(t, 201)
	h.postJSON("/api/v1/users", `{"name":"kanarie-user","role":"reader"}`).want(t, 201)
	h.get("/letters/"+id).want(t, 200, "kanarie")
	for range 3 {
		h.advance()
	}
	return h
}

// twoReports returns a report on the dead-letter paths of a vhost. Each of the two teams has a
// queue with a fault.
func twoReports() topology.Report {
	fault := func(queue, word string) topology.Finding {
		return topology.Finding{
			Kind: topology.NoExchange, Severity: deadletter.SeverityNotify, Broker: "main", VHost: "/", Queue: queue,
			Title: word, Loses: word, Why: word, Cure: word, Sure: topology.Certain, Since: start,
		}
	}
	shared := fault("a.two", "kanarie")
	shared.Kind, shared.Others = topology.Cycle, []string{"b.kanarie"}
	r := report(fault("a.one", "apple"), shared, fault("b.kanarie", "kanarie"), fault("", "kanarie"))
	r.Findings = append(r.Findings, oneCause()...)
	r.Gaps = []topology.Gap{{What: "kanarie", Why: "kanarie"}}
	r.Queues = 3
	through := topology.Route{
		Known:  true,
		Judged: true,
		Set:    true,
		Key:    "b.kanarie",
		Fixed:  true,
		Queues: []string{"a.two", "b.kanarie"},
	}
	r.All = []topology.Described{
		{Name: "a.one"},
		{Name: "a.two", Route: through},
		{Name: "b.kanarie"},
		{Name: "dlo.kanarie"},
	}
	return r
}

// oneCause returns a finding about a policy that both teams use: its exchange does not exist.
func oneCause() []topology.Finding {
	s := topology.Snapshot{Broker: "main", VHost: "/", Version: "4.3.6"}
	for _, queue := range []string{"b.kanarie", "a.one", "a.two"} {
		s.Queues = append(s.Queues, topology.Queue{Name: queue, Type: topology.Classic, Durable: true})
	}
	s.Policies = []topology.Policy{
		{Name: "dead", Pattern: ".", Definition: topology.Definition{"dead-letter-exchange": "gone"}},
	}
	return topology.Inspect(&s, topology.Options{})
}

// TestOneCauseOfTwoTeams checks that each team sees a finding that it shares with another team,
// with its own queues only.
func TestOneCauseOfTwoTeams(t *testing.T) {
	t.Parallel()
	h := twoTeams(t)
	for _, c := range []struct {
		who  deadletter.Principal
		want string
	}{
		{teamA(deadletter.RoleReader), "[a.one a.two] a.one dead-letters to exchange gone, which does not exist; the same is true of 1 more: a.two"},
		{teamB, "[b.kanarie a.one a.two] b.kanarie dead-letters to exchange gone, which does not exist; the same is true of 2 more: a.one, a.two"},
	} {
		h.who = c.who
		var answer struct{ Findings []topology.Finding }
		h.get("/api/v1/topology/findings").want(t, 200).json(t, &answer)
		var got []string
		for _, f := range answer.Findings {
			if f.Kind == topology.ExchangeMissing {
				got = append(got, fmt.Sprint(f.Queues(), " ", f.Title))
			}
		}
		if len(got) != 1 || got[0] != c.want {
			t.Errorf("%s sees %q, want %q", c.who.Name, got, c.want)
		}
		for _, queue := range []string{"a.one", "a.two"} { // the page of each queue has it too
			h.get(view.QueueURL(deadletter.Origin{Broker: "main", VHost: "/", Queue: queue})).want(t, 200, queue+" dead-letters to exchange gone")
		}
	}
}

// routePaths returns the paths of all routes. Their parameters are the ids of existing objects of
// both teams.
func (h *teams) routePaths() []string {
	ids := map[string][]string{
		"letters": {
			string(h.a[0]), string(h.a[7]), string(h.a[len(h.a)-1]), string(h.b[0]), string(h.b[7]),
			string(h.b[len(h.b)-1]),
		},
	}
	for i := 1; i <= 7; i++ {
		ids["groups"] = append(ids["groups"], fmt.Sprint("G-", i))
		ids["operations"] = append(ids["operations"], fmt.Sprint("O-", i))
	}
	queries := []string{
		"", "?q=", "?q=kanarie", "?q=queue:b.kanarie", "?q=kan*", "?q=-x", "?q=body.note:kanarie",
		"?q=header.x-tenant:kanarie", "?tab=digest", "?tab=resolved", "?tab=mine", "?tab=snoozed", "?tab=all",
		"?range=30d", "?limit=100", "?only=letters", "?name=kanarie", "?q=group:G-2", "?q=O-2",
	}
	var paths []string
	chi.Walk(h.Routes(), func(method, route string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		if method != http.MethodGet || strings.HasPrefix(route, "/static") || strings.HasSuffix(route, "/events") ||
			route == "/signin" || route == "/welcome" {
			return nil
		}
		if !strings.Contains(route, "{") {
			for _, q := range queries {
				paths = append(paths, route+q)
			}
			return nil
		}
		for kind, list := range ids {
			if !strings.Contains(route, "/"+kind+"/") {
				continue
			}
			for _, id := range list {
				path := strings.Replace(route, "{id}", id, 1)
				paths = append(paths, path)
				if route == "/letters/{id}" {
					for _, tab := range []string{"json", "raw", "headers", "timeline", "history"} {
						paths = append(paths, path+"?tab="+tab)
					}
				}
				if kind == "operations" {
					paths = append(paths, path+"?result=done", path+"?result=skipped")
				}
			}
		}
		return nil
	})
	return append(
		paths, "/jump?to=O-1", "/jump?to="+h.b[0].Short(), "/jump?to=G-2", "/palette?q=kan", "/palette?q=O-1",
		"/palette?q=b.",
		"/letters/complete?q=queue:&at=6", "/letters/complete?q=type:&at=5", "/letters/complete?q=header.&at=7",
		"/letters/complete?q=body.&at=5", "/letters/complete?q=body.note:&at=10", "/letters/complete?q=group:&at=6",
		"/letters/complete?q=app:&at=4",
		"/audit/complete?q=who:&at=4", "/audit/complete?q=target:&at=7", "/audit?q=kanarie", "/audit/export?format=csv",
		"/api/v1/audit?q=b.kanarie", "/letters/export?format=csv", "/api/v1/letters/export?reveal=1",
		"/queues/one?broker=main&vhost=%2F&queue=b.kanarie", "/queues/one?broker=main&vhost=%2F&queue=a.one",
		"/api/v1/letters/facets?q=&body=note", "/api/v1/queues", "/api/v1/letters/facets?q=state:dead",
		"/api/v1/letters/histogram?q=",
	)
}

// echo finds the word that marks the letters of the other team. A response may contain this word
// only where it repeats what the request contained.
var echo = regexp.MustCompile(`(?i)kanarie`)

// TestTwoTeams checks that a response to one team contains no byte of another team's letters. It
// requests every page as a viewer and as an admin. The roles between these two get no more than an
// admin.
func TestTwoTeams(t *testing.T) {
	t.Parallel()
	h := twoTeams(t)
	shown := 0
	for _, role := range []deadletter.Role{deadletter.RoleViewer, deadletter.RoleAdmin} {
		h.who = teamA(role)
		for _, path := range h.routePaths() {
			a := h.get(path)
			if a.StatusCode >= 500 {
				t.Errorf("%s %s: %d %.200s", role, path, a.StatusCode, a.text)
			}
			if a.StatusCode == 200 {
				shown++
			}
			h.clean(fmt.Sprintf("%s GET %s", role, path), path, a)
		}
	}
	if shown < 300 {
		t.Errorf("only %d responses show anything", shown)
	}
}

// clean reports an error if a response or its headers contain the canary, the word that marks the
// letters of the other team. However, a response may repeat the canary if the request contains it.
// In that case, clean sends the same request with another word. The canary must occur exactly as
// often in the first response as that word occurs in the second one.
func (h *teams) clean(what, request string, a answer) {
	h.t.Helper()
	text := shownBy(a)
	found := echo.FindAllStringIndex(text, -1)
	if strings.Contains(request, teamsWord) && len(found) > 0 {
		twin := shownBy(h.get(strings.ReplaceAll(request, teamsWord, nobodys)))
		if own := strings.Count(strings.ToLower(twin), nobodys); own == len(found) && !echo.MatchString(twin) {
			return
		}
	}
	if len(found) > 0 {
		i := found[len(found)-1]
		h.t.Errorf(
			"%s: %d shows a letter of others: …%s…", what, a.StatusCode, text[max(0, i[0]-150):min(len(text), i[1]+60)],
		)
	}
}

// The constant teamsWord is the word that all letters of team B contain. The constant nobodys is a
// word of the same length that no letter contains.
const teamsWord, nobodys = "kanarie", "kanorae"

// shownBy returns the text and the headers of a response.
func shownBy(a answer) string {
	text := strings.ReplaceAll(a.text, "<wbr>", "")
	for _, values := range a.Header {
		text += "\n" + strings.Join(values, "\n")
	}
	return text
}

// TestTwoTeamsCount checks the numbers that a team sees. They must count only letters that this
// team can list.
func TestTwoTeamsCount(t *testing.T) {
	t.Parallel()
	h := twoTeams(t)
	h.who = teamA(deadletter.RoleReader)
	own := h.n["a.one"] + h.n["a.two"] + h.n["a.inbox"]
	var count struct{ Count int }
	h.get("/api/v1/letters/count").want(t, 200).json(t, &count)
	listed := strings.Count(h.get("/api/v1/letters/export").want(t, 200).text, "\n")
	var facets struct {
		Facets map[string][]struct {
			Value string
			Count int
		}
	}
	h.get("/api/v1/letters/facets").want(t, 200).json(t, &facets)
	if count.Count != own || listed != own {
		t.Errorf("%d counted, %d listed, want %d", count.Count, listed, own)
	}
	for field, values := range facets.Facets {
		sum := 0
		for _, v := range values {
			sum += v.Count
		}
		want := own
		if slices.Contains([]string{"queue", "vhost", "broker"}, field) { // letters of unknown origin have no place
			want -= h.n["a.inbox"]
		}
		if sum != want && !strings.HasPrefix(field, "body.") { // facets of body fields count only a sample
			t.Errorf("the facet %s has %d letters, want %d: %v", field, sum, want, values)
		}
	}
	if len(facets.Facets) < 7 {
		t.Errorf("there are %d facets", len(facets.Facets))
	}
	var groups struct{ Groups []struct{ ID string } }
	h.get("/api/v1/groups?tab=all").want(t, 200).json(t, &groups)
	if len(groups.Groups) != 3 {
		t.Errorf("the groups of A are %v, want 3", groups.Groups)
	}
	var operations struct {
		Operations []struct {
			ID    string
			Total int
		}
	}
	h.get("/api/v1/operations").want(t, 200).json(t, &operations)
	if len(operations.Operations) != 1 || operations.Operations[0].Total != 1 {
		t.Errorf("the operations of A are %+v, want the one with one of its letters", operations.Operations)
	}
}

// TestTwoTeamsAct checks that nobody can act on the letters of another team. The response must be
// the same as for objects that do not exist.
func TestTwoTeamsAct(t *testing.T) {
	t.Parallel()
	h := twoTeams(t)
	h.who = teamA(deadletter.RoleAdmin)
	a, b := string(h.a[0]), string(h.b[0])
	missing := "01a1f82f-1e80-7001-ae47-919b9669db7d"
	same := func(what, own, none string, send func(id string) answer) {
		t.Helper()
		x, y := send(own), send(none)
		if x.StatusCode != y.StatusCode ||
			strings.ReplaceAll(x.text, own, "ID") != strings.ReplaceAll(y.text, none, "ID") {
			t.Errorf(
				"%s: %d %.300s\nfor what does not exist: %d %.300s", what, x.StatusCode, x.text, y.StatusCode, y.text,
			)
		}
	}
	for kind, b := range map[string]string{"a letter": b, "a letter of unknown origin": string(h.b[len(h.b)-1])} {
		for _, action := range []string{"requeue", "discard", "hold", "purge", "edit"} {
			same(action+" of "+kind, b, missing, func(id string) answer {
				return h.postJSON(
					"/api/v1/operations",
					`{"action":"`+action+`","ids":["`+id+`"],"dry_run":true,"patch":[{"op":"remove","path":"/n"}]}`,
				)
			})
		}
		same("a revision of "+kind, b, missing, func(id string) answer {
			return h.postJSON("/api/v1/letters/"+id+"/revisions", `{"body":"eA=="}`)
		})
		same("a reveal of "+kind, b, missing, func(id string) answer {
			return h.postJSON("/api/v1/letters/"+id+"/reveal", `{"field":"note"}`)
		})
		same(kind, b, missing, func(id string) answer { return h.get("/api/v1/letters/" + id) })
		same(
			"the body of "+kind, b, missing, func(id string) answer { return h.get("/api/v1/letters/" + id + "/body") },
		)
	}
	for _, path := range []string{"", "/pause", "/resume"} {
		same("a group"+path, "G-2", "G-99", func(id string) answer {
			if path == "" {
				return h.patchJSON("/api/v1/groups/"+id, `{"note":"x"}`)
			}
			return h.postJSON("/api/v1/groups/"+id+path, `{}`)
		})
	}
	for _, path := range []string{"/pause", "/resume", "/cancel"} {
		same(
			"an operation"+path, "O-1", "O-99",
			func(id string) answer { return h.postJSON("/api/v1/operations/"+id+path, ``) },
		)
	}
	same(
		"a merge", "G-2", "G-99",
		func(id string) answer { return h.postJSON("/api/v1/groups/G-1/merge", `{"groups":["`+id+`"]}`) },
	)
	same(
		"a merge into", "G-2", "G-99",
		func(id string) answer { return h.postJSON("/api/v1/groups/"+id+"/merge", `{"groups":["G-1"]}`) },
	)
	same(
		"a decision", "1", "99",
		func(id string) answer { return h.postJSON("/api/v1/groups/decisions/"+id+"/undo", ``) },
	)
	same("a view", "1", "99", func(id string) answer { return h.sendJSON("DELETE", "/api/v1/views/"+id, "") })
	same("a redirect", "1", "99", func(id string) answer { return h.sendJSON("DELETE", "/api/v1/overrides/"+id, "") })
	same(
		"a queue", "b.kanarie", "b.nothing",
		func(queue string) answer { return h.postJSON("/api/v1/queues/pause", `{"queue":"`+queue+`"}`) },
	)
	same("a target", "b.kanarie", "b.nothing", func(queue string) answer {
		return h.postJSON("/api/v1/operations", `{"action":"requeue","ids":["`+a+`"],"to":"`+queue+`"}`)
	})
	same("a redirect to", "b.kanarie", "b.nothing", func(queue string) answer {
		return h.postJSON("/api/v1/overrides", `{"queue":"a.one","to":"`+queue+`"}`)
	})

	// A team may not change a group that is merged with groups of other teams. It may not change an
	// operation that also works on letters of other teams.
	h.clean("a decision on a merged group", "", h.patchJSON("/api/v1/groups/G-3", `{"note":"x"}`).want(t, 403))
	h.clean("an operation on both", "", h.postJSON("/api/v1/operations/O-2/cancel", ``).want(t, 403))
	h.patchJSON("/api/v1/groups/G-1", `{"note":"mine","owner":"ana"}`).want(t, 200)
	h.clean(
		"a plan", "",
		h.postJSON("/api/v1/operations", `{"action":"requeue","q":"","dry_run":true}`).want(
			t, 200, fmt.Sprintf(`"total":%d`, h.n["a.one"]+h.n["a.two"]+h.n["a.inbox"]),
		),
	)
	// the name is free, although a view of another team has it
	h.postJSON("/api/v1/views", `{"name":"kanarie-view","query":"state:dead"}`).want(t, 201, `"mine":true`)
	teamA := h.who
	deadOfB := func() (n int) {
		var left struct{ Count int }
		h.who = teamB
		h.get("/api/v1/letters/count?exact=1&q=state:dead+queue:b.*").want(t, 200).json(t, &left)
		h.who = teamA
		return left.Count
	}
	before := deadOfB()
	h.postJSON("/api/v1/operations", `{"action":"discard","q":""}`).want(t, 202)
	for range 30 {
		h.advance()
	}
	if after := deadOfB(); after != before || before == 0 {
		t.Errorf("%d letters of B are dead, and %d were dead before A discarded all it can see", after, before)
	}
	h.who = teamB
	var left struct{ Count int }
	h.get("/api/v1/letters/count?q=state:dead+-queue:a.*+-queue:b.*").want(t, 200).json(t, &left)
	if want := h.n["b.kanarie.inbox"]; left.Count != want {
		t.Errorf("%d letters of unknown origin are left, want the %d of B", left.Count, want)
	}
}

// TestEventsKeepToTheScope checks when the event stream of a person sends an event. If letters of
// other teams arrive or change, it must send none. If letters of the person's own team arrive, it
// must send one. The test covers persons with every role.
func TestEventsKeepToTheScope(t *testing.T) {
	t.Parallel()
	h := twoTeams(t)
	positions := func() map[string]int64 {
		all := map[string]int64{}
		for _, rank := range ranks {
			who := deadletter.Principal{Name: "ana", Grants: slices.Clone(rank.grants)}
			who.Grants[0].Queues = []string{"a.*"}
			for name, p := range map[string]deadletter.Principal{
				rank.name + " of a.*": who,
				rank.name:             {Name: "ana", Grants: rank.grants},
			} {
				n, err := h.store.Position(deadletter.Within(t.Context(), p.Sees()))
				if err != nil {
					t.Fatal(err)
				}
				all[name] = n
			}
		}
		return all
	}
	for what, c := range map[string]struct {
		do  func()
		own bool // whether the letters belong to the reader
	}{
		"letters of others arrived": {
			func() { h.die("b.kanarie", "kanarie", 3) }, false,
		},
		"letters of others arrived, and their origin is not known": {
			func() { h.arrive("b.kanarie.inbox", "", "kanarie", 1) }, false,
		},
		"others wrote a note": {func() {
			h.who = teamB
			h.patchJSON("/api/v1/groups/G-2", `{"note":"again"}`).want(t, 200)
		}, false},
		"a letter arrived": {func() { h.die("a.one", "apple", 1) }, true},
		"a letter arrived, and its origin is not known": {func() { h.arrive("a.inbox", "", "apricot", 1) }, true},
	} {
		before := positions()
		c.do()
		for name, n := range positions() {
			if moved, want := n != before[name], c.own || !strings.HasSuffix(name, " of a.*"); moved != want {
				t.Errorf("%s: the position of the %s moved: %t, want %t", what, name, moved, want)
			}
		}
	}
	h.who = teamA(deadletter.RoleReader)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := httptest.NewRequest("GET", "/events", nil).WithContext(ctx)
	h.clean("the stream", "", h.do(r))
}
