package rabbitmq_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/rabbitmq"
	"github.com/deadletteroffice/dlo/internal/testenv"
	"github.com/deadletteroffice/dlo/internal/topology"
	amqp "github.com/rabbitmq/amqp091-go"
)

// TestAPassiveSnapshot checks what dlo sees of queues if there is no management API.
func TestAPassiveSnapshot(t *testing.T) {
	t.Parallel()
	node := testenv.Broker(t)
	_, address := node.VHost(t)
	declare(t, address, map[string]amqp.Table{"orders": nil, "q": {"x-queue-type": "quorum"}, "read": nil})
	ch := openChannel(t, address, nil)
	if err := ch.Confirm(false); err != nil {
		t.Fatal(err)
	}
	confirmed := ch.NotifyPublish(make(chan amqp.Confirmation, 3))
	for range 3 {
		publishTo(t, ch, "orders")
	}
	for range 3 {
		<-confirmed // before that, the queue may not count a message yet
	}
	if _, err := ch.Consume("read", "", false, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	away, err := rabbitmq.Connect(rabbitmq.Broker{Name: "main", URL: address}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := away.PassiveSnapshot(t.Context(), nil); err == nil {
		t.Error("a link without a connection sees something")
	}
	link := publisherThatWaits(t, address, 1, patience)
	s, err := link.PassiveSnapshot(t.Context(), []string{"gone", "orders", "q", "read"})
	if err != nil || !s.Passive || len(s.Gaps) != 1 {
		t.Fatalf("%+v %v", s, err)
	}
	var got []string
	for _, q := range s.Queues {
		got = append(got, fmt.Sprintf("%s %d %d", q.Name, q.Ready.N, q.Consumers.N))
	}
	if want := []string{"orders 3 0", "q 0 0", "read 0 1"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestASnapshotOfAVHost checks that a user with no tag but "management" can read everything that
// dlo needs to find faults. The definitions file of the same vhost must give the same snapshot.
func TestASnapshotOfAVHost(t *testing.T) {
	t.Parallel()
	node := testenv.Broker(t)
	vhost, address := node.VHost(t)
	declare(t, address, map[string]amqp.Table{
		"orders":                 nil,
		"q":                      {"x-queue-type": "quorum", "x-max-length": int32(7)},
		"with space/?%2F €":      {"x-dead-letter-exchange": "dlx"},
		"log":                    {"x-queue-type": "stream"},
		strings.Repeat("a", 255): nil,
	})
	ch := openChannel(t, address, nil)
	if err := ch.ExchangeDeclare(
		"dlx", "fanout", true, false, false, false, amqp.Table{"alternate-exchange": "other"},
	); err != nil {
		t.Fatal(err)
	}
	if err := ch.QueueBind("q", "key", "dlx", false, nil); err != nil {
		t.Fatal(err)
	}
	in := url.PathEscape(vhost)
	for path, definition := range map[string]map[string]any{
		"/api/policies/" + in + "/dlo":           {"dead-letter-exchange": "dlx"},
		"/api/operator-policies/" + in + "/caps": {"max-length": 3},
	} {
		body := map[string]any{"pattern": "^orders$", "apply-to": "queues", "priority": 7, "definition": definition}
		if err := node.API(http.MethodPut, path, body, nil); err != nil {
			t.Fatal(err)
		}
	}
	user, _ := node.User(t, vhost, "management")
	var s topology.Snapshot
	for until := time.Now().Add(patience); ; time.Sleep(200 * time.Millisecond) {
		list, err := rabbitmq.Look(t.Context(), node.ManagementURLOf(user+":secret"), nil)
		if err != nil || len(list) != 1 {
			t.Fatal(len(list), err)
		}
		s = list[0]
		// For some seconds after a queue is declared, the management API does not report its
		// numbers.
		if !slices.ContainsFunc(
			s.Queues, func(q topology.Queue) bool { return !q.Ready.Known || !q.Consumers.Known },
		) || time.Now().After(until) {
			break
		}
	}
	if len(s.Gaps) > 0 || s.VHost != vhost || !strings.HasPrefix(s.Version, node.Version()[:3]) {
		t.Errorf("%+v", s)
	}
	var file json.RawMessage
	if err := node.API(http.MethodGet, "/api/definitions/"+in, nil, &file); err != nil {
		t.Fatal(err)
	}
	fromFile, err := topology.ReadDefinitions(file)
	if err != nil || len(fromFile) != 1 {
		t.Fatal(len(fromFile), err)
	}
	for name, picture := range map[string]*topology.Snapshot{"broker": &s, "file": &fromFile[0]} {
		if got, want := shape(picture), shape(&s); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	want := []string{
		"binding dlx q key", "exchange dlx fanout other", "operator caps 3 7", "policy dlo dlx 7",
		"queue " + strings.Repeat("a", 255) + " classic ", "queue log stream ", "queue orders classic ",
		"queue q quorum ", "queue with space/?%2F € classic dlx",
	}
	if got := shape(&s); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	for _, q := range s.Queues {
		if q.Consumers.N != 0 || !q.Consumers.Known || q.Ready.N != 0 || !q.Ready.Known {
			t.Errorf("figures of %s: %+v %+v", q.Name, q.Consumers, q.Ready)
		}
	}
}

// shape returns the contents of a snapshot as a list of texts, without the objects that every
// broker declares.
func shape(s *topology.Snapshot) []string {
	var list []string
	for i := range s.Queues {
		q := &s.Queues[i]
		exchange, _ := q.Arguments.Text("x-dead-letter-exchange")
		list = append(list, "queue "+q.Name+" "+q.Kind()+" "+exchange)
	}
	for _, x := range s.Exchanges {
		if x.Name != "" && !strings.HasPrefix(x.Name, "amq.") {
			other, _ := x.Arguments.Text("alternate-exchange")
			list = append(list, "exchange "+x.Name+" "+x.Type+" "+other)
		}
	}
	for _, b := range s.Bindings {
		if b.Source != "" {
			list = append(list, "binding "+b.Source+" "+b.Destination+" "+b.Key)
		}
	}
	for _, p := range s.Policies {
		exchange, _ := p.Definition.Text("dead-letter-exchange")
		list = append(list, "policy "+p.Name+" "+exchange+" "+string(rune('0'+p.Priority)))
	}
	for _, p := range s.Operators {
		n, _ := p.Definition.Number("max-length")
		list = append(list, "operator "+p.Name+" "+string(rune('0'+n))+" "+string(rune('0'+p.Priority)))
	}
	slices.Sort(list)
	return list
}

// TestASnapshotSaysWhatItDoesNotKnow checks a management API of which one part fails. The snapshot
// must list this part as unread. A queue that cannot be decoded must not hide the others.
func TestASnapshotSaysWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	api := http.NewServeMux()
	say := func(path, text string) {
		api.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text)) })
	}
	say("/api/overview", `{"rabbitmq_version":"5.1.0","rates_mode":"none","new_field":{}}`)
	say("/api/vhosts", `[{"name":"v"}]`)
	say(
		"/api/queues/v",
		`{"page_count":1,"items":[{"name":"a","messages_ready":"many","consumers":2},{"name":"b","arguments":7},{"name":"c","message_stats":[]}]}`,
	)
	say("/api/exchanges/v", `[{"name":"x","type":"fanout"},`)
	say("/api/policies/v", `{"error":"not_authorised"}`)
	say("/api/operator-policies/v", `[]`)
	shovels := http.StatusInternalServerError
	api.HandleFunc("/api/parameters/shovel/v", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(shovels) })
	server := httptest.NewServer(api)
	defer server.Close()
	list, err := rabbitmq.Look(t.Context(), server.URL, []string{"v"})
	if err != nil {
		t.Fatal(err)
	}
	s := list[0]
	var gaps []string
	for _, g := range s.Gaps {
		gaps = append(gaps, g.What)
	}
	if want := []string{
		"queue b", topology.PartExchanges, topology.PartBindings, topology.PartPolicies, topology.PartShovels,
	}; !slices.Equal(gaps, want) {
		t.Errorf("gaps %q, want %q", gaps, want)
	}
	if !s.NoRates || len(s.Queues) != 2 || s.Queues[0].Ready.Known || s.Queues[0].Consumers.N != 2 ||
		s.Queues[1].Consumers.Known {
		t.Errorf("%+v", s.Queues)
	}
	if found := topology.Inspect(&s, topology.Options{}); len(found) > 0 {
		t.Errorf("findings from what is not known: %+v", found)
	}
	for _, shovels = range []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound} {
		list, err := rabbitmq.Look(t.Context(), server.URL, []string{"v"})
		if err != nil || list[0].Unread(topology.PartShovels) != "" || len(list[0].Gaps) != len(gaps)-1 {
			t.Errorf("shovels answered %d: %+v %v", shovels, list, err)
		}
	}
}

// TestQueuesThatChangeBetweenPages deletes a queue of the first page before the second page is
// read. The other queues then move up, and the dead-letter queue is on neither page. The test
// checks that dlo reads the pages again. If the queues change each time, dlo must report that it
// could not read all of them.
func TestQueuesThatChangeBetweenPages(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	for name, c := range map[string]struct {
		queues  int
		changes int // how many reads of all pages a queue is deleted in
		gap     bool
	}{
		"never":                             {queues: 600},
		"once":                              {queues: 600, changes: 1},
		"twice":                             {queues: 600, changes: 2},
		"always":                            {queues: 600, changes: 99, gap: true},
		"the second page disappears once":   {queues: 501, changes: 1},
		"the second page disappears always": {queues: 501, changes: 99, gap: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var names []string
			reads, api := 0, http.NewServeMux()
			api.HandleFunc("/api/queues/v", func(w http.ResponseWriter, r *http.Request) {
				first := 0
				if r.URL.Query().Get("page") == "1" {
					reads++
					names = nil
					for i := range c.queues {
						names = append(names, fmt.Sprintf("q%d", i))
					}
				} else {
					first = 500
					if reads <= c.changes {
						names = names[1:]
					}
				}
				if first >= len(names) {
					http.Error(w, "page_out_of_range", http.StatusBadRequest)
					return
				}
				var items []string
				for _, name := range names[first:min(first+500, len(names))] {
					items = append(items, fmt.Sprintf(`{"name":%q,"type":"classic"}`, name))
				}
				fmt.Fprintf(
					w, `{"items":[%s],"page_count":%d,"total_count":%d}`, strings.Join(items, ","),
					(len(names)+499)/500, len(names),
				)
			})
			for path, text := range map[string]string{
				"/api/overview": `{"rabbitmq_version":"4.3.6"}`, "/api/vhosts": `[{"name":"v"}]`,
				"/api/exchanges/v": `[]`, "/api/bindings/v": `[]`, "/api/operator-policies/v": `[]`,
				"/api/parameters/shovel/v": `[]`,
				"/api/policies/v":          `[{"name":"p","pattern":"^q7$","priority":1,"definition":{"dead-letter-exchange":"","dead-letter-routing-key":"q500"}}]`,
			} {
				api.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text)) })
			}
			server := httptest.NewServer(api)
			defer server.Close()
			list, err := rabbitmq.Look(t.Context(), server.URL, nil)
			if err != nil {
				t.Fatal(err)
			}
			s := &list[0]
			if gap := len(s.Gaps) > 0; gap != c.gap || !gap && len(s.Queues) != c.queues {
				t.Errorf("%d queues, gaps: %+v", len(s.Queues), s.Gaps)
			}
			for _, f := range topology.Inspect(s, topology.Options{}) {
				if f.Kind == topology.QueueMissing {
					t.Errorf("a false finding: %s", f.Title)
				}
			}
		})
	}
}

// TestALookThatFails checks the errors for an API that cannot be queried.
func TestALookThatFails(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	node := testenv.Broker(t)
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>welcome</html>") }))
	defer site.Close()
	for raw, want := range map[string]string{
		"http://127.0.0.1:1": "connection refused",
		strings.Replace(node.ManagementURLOf(":"), ":@", "", 1): ". The URL has no user; it looks like http://",
		node.ManagementURLOf("guest:wrong"):                     "refuses the user: it answered 401 Unauthorized: ",
		other.URL:                                               "is not the URL of a management API",
		site.URL:                                                "is not the URL of a management API, because the answer is not JSON of RabbitMQ",
		"http://guest:guest@" + node.AMQPAddr():                 "is not the URL of a management API, because the port does not speak HTTP",
		"amqp://guest:guest@127.0.0.1:5672":                     "it looks like http://",
	} {
		if _, err := rabbitmq.Look(
			t.Context(), raw, nil,
		); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "wrong@") {
			t.Errorf("%s: %v", raw, err)
		}
	}
	vhost, _ := node.VHost(t)
	user, _ := node.User(t, vhost, "")
	if _, err := rabbitmq.Look(
		t.Context(), node.ManagementURLOf(user+":secret"), nil,
	); err == nil || !strings.Contains(err.Error(), "Not management user") {
		t.Errorf("a user without a tag: %v", err)
	}
	if err := node.API(http.MethodPut, "/api/users/"+user, map[string]string{
		"password": "secret", "tags": "management",
	}, nil); err != nil {
		t.Fatal(err)
	}
	if err := node.API(http.MethodDelete, "/api/permissions/"+vhost+"/"+user, nil, nil); err != nil {
		t.Fatal(err)
	}
	_, err := rabbitmq.Look(t.Context(), node.ManagementURLOf(user+":secret"), nil)
	if err == nil || !strings.Contains(err.Error(), "sees no vhost") {
		t.Fatalf("a user without a permission: %v", err)
	}
	node.Cure(t, err.Error())
	if list, err := rabbitmq.Look(
		t.Context(), node.ManagementURLOf(user+":secret"), nil,
	); err != nil || len(list) != 1 || list[0].VHost != "/" {
		t.Errorf("after the command of the error: %d vhosts, %v", len(list), err)
	}
	if _, err := rabbitmq.Look(
		t.Context(), node.ManagementURLOf("guest:guest"), []string{"nowhere"},
	); err == nil || !strings.Contains(err.Error(), "sees no vhost nowhere") {
		t.Errorf("a vhost that does not exist: %v", err)
	}
}
