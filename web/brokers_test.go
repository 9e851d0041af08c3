package web_test

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// connector connects a broker as soon as somebody requests it. The broker with the name "gone"
// stays disconnected.
type connector struct{ h *house }

func (c connector) Connect(_ context.Context, by deadletter.Principal, broker string) error {
	c.h.asked.Lock()
	defer c.h.asked.Unlock()
	for i := range c.h.brokers {
		if b := &c.h.brokers[i]; b.Name == broker {
			if err := deadletter.Allow(by, deadletter.VerbConnect, deadletter.Origin{
				Broker: b.Name, VHost: b.VHost,
			}); err != nil {
				return err
			}
			if broker != "gone" {
				b.Connected, b.Reason = true, ""
			}
			return nil
		}
	}
	return fmt.Errorf("%w: there is no broker %q in the configuration", deadletter.ErrNotFound, broker)
}

// awayBrokers returns the status of brokers that are not connected.
func awayBrokers(names ...string) []deadletter.BrokerStatus {
	var list []deadletter.BrokerStatus
	for _, name := range names {
		list = append(list, deadletter.BrokerStatus{
			Name:    name,
			VHost:   "/",
			Reached: true,
			Version: "4.3.6",
			Reason:  "connection refused",
			Since:   start,
			NextTry: start.Add(90 * time.Second),
			Inboxes: []deadletter.InboxStatus{{Queue: "dlo.letters"}},
		})
	}
	return list
}

// TestABrokerIsTriedNow checks that both the button of the banner and the API try to connect to a
// broker. The caller must have permission.
func TestABrokerIsTriedNow(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.brokers = awayBrokers("main", "gone", "a/b c", "a%2Fb c")
	h.get("/queues?from=1").want(
		t, 200, `action="/brokers/connect"`, `name="name" value="a/b c"`, "Try now",
		`name="return" value="/queues?from=1"`,
	)
	h.post("/brokers/connect", url.Values{"name": {"main"}, "return": {"/queues"}}).redirectsTo(t, "/queues")
	h.post("/brokers/connect", url.Values{"name": {"main"}, "return": {"//evil.example"}}).redirectsTo(t, "/")
	h.post("/brokers/connect", url.Values{"name": {"other"}}).want(t, 404)
	var b deadletter.BrokerStatus
	h.postJSON("/api/v1/brokers/gone/connect", "").want(t, 200).json(t, &b)
	if b.Connected || b.Reason != "connection refused" || !b.NextTry.Equal(start.Add(90*time.Second)) {
		t.Errorf("%+v", b)
	}
	for _, name := range []string{"a/b c", "a%2Fb c"} {
		h.postJSON("/api/v1/brokers/"+url.PathEscape(name)+"/connect", "").want(t, 200).json(t, &b)
		if !b.Connected || b.Name != name {
			t.Errorf("%s: %+v", name, b)
		}
	}
	h.postJSON("/api/v1/brokers/other/connect", "").want(t, 404)
	var list api.Brokers
	h.get("/api/v1/brokers").want(t, 200).json(t, &list)
	if len(list.Brokers) != 4 || !list.Brokers[0].Connected || list.Brokers[1].Connected {
		t.Errorf("%+v", list)
	}
	h.Drain()
	h.post("/brokers/connect", url.Values{"name": {"main"}}).want(t, 503)
}

// TestABrokerThatIsAwayShowsWhereItMatters checks the pages that offer to send something to a
// disconnected broker. They must show that the broker is disconnected. They must not show an
// unknown value instead.
func TestABrokerThatIsAwayShowsWhereItMatters(t *testing.T) {
	t.Parallel()
	h := open(t)
	ids := h.receive("sms", 3, "x")
	const waits = "main is not connected: letters wait until it is back"
	plan := url.Values{"action": {"requeue"}, "id": {string(ids[0])}}
	h.get("/queues").want(t, 200, "Running").wantNot(t, waits)
	h.get("/letters?q=group:G-1").want(t, 200, "Running").wantNot(t, waits)
	h.post("/letters/confirm", plan).want(t, 200, ">unknown</td>").wantNot(t, waits)

	h.brokers = awayBrokers("main")
	h.get("/queues").want(t, 200, waits, "Waiting").wantNot(t, "Running")
	h.get("/letters?q=group:G-1").want(t, 200, waits, "Waiting").wantNot(t, "Running")
	h.post("/letters/confirm", plan).want(t, 200, waits, "not known until it is back").wantNot(t, ">unknown</td>")
	h.get("/").want(t, 200, "sms is failing")
	var queues api.Queues
	h.get("/api/v1/queues").want(t, 200).json(t, &queues)
	if queues.Queues[0].Away != waits || queues.Queues[0].Retries.State != "running" {
		t.Errorf("%+v", queues.Queues[0])
	}
	h.postJSON(
		"/api/v1/operations", `{"action":"requeue","q":"","dry_run":true}`,
	).want(t, 200, `"warnings":["`+waits+`"]`)
	h.postJSON("/api/v1/operations", `{"action":"requeue","q":""}`).want(t, 202)
	h.get("/operations/O-1").want(t, 200, "Nothing is sent yet")
	h.ahead.Add(int64(time.Minute))
	h.advance()
	h.get("/operations/O-1").want(
		t, 200, "Waiting for the broker", "Waiting:", waits, "waiting for the broker, 3 to go", ">0</span> of 3",
	).wantNot(t, "Running", "on their way", "sending the canary")
	h.get("/operations").want(t, 200, "Waiting for the broker").wantNot(t, "Running")
	for _, call := range []string{"/api/v1/operations", "/api/v1/operations/O-1"} {
		h.get(call).want(t, 200, `"away":"`+waits+`"`, `"released":3`)
	}
	h.postJSON("/api/v1/queues/pause", `{"queue":"sms","reason":"down"}`).want(t, 200)
	h.get("/queues").want(t, 200, "Paused", "by you (no sign-in): down").wantNot(t, waits)

	h.brokers[0].Connected, h.brokers[0].Blocked = true, "memory alarm"
	h.get("/operations/O-1").want(t, 200, "main accepts no messages now: letters wait until it does")
	h.brokers[0].Name = "renamed"
	h.postJSON("/api/v1/queues/resume", `{"broker":"main","vhost":"/","queue":"sms"}`).want(t, 200)
	h.get("/queues").want(t, 200, "Waiting", "of broker main is not in the configuration: nobody sends its letters")
}

// TestTheLabelOfABroker checks that people see the label of a broker before they act. The label
// must be in the API, in plans, in page titles, and on each page, even on phones. It must always be
// escaped as text.
func TestTheLabelOfABroker(t *testing.T) {
	t.Parallel()
	h := open(t)
	ids := h.receive("sms", 2, "x")
	h.get("/").want(t, 200, "<title>Overview · Dead Letter Office</title>").wantNot(t, "pill label")
	const label = `<span class="pill label clip bad">&lt;i&gt;production</span>`
	h.brokers[0].Label, h.brokers[0].Colour = "<i>production", "red"
	page := h.get("/letters?q=").want(t, 200, "<title>Letters · &lt;i&gt;production · Dead Letter Office</title>").text
	side, rest, _ := strings.Cut(page, `class="topbar"`)
	topbar, _, _ := strings.Cut(rest, "<main")
	if !strings.Contains(side, label) || !strings.Contains(topbar, label) {
		t.Error("it is not in the side bar, or not in the bar of phones")
	}
	plan := url.Values{"action": {"requeue"}, "id": {string(ids[0])}}
	_, text, _ := strings.Cut(h.post("/letters/confirm", plan).want(t, 200, label).text, "<main")
	if !strings.Contains(text, "On "+label) {
		t.Errorf("the plan does not say it: %.2000s", text)
	}
	h.brokers = append(h.brokers, deadletter.BrokerStatus{
		Name: "second", VHost: "shop", Label: "spare", Colour: "grey", Connected: true,
	})
	_, text, _ = strings.Cut(
		h.post("/letters/confirm", plan).want(t, 200, label, `<span class="pill label clip ">spare</span>`).text,
		"<main",
	)
	if strings.Contains(text, "spare") {
		t.Error("the plan says it of a broker that it is not about")
	}
	h.get("/").want(t, 200, "<title>Overview · &lt;i&gt;production · spare · Dead Letter Office</title>")
	var list api.Brokers
	h.get("/api/v1/brokers").want(t, 200).json(t, &list)
	if list.Brokers[0].Label != "<i>production" || list.Brokers[0].Colour != "red" || list.Brokers[1].Label != "spare" {
		t.Errorf("%+v", list)
	}
	h.postJSON(
		"/api/v1/operations", `{"action":"requeue","q":"","dry_run":true}`,
	).want(t, 200, `"label":"<i>production"`)
}
