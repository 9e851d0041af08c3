package web_test

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/deadletteroffice/dlo/internal/topology"
)

// site returns the report on a vhost. In this vhost, the queue "sms" loses its dead letters, and
// the queue "mail" sends its dead letters to dlo.
func site() topology.Report {
	number := func(n int64) topology.Figure { return topology.Figure{N: n, Known: true} }
	s := topology.Snapshot{
		Broker:  "main",
		VHost:   "/",
		Version: "4.3.6",
		ReadAt:  start,
		Queues: []topology.Queue{
			{
				Name:      "sms",
				Type:      "classic",
				Ready:     number(7),
				Unacked:   number(2),
				Consumers: number(1),
				Rates:     topology.Rates{Publish: topology.Rate{PerSecond: 41}, Ack: topology.Rate{PerSecond: 3.25}},
			},
			{Name: "mail", Type: "quorum"},
			{Name: "dlo.letters", Type: "quorum"},
			{Name: "odd/%2F <b>", Type: "classic"},
		},
		Exchanges: []topology.Exchange{{Name: "dlo.dlx", Type: "fanout"}},
		Bindings:  []topology.Binding{{Source: "dlo.dlx", Destination: "dlo.letters", To: "queue"}},
		Policies: []topology.Policy{
			{
				Name:       "dlo",
				Pattern:    "^mail$",
				ApplyTo:    "queues",
				Definition: topology.Definition{"dead-letter-exchange": "dlo.dlx"},
			},
		},
	}
	return topology.ReportOn(&s, topology.Options{Inboxes: []string{"dlo.letters"}})
}

func queuePage(broker, vhost, queue string) string {
	return "/queues/one?" + queueNamed(broker, vhost, queue)
}

// TestAllQueuesAreListed checks the list of all queues and its filter. The list must contain queues
// with and without letters, and queues that no longer exist on the broker. It must show the
// dead-letter path of each queue, and the facts that the broker reports.
func TestAllQueuesAreListed(t *testing.T) {
	t.Parallel()
	h := open(t, withRetries)
	h.Topology = looked{site()}
	h.receive("sms", 2, "no gateway")
	h.receive("gone", 1, "no route")
	h.get("/queues").want(t, 200, `<span class="count">4</span>`, `href="/queues?own=1#all-queues"`).wantNot(
		t, ">dlo.letters</a>", "Broker</th>", "main /",
	)
	page := h.get("/queues?own=1").want(
		t, 200, `<span class="count">5</span>`, "41/s in, 3.2/s out", "no dead-letter exchange", "set by policy dlo",
		"not on the broker at the last look", "quorum, inbox", "odd/%2F &lt;b&gt;", "Hide dlo",
		`<input type="hidden" name="own" value="1">`,
	).text
	_, list, _ := strings.Cut(page, `id="all-queues"`)
	list, _, _ = strings.Cut(list, "</section>")
	for name, want := range map[string]string{"sms": "default", "mail": "default"} {
		if _, row, ok := strings.Cut(list, ">"+name+"</a>"); !ok ||
			!strings.Contains(row[:strings.Index(row, "</tr>")], `<a href="/rules">`+want+"</a>") {
			t.Errorf("queue %s has no rule %s", name, want)
		}
	}
	// Queues with dead letters come first, then queues with a fault, and queues of dlo come last.
	order := regexp.MustCompile(`<a class="mono" href="[^"]*">([^<]*)</a>`).FindAllStringSubmatch(list, -1)
	var names []string
	for _, m := range order {
		names = append(names, m[1])
	}
	if diff := cmp.Diff([]string{"gone", "sms", "odd/%2F &lt;b&gt;", "mail", "dlo.letters"}, names); diff != "" {
		t.Error(diff)
	}
	for filter, want := range map[string][]string{
		"name=MS":              {"sms"},
		"name=*.letters":       nil,
		"name=*.letters&own=1": {"dlo.letters"},
		"only=losing":          {"sms", "odd/%2F &lt;b&gt;"},
		"only=letters":         {"sms", "gone"},
		"name=nobody":          nil,
	} {
		_, list, _ := strings.Cut(h.get("/queues?"+filter).want(t, 200).text, `id="all-queues"`)
		list, _, _ = strings.Cut(list, "</section>")
		for _, name := range []string{"sms", "mail", "gone", "dlo.letters", "odd/%2F &lt;b&gt;"} {
			wanted := false
			for _, w := range want {
				wanted = wanted || w == name
			}
			if got := strings.Contains(list, ">"+name+"</a>"); got != wanted {
				t.Errorf("%s: %s is listed: %t", filter, name, got)
			}
		}
	}
}

// TestManyWatchedQueuesAreShownInPages checks that the links between the pages of the list keep its
// filter.
func TestManyWatchedQueuesAreShownInPages(t *testing.T) {
	t.Parallel()
	h := open(t)
	s := topology.Snapshot{Broker: "main", VHost: "/", ReadAt: start}
	for i := range 70 {
		s.Queues = append(s.Queues, topology.Queue{Name: fmt.Sprintf("queue-%02d", i)})
	}
	h.Topology = looked{topology.ReportOn(&s, topology.Options{})}
	h.get("/queues?name=queue").want(
		t, 200, "1 to 30 of 70 queues", `href="/queues?from=30&amp;name=queue#all-queues"`, ">queue-29</a>",
	).wantNot(t, ">queue-30</a>")
	h.get("/queues?name=queue&from=60").want(t, 200, "61 to 70 of 70 queues", ">queue-69</a>")
}

// TestTheQueuePage checks the page of one queue: its numbers, path, findings, groups, history and
// retries. The name of the queue may have any bytes.
func TestTheQueuePage(t *testing.T) {
	t.Parallel()
	h := open(t, withRetries)
	h.Topology = looked{site()}
	h.receive("sms", 2, "no gateway")
	h.post("/queues/pause", url.Values{
		"place":  {queueNamed("main", "/", "sms")},
		"reason": {"gateway down"},
		"return": {queuePage("main", "/", "sms")},
	}).redirectsTo(t, queuePage("main", "/", "sms"))
	h.get(queuePage("main", "/", "sms")).want(
		t, 200, "no dead-letter exchange", "sms has no dead-letter exchange", "41/s in, 3.2/s out",
		"2 in 7 days, 2 dead, 0 scheduled", "G-1", "gateway down", "retries paused", `action="/queues/resume"`,
		"Show fix", "Dead-lettered per",
	)
	h.get(queuePage("main", "/", "mail")).want(
		t, 200, "policy dlo", "at-most-once", "No group of failures", "unknown", `action="/queues/pause"`,
	)
	h.get(queuePage("main", "/", "dlo.letters")).want(t, 200, "letters stay here").wantNot(t, `action="/queues/pause"`)
	h.get(queuePage("main", "/", "odd/%2F <b>")).want(t, 200, "odd/%2F &lt;b&gt;").wantNot(t, "<b>")
	h.get(queuePage("main", "/", "nobody")).want(t, 404, "There is no queue nobody in vhost / of broker main.")
	h.get(queuePage("other", "/", "sms")).want(t, 404)
	h.get("/queues/one").want(t, 404)

	odd := string([]byte{0xff, '/', 0x1b}) + strings.Repeat("x", 200)
	h.receive(odd, 1, "x")
	h.get(queuePage("main", "/", odd)).want(t, 200, "not on the broker at the last look", "1 in 7 days")
	h.Topology = looked{topology.Report{Broker: "main", VHost: "/", Failed: "500"}}
	h.get(queuePage("main", "/", "sms")).want(t, 200, "The broker has not been read").wantNot(
		t, "not on the broker at the last look",
	)
	h.late.Store(int64(8 * 24 * time.Hour))
	h.get(queuePage("main", "/", "sms")).want(t, 200, "0 in 7 days, 2 dead", "No letter in 7 days")
}
