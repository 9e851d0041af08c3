package web_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/web"
	"github.com/deadletteroffice/dlo/web/view"
)

// staged is a Trials without a broker. A test sets the trial that it returns, and can change it.
type staged struct {
	newest *deadletter.Trial
	unable string
}

func (s *staged) Newest() *deadletter.Trial   { return s.newest }
func (s *staged) Unable(broker string) string { return s.unable }

func (s *staged) Start(_ context.Context, by deadletter.Principal, broker string) (deadletter.Trial, error) {
	if err := deadletter.Allow(by, deadletter.VerbTry, deadletter.Origin{Broker: broker, VHost: "/"}); err != nil {
		return deadletter.Trial{}, err
	}
	switch {
	case broker != "main":
		return deadletter.Trial{}, deadletter.NoSuch("broker %q in the configuration", broker)
	case s.newest != nil && s.newest.State == deadletter.TrialRunning:
		return deadletter.Trial{}, fmt.Errorf("%w: a trial is under way already", deadletter.ErrConflict)
	}
	s.newest = &deadletter.Trial{
		Broker: broker, VHost: "/", By: by.Name, State: deadletter.TrialRunning, StartedAt: start,
	}
	return *s.newest, nil
}

// TestThreeStepsToTheFirstLetter checks that pages show three steps to the first letter while the
// store is empty. The trial letters of dlo itself do not count as letters. If the configuration
// permits trials, a trial must be possible as soon as the broker is connected.
func TestThreeStepsToTheFirstLetter(t *testing.T) {
	t.Parallel()
	s := &staged{}
	h := open(t, func(o *web.Options) {
		o.Trials, o.Setup = s, view.Setup{Broker: "main", Exchange: "dead's", Inbox: "dlo.letters", VHost: "it's"}
	})
	const button = `<form method="post" action="/trial">`
	h.get("/").want(
		t, 200, "Three steps to the first letter", "Connect the broker:", "done: RabbitMQ 4.3.6.", button,
		`name="broker" value="main"`,
		`rabbitmqctl set_policy -p &#39;it&#39;\&#39;&#39;s&#39; --priority 10 --apply-to queues dlo &#39;^(orders|emails)$&#39; &#39;{&#34;dead-letter-exchange&#34;:&#34;dead&#39;\&#39;&#39;s&#34;}&#39;`,
	)
	h.get("/letters?q=").want(t, 200, "Three steps to the first letter", button)
	h.brokers = awayBrokers("main")
	h.get("/").want(t, 200, "not yet.", "Connect the broker first.").wantNot(t, button)
	h.brokers[0].Connected = true
	s.unable = "there is <no> exchange"
	h.get("/").want(t, 200, "Not available: there is &lt;no&gt; exchange.").wantNot(t, button)
	s.unable = ""

	h.post("/trial", url.Values{"broker": {"other"}}).want(t, 404, "There is no broker")
	h.post("/trial", url.Values{"broker": {"main"}}).redirectsTo(t, "/")
	h.post("/trial", url.Values{"broker": {"main"}}).want(t, 409, "a trial is under way already")
	h.get("/").want(t, 200, "A test letter is on its way.", `<meta http-equiv="refresh"`).wantNot(t, button)

	id := h.storeTrial()
	*s.newest = deadletter.Trial{
		Broker: "main", VHost: "/", By: "local", State: deadletter.TrialDone, Letter: id, Summary: "<hello>",
		StartedAt:  start,
		RejectedAt: start.Add(10 * time.Millisecond), ArrivedAt: start.Add(20 * time.Millisecond),
		DecodedAt: start.Add(30 * time.Millisecond), RequeuedAt: start.Add(time.Second),
		AcceptedAt: start.Add(1100 * time.Millisecond), QuietAt: start.Add(8 * time.Second),
	}
	h.get("/").want(
		t, 200, "It went the whole way.", "its consumer rejected the message after 10 ms, and it is letter",
		`href="/letters/`+string(id)+`"`, "&lt;hello&gt;", "its consumer accepted it after 1.1 s", "Try it again",
	).wantNot(t, "is failing", `http-equiv="refresh"`)
	h.get("/letters?q=").want(t, 200, `<span class="pill accent">Trial</span>`, "1 letter matches")
	h.get("/letters/"+string(id)).want(
		t, 200, "dlo made this letter for a trial.", `<span class="pill accent">Trial</span>`,
	)
	h.get("/triage").wantNot(t, "dlo.try")
	h.get("/queues").want(t, 200, "dlo.try") // the letter of the trial is dead
	if err := h.store.ExpireTrials(t.Context(), start.Add(24*time.Hour)); err != nil {
		t.Fatal(err)
	}
	h.get("/queues").want(t, 200).wantNot(t, "dlo.try")

	*s.newest = deadletter.Trial{
		State: deadletter.TrialFailed, Problem: "user <dlo> may not", Cure: "rabbitmqctl set_permissions -p '/' 'dlo'",
		StartedAt: start,
	}
	h.get("/").want(
		t, 200, "It did not get all the way: user &lt;dlo&gt; may not.", "rabbitmqctl set_permissions -p &#39;/&#39;",
		"Try it again",
	)

	h.receive("sms", 1, "x")
	h.get("/").want(t, 200, "sms is failing").wantNot(t, "Three steps")
	h.Drain()
	h.post("/trial", url.Values{"broker": {"main"}}).want(t, 503)
}

// storeTrial stores a trial letter. The letter is already settled, which means that nobody needs to
// act on it.
func (h *house) storeTrial() deadletter.ID {
	h.t.Helper()
	h.window++
	a := deadletter.Arrival{
		Exchange:   "dlo.dlx",
		RoutingKey: deadletter.TrialQueue,
		Tag:        1,
		Body:       []byte("x"),
		Properties: deadletter.Properties{MessageID: fmt.Sprint("trial ", h.window)},
	}
	var err error
	if a.Fingerprint, err = a.Print(); err != nil {
		h.t.Fatal(err)
	}
	r, err := h.store.Receive(h.t.Context(), deadletter.Window{
		Session:     1,
		Number:      h.window,
		Broker:      "main",
		VHost:       "/",
		Inbox:       "dlo.letters",
		Uncertain:   deadletter.UncertainHold,
		Horizon:     time.Minute,
		HorizonRows: 1000,
		Arrivals:    []deadletter.Arrival{a},
	})
	if err != nil {
		h.t.Fatal(err)
	}
	if err := h.store.SettleWindow(h.t.Context(), r.Window); err != nil {
		h.t.Fatal(err)
	}
	if err := h.store.Classify(h.t.Context(), []deadletter.Classified{{
		Letter:       r.New[0],
		To:           deadletter.ClassifiedDead,
		Origin:       deadletter.Origin{Broker: "main", VHost: "/", Queue: deadletter.TrialQueue},
		Reason:       "rejected",
		Type:         deadletter.TrialType,
		Summary:      "hello",
		Rule:         deadletter.TrialRule,
		Tried:        true,
		GroupVersion: 1,
	}}); err != nil {
		h.t.Fatal(err)
	}
	return r.New[0]
}

// TestATrialByTheAPI checks that a trial can be started and read with the API. While one trial
// runs, a second one must be rejected.
func TestATrialByTheAPI(t *testing.T) {
	t.Parallel()
	s := &staged{}
	h := open(t, func(o *web.Options) { o.Trials = s })
	h.get("/api/v1/trial").want(t, 404, "there is no trial since dlo was started or loaded another configuration")
	var v api.Trial
	h.postJSON("/api/v1/trial", `{"broker":"main"}`).want(t, 202).json(t, &v)
	if v.State != deadletter.TrialRunning || v.Queue != "dlo.try" || v.Broker != "main" || !v.ArrivedAt.IsZero() {
		t.Errorf("%+v", v)
	}
	h.postJSON("/api/v1/trial", `{"broker":"main"}`).want(t, 409, "a trial is under way already")
	s.newest.State, s.newest.QuietAt = deadletter.TrialDone, start.Add(time.Second)
	h.get("/api/v1/trial").want(t, 200).json(t, &v)
	if v.State != deadletter.TrialDone || !v.QuietAt.Equal(start.Add(time.Second)) {
		t.Errorf("%+v", v)
	}
	h.postJSON("/api/v1/trial", `{"broker":"other"}`).want(t, 404)
	h.postJSON("/api/v1/trial", `{"queue":"x"}`).want(t, 400)
}

// TestWhoMayNotBeginsNoTrial checks that a caller without permission can neither start a trial nor
// make dlo connect to brokers.
func TestWhoMayNotBeginsNoTrial(t *testing.T) {
	t.Parallel()
	s := &staged{}
	h := open(t, func(o *web.Options) {
		o.Trials = s
		o.Actor = func(*http.Request) (deadletter.Principal, error) {
			return deadletter.Principal{Name: "ann", Grants: []deadletter.Grant{{Role: deadletter.RoleReader}}}, nil
		}
	})
	h.post("/trial", url.Values{"broker": {"main"}}).want(t, 403, "ann may not send a trial letter")
	h.postJSON("/api/v1/trial", `{"broker":"main"}`).want(t, 403)
	h.post("/brokers/connect", url.Values{"broker": {"main"}}).want(t, 403, "ann may not connect now")
	h.postJSON("/api/v1/brokers/main/connect", "").want(t, 403)
	if s.newest != nil {
		t.Error("a trial was begun")
	}
}
