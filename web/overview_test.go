package web_test

import (
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/web"
)

func TestOverview(t *testing.T) {
	t.Parallel()
	h := open(t, func(o *web.Options) { o.Disk = func() string { return "18 GiB free" } })
	h.receive("sms", 3, "x")
	h.get("/").want(t, 200, "sms is failing", "Dead-lettered per 15 min", "+3 in the last 24 hours", "18 GiB free", "3 letters cannot be found by words yet", `aria-current="true">24 h`)
	h.get("/?range=7d").want(t, 200, "sms is failing", "Open group G-1", "endpoint answered 410 Gone", "24 h trend, peak 3 per hour", `aria-current="true">7 d`, "Recovered, 7 d", "state%3Adiscarded+since%3A7d")
	h.get("/?range=nonsense").want(t, 200, `aria-current="true">24 h`)
	for _, queue := range []string{"sms", "<b>", "c", "d"} {
		b := deadletter.Breaker{Origin: deadletter.Origin{Broker: "main", VHost: "/", Queue: queue}, State: deadletter.GuardTripped, Since: start, Until: start.Add(time.Minute), Wait: time.Minute, Why: "50 of the last 50 came back"}
		if err := h.store.SetBreaker(t.Context(), b, nil); err != nil {
			t.Fatal(err)
		}
	}
	h.get("/").want(t, 200, "Almost all retries came back: they are held back.", "Held back: sms, &lt;b&gt;, c, 1 more. Their letters wait")
	h.brokers[0] = deadletter.BrokerStatus{Name: "main", VHost: "/", Reason: "connection refused", Since: start}
	h.get("/").want(t, 200, "Broker main is not connected. What is stored here is complete.", "Look here")
}

// TestOverviewSaysWhoIsToldOfProblems: the channels, or that there are none.
func TestOverviewSaysWhoIsToldOfProblems(t *testing.T) {
	t.Parallel()
	for want, channels := range map[string][]string{"problems of dlo go to oncall, team": {"oncall", "team"}, "nobody is told when dlo itself has a problem": nil} {
		h := open(t, func(o *web.Options) { o.Told = func() []string { return channels } })
		h.receive("sms", 1, "x")
		h.get("/").want(t, 200, want)
	}
}
