package web_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/topology"
	"github.com/deadletteroffice/dlo/web"
)

// looked is a Topology with fixed reports.
type looked []topology.Report

func (l looked) Reports() []topology.Report { return l }

func (looked) Refresh(context.Context, string, string) {}

func (l looked) Plan(w topology.Wish) ([]topology.Plan, error) {
	s := topology.Snapshot{
		Broker: l[0].Broker,
		VHost:  l[0].VHost,
		Queues: []topology.Queue{
			{Name: "sms", Arguments: topology.Definition{"x-max-length": json.Number("5")}},
			{Name: "dlo.letters"},
		},
		Exchanges: []topology.Exchange{{Name: "dlo.dlx", Type: "fanout"}},
		Bindings:  []topology.Binding{{Source: "dlo.dlx", Destination: "dlo.letters", To: "queue"}},
	}
	return []topology.Plan{
		topology.MakePlan(&s, topology.Want{
			Queues: topology.Choose(&s, l[0].Findings, w.Queues, w.AtLeastOnce), Exchange: "dlo.dlx",
		}),
	}, nil
}

// report returns a report with the given findings, and with one part that could not be read.
func report(found ...topology.Finding) topology.Report {
	return topology.Report{
		Broker:   "main",
		VHost:    "/",
		ReadAt:   start,
		Failed:   "500",
		Queues:   1,
		Gaps:     []topology.Gap{{What: "bindings", Why: "500"}},
		Findings: found,
	}
}

// TestFaultsOfThePaths checks the list of faults on the page of queues. The most urgent faults must
// come first. Equal faults must be shown together, with the commands that cure them. The page must
// also name the parts that dlo could not read.
func TestFaultsOfThePaths(t *testing.T) {
	t.Parallel()
	h := open(t)
	missing := topology.Finding{
		Kind: topology.NoExchange, Severity: deadletter.SeverityNotify, Broker: "main", VHost: "/", Queue: "sms",
		Title: "sms has none", Loses: "all", Why: "it is so", Sure: topology.Certain, Cure: "set a policy",
		Plannable: true, Since: start.Add(-time.Hour),
	}
	hostile := missing
	hostile.Queue, hostile.Title = "<b>&'", "<b>&' has none"
	likely := topology.Finding{
		Kind: topology.NoBinding, Severity: deadletter.SeverityPage, Broker: "main", VHost: "/", Queue: "c",
		Title: "c has no binding", Loses: "some", Why: "it is so", Sure: topology.Likely, Cure: "bind it", Since: start,
	}
	h.Topology = looked{report(likely, missing, hostile)}
	page := h.get("/queues")
	page.want(
		t, 200, "dlo cannot look at main, vhost /: 500", "Not known in main, vhost /: bindings: 500",
		"This is likely, not certain", "&lt;b&gt;&amp;&#39; has none", "1 queue checked", "Show fix",
		"sms drops messages by design (max-length 5). All of them become letters. How many is unknown.",
		"Show the rule that discards them", "reason: [expired, maxlen]",
		"rabbitmqctl set_policy --vhost / --priority 0", "&#39;^(sms|dlo\\.probe\\.",
	)
	page.wantNot(t, "<b>&")
	body := page.text
	if a, b := strings.Index(body, "c has no binding"), strings.Index(body, "sms has none"); a < 0 || b < a {
		t.Error("the page is not sorted by severity")
	}
	if n := strings.Count(body, "set a policy"); n != 1 {
		t.Errorf("two equal findings are explained %d times", n)
	}
	var many []topology.Finding
	for i := range 30 {
		f := likely
		f.Why = strconv.Itoa(i)
		many = append(many, f)
	}
	for range 12 {
		many = append(many, missing)
	}
	h.Topology = looked{report(many...)}
	h.get("/queues").want(t, 200, "21 more problems: ", "dlo topology check")
	h.Topology = looked{report(many[30:]...)}
	h.get("/queues").want(t, 200, "and 6 more queues")
	h.Topology = looked{topology.Report{Broker: "main", VHost: "/", ReadAt: start}}
	h.get("/queues").want(t, 200, "No queue loses its dead letters", "0 queues checked ", " through the management API")
	h.Topology = looked{topology.Report{Broker: "main", VHost: "/", Failed: "dlo has not looked yet"}}
	h.get("/queues").want(
		t, 200, "It is therefore not known whether a queue loses its dead letters",
	).wantNot(t, "No queue loses")
	h.Topology = looked{
		topology.Report{
			Broker:  "main",
			VHost:   "/",
			ReadAt:  start,
			Passive: true,
			Gaps:    []topology.Gap{{What: "bindings", Why: "no API"}},
			All:     []topology.Described{{Name: "sms"}},
		},
	}
	h.get("/queues").want(t, 200, " over AMQP").wantNot(t, "No queue loses", "ago through the management API")
	h.get(queuePage("main", "/", "sms")).want(t, 200, " over AMQP")
	h.Topology = looked{
		report(topology.Finding{
			Kind: topology.NoExchange, Broker: "main", VHost: "/", Queue: "nowhere", Title: "nowhere has none",
			Plannable: true,
		}),
	}
	h.get("/queues").want(t, 200, "dlo plans no policy for nowhere: there is no such queue.").wantNot(t, "Show fix")
	storm := likely
	storm.Kind, storm.Queue = topology.RedeliveryStorm, "sms"
	h.Topology = looked{report(storm)}
	h.get("/queues").wantNot(t, "that dlo sent there")
	h.requeued(h.receive("sms", 2, "x"))
	h.get("/queues").want(
		t, 200, `href="/letters?q=queue%3Asms+broker%3Amain+vhost%3A%2F+state%3Arequeued"`,
		"2 letters that dlo sent there",
	)
	other := report(likely)
	other.VHost = "shop"
	h.Topology = looked{report(many[30:]...), other}
	page = h.get("/queues")
	if a, b := strings.Index(page.text, "c has no binding"), strings.Index(page.text, "sms has none"); a < 0 || b < a {
		t.Error("the page is not sorted by severity over vhosts")
	}
	var quiet []topology.Finding
	for _, f := range many[:30] {
		f.Severity = deadletter.SeverityDigest
		f.Title = "quiet"
		quiet = append(quiet, f)
	}
	h.Topology = looked{report(quiet...), other}
	h.get("/queues").want(t, 200, "c has no binding", "21 more problems: ")
}

// relooked is a Topology whose reports change.
type relooked struct{ atomic.Pointer[looked] }

func (r *relooked) Reports() []topology.Report { return r.Load().Reports() }

func (r *relooked) Refresh(context.Context, string, string) {}

func (r *relooked) Plan(w topology.Wish) ([]topology.Plan, error) { return r.Load().Plan(w) }

// TestAFindingIsAnEvent checks that open pages get an event only if dlo's findings about the
// dead-letter paths have changed. A reader who may not see the queue must get no event.
func TestAFindingIsAnEvent(t *testing.T) {
	t.Parallel()
	for queues, want := range map[string]string{"": "event: status", "sms": "event: status", "other": ""} {
		t.Run(queues, func(t *testing.T) {
			t.Parallel()
			var paths relooked
			paths.Store(&looked{report()})
			h := open(t, func(o *web.Options) {
				o.Hosts, o.Topology = nil, &paths
				if queues != "" {
					o.Actor = func(*http.Request) (deadletter.Principal, error) {
						return deadletter.Principal{
							Name: "ana",
							Grants: []deadletter.Grant{
								{Role: deadletter.RoleReader, Places: deadletter.Places{Queues: []string{queues}}},
							},
						}, nil
					}
				}
			})
			server := httptest.NewServer(h)
			defer server.Close()
			defer h.Drain()
			stream, err := http.Get(server.URL + "/events")
			if err != nil || stream.StatusCode != http.StatusOK {
				t.Fatal(err)
			}
			defer stream.Body.Close()
			same := report()
			same.ReadAt = start.Add(30 * time.Second)
			paths.Store(&looked{same}) // the second look had the same result
			h.late.Add(int64(11 * time.Second))
			lines := make(chan string)
			go func() {
				defer close(lines)
				for s := bufio.NewScanner(stream.Body); s.Scan(); {
					if strings.HasPrefix(s.Text(), "event: ") {
						lines <- s.Text()
					}
				}
			}()
			wait := 20 * time.Second
			if want == "" {
				wait = 5 * time.Second // enough for at least two ticks
			}
			more := report(topology.Finding{
				Kind: topology.NoExchange, Broker: "main", VHost: "/", Queue: "sms", Title: "sms has none",
			})
			more.ReadAt = start.Add(time.Minute)
			select {
			case l := <-lines:
				t.Fatal("an event though nothing changed: " + l)
			case <-time.After(3 * time.Second): // enough for some ticks of the stream
			}
			paths.Store(&looked{more})
			h.late.Add(int64(11 * time.Second))
			select {
			case l := <-lines:
				if l != want {
					t.Error(l)
				}
			case <-time.After(wait):
				if want != "" {
					t.Error("no event")
				}
			}
		})
	}
}
