package web_test

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/rules"
	"github.com/deadletteroffice/dlo/web"
)

func TestOverview(t *testing.T) {
	t.Parallel()
	h := open(t, func(o *web.Options) { o.Disk = func() string { return "18 GiB free" } })
	h.receive("sms", 3, "x")
	h.get("/?range=24h").want(
		t, 200, "sms is failing", "Dead-lettered per 15 min", "+3 in the last 24 hours", "18 GiB free",
		"3 letters not in the text index yet", `aria-current="true">24 h`,
	)
	h.get("/?range=7d").want(
		t, 200, "sms is failing", "Open group G-1", "endpoint answered 410 Gone", "24 h trend, peak 3 per hour",
		`aria-current="true">7 d`, "Quiet, 7 d", "state%3Adiscarded%2Cpurged+since%3A2026-11-13T",
	)
	h.get("/?range=1h").want(
		t, 200, "Dead-lettered per 1 min", `held">Held: <span data-n>0</span></a>`, `<details class="fold" open`,
	).wantNot(t, "held automatically or by someone")
	for _, path := range []string{"/", "/?range=nonsense"} { // all letters are less than an hour old
		h.get(path).want(t, 200, `aria-current="true">1 h`, "+3 in the last hour")
	}
	for _, queue := range []string{"sms", "<b>", "c", "d"} {
		b := deadletter.Breaker{
			Origin: deadletter.Origin{Broker: "main", VHost: "/", Queue: queue},
			State:  deadletter.GuardTripped,
			Since:  start,
			Until:  start.Add(time.Minute),
			Wait:   time.Minute,
			Why:    "50 of the last 50 came back",
		}
		if err := h.store.SetBreaker(t.Context(), b, nil); err != nil {
			t.Fatal(err)
		}
	}
	h.get("/").want(
		t, 200, "Almost all retries came back, so retries are held back.",
		"Held back: sms, &lt;b&gt;, c, 1 more. Their letters keep their attempts and wait",
	)
	h.brokers[0] = deadletter.BrokerStatus{
		Name: "main", VHost: "/", Reached: true, Reason: "connection refused", Since: start,
	}
	h.get("/").want(
		t, 200, "sms is failing", "It is not known what has died on broker main since it was last connected.",
		"Needs attention",
	)
}

// TestTheSentenceOfTheOverview checks the sentence at the top of Overview. It must say which queues
// fail, which groups are quiet, and which letters wait. It must give clock times, and the deploy
// after which groups became quiet. Its button must lead to the groups that it counts.
func TestTheSentenceOfTheOverview(t *testing.T) {
	t.Parallel()
	h := open(t)
	sentence := func(want ...string) {
		t.Helper()
		_, text, _ := strings.Cut(h.get("/").want(t, 200).text, `id="verdict"`)
		text, _, _ = strings.Cut(text, `id="tiles"`)
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%q is missing in %s", w, text)
			}
		}
	}
	deploy := func(version string) {
		t.Helper()
		h.postJSON("/api/v1/deploys", `{"service":"notifications","version":"`+version+`"}`).want(t, 201)
	}
	deploy("1.4.0")
	h.late.Add(int64(3 * time.Minute))
	h.receive("sms", 3, "x")
	sentence(
		"sms is failing. Nothing else needs a person.", "3 letters of G-1, from ", "First seen ", ">09:03</time>",
		"after ", "notifications 1.4.0", `href="/groups/G-1"`, "Open group G-1",
	)
	h.late.Add(int64(5 * time.Second))
	deploy("1.4.0-hot")
	h.late.Add(int64(20 * time.Second))
	sentence(
		"Nothing has died since notifications 1.4.0-hot went live at 09:03, ", " ago.",
		"1 group was failing until then; it is too early to say that it has stopped. 3 letters of G-1, from ", "Open the 1 group",
	)
	h.receive("email", 2, "x")
	if text := h.get("/").text; strings.Contains(text, "Nothing has died since") {
		t.Error("a letter has died since")
	}
	sentence("2 groups are failing; the worst is in sms.", `href="/triage?q=status%3Afailing"`, "Open the 2 groups")
	h.get("/triage?q=status:failing").want(t, 200, `value="G-1"`, `value="G-2"`)
	h.late.Add(int64(20 * time.Minute))
	h.receive("sms", 1, "x")
	sentence("sms is failing. No other group is failing.", "Open group G-1")
	h.late.Add(int64(20 * time.Minute))
	sentence(
		"Nothing has failed since 09:23.", "The last letter died at ",
		">09:23</time>. 6 letters of 2 groups wait to be requeued or discarded.", "Open the 6 letters",
		`href="/letters?q=state%3Adead%2Cheld+status%3Anot-failing"`,
	)
	h.get("/letters?q=state:dead,held+status:not-failing").want(t, 200, "6 match")
	deploy("1.4.1")
	sentence("Nothing has failed since notifications 1.4.1 went live at 09:43.")
	h.get("/groups/G-1").want(
		t, 200, "Not failing since ", ">09:23</time>. None has died since ", "notifications 1.4.1",
		"4 letters wait to be requeued or discarded.",
	)
	h.patchJSON("/api/v1/groups/G-1", `{"resolve":{}}`).want(t, 200)
	sentence(
		"2 letters of 1 group wait",
		`<a href="/letters?q=state%3Adead%2Cheld+status%3Asnoozed%2Cresolved">4 dead or held letters</a>`,
		" are in groups that are snoozed or resolved.",
	)
	h.get("/letters?q=state:dead,held+status:snoozed,resolved").want(t, 200, "4 match")
	h.patchJSON("/api/v1/groups/G-2", `{"resolve":{}}`).want(t, 200)
	sentence(
		"Nothing needs a person.", "6 dead or held letters are in groups that are snoozed or resolved.",
		"Open the 6 letters", `href="/letters?q=state%3Adead%2Cheld+status%3Asnoozed%2Cresolved"`,
	)
}

// TestOverviewSaysWhoIsToldOfProblems checks that Overview names the notification channels, or says
// that there are none.
func TestOverviewSaysWhoIsToldOfProblems(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]struct {
		channels web.Channels
		told     []string
		lookAt   bool
	}{
		"dlo&#39;s own problems go to oncall, team":    {&testedChannels{}, []string{"oncall", "team"}, false},
		"nobody is notified when dlo has a problem":    {&testedChannels{}, nil, true},
		"nobody is notified: no channel is configured": {&noChannels{}, nil, false},
	} {
		h := open(t, func(o *web.Options) { o.Told, o.Channels = func() []string { return c.told }, c.channels })
		h.receive("sms", 1, "x")
		page := h.get("/")
		page.want(t, 200, want)
		if strings.Contains(page.text, "2 things to look at") != c.lookAt {
			t.Errorf("%s: a thing more to look at: %v", want, !c.lookAt)
		}
	}
}

// noChannels are no channels.
type noChannels struct{ testedChannels }

func (*noChannels) Channels() []deadletter.Channel { return nil }

// testedChannels are channels of which one was tested.
type testedChannels struct{ tested []string }

func (c *testedChannels) Channels() []deadletter.Channel {
	return []deadletter.Channel{
		{Name: "oncall", TestedAt: time.Now(), Accepted: true, Answer: "202 <Accepted>"},
		{Name: "team", TestedAt: time.Now(), Answer: "kanarie: the receiver answered 404 Not Found"},
	}
}

func (c *testedChannels) Test(_ context.Context, channel string, by deadletter.Principal) (deadletter.Channel, error) {
	c.tested = append(c.tested, channel+" by "+by.Name)
	return c.Channels()[0], nil
}

// TestAChannelIsTestedFromOverview checks the button and the API that test a channel, and that
// Overview shows the answer.
func TestAChannelIsTestedFromOverview(t *testing.T) {
	t.Parallel()
	channels := &testedChannels{}
	h := open(t, func(o *web.Options) { o.Channels = channels })
	h.receive("sms", 1, "x")
	h.get("/").want(
		t, 200, "test accepted ", "202 &lt;Accepted&gt;", "test failed ", "404 Not Found",
		`name="channel" value="team"`,
	)
	h.post("/channels/test", url.Values{"channel": {"team"}}).redirectsTo(t, "/#health")
	h.postJSON("/api/v1/channels/test", `{"channel":"oncall"}`).want(
		t, 200, `"channel":"oncall"`, `"accepted":true`, `"answer":"202 <Accepted>"`,
	)
	if want := []string{"team by local", "oncall by local"}; !slices.Equal(channels.tested, want) {
		t.Errorf("tested %q", channels.tested)
	}
}

// TestHealthSaysWhetherRetriesAreLate checks that late retries are reported. Overview must show how
// many letters of a group wait for a retry.
func TestHealthSaysWhetherRetriesAreLate(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.wait("sms", 2)
	h.get("/").want(t, 200, "on time").wantNot(t, " late")
	h.book.Replace(&rules.Set{
		Default: rules.Rule{Name: rules.DefaultName, Retry: &rules.Retry{}, Severity: deadletter.SeverityPage},
	})
	h.wait("sms", 1)
	h.get("/").want(t, 200, "2 waiting")
	h.late.Add(int64(3 * time.Hour))
	h.get("/").want(t, 200, "the oldest that is due is ", " late").wantNot(t, "on time")
}

// TestHealthNamesTheLastNotice checks that the last notice is shown with its time and channel.
func TestHealthNamesTheLastNotice(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.book.Replace(&rules.Set{
		Channels: []string{"oncall"},
		Default: rules.Rule{
			Name:     rules.DefaultName,
			Retry:    &rules.Retry{},
			Severity: deadletter.SeverityPage,
			Notify:   []string{"oncall"},
		},
	})
	h.wait("sms", 1)
	h.get("/").wantNot(t, "last one sent")
	h.late.Add(int64(time.Minute))
	due, err := h.store.Due(t.Context(), "oncall", 10)
	if err != nil || len(due) != 1 {
		t.Fatal(due, err)
	}
	if err := h.store.Delivered(t.Context(), []deadletter.Delivered{{ID: due[0].ID, Sent: true}}); err != nil {
		t.Fatal(err)
	}
	h.get("/").want(t, 200, "last one sent ", " to oncall")
}

// TestOverviewNamesTheBackup checks what the overview says about the newest backup.
func TestOverviewNamesTheBackup(t *testing.T) {
	t.Parallel()
	newest := deadletter.Backup{Letters: map[deadletter.State]int{deadletter.StateDead: 1_284_331}}
	h := open(t, func(o *web.Options) { o.Backups = backups{newest: &newest} })
	h.receive("sms", 1, "x")
	newest.At = time.Now()
	for _, c := range []struct {
		*deadletter.Rehearsal
		want string
	}{
		{nil, "1,284,331 letters, not rehearsed yet"},
		{&deadletter.Rehearsal{At: time.Now()}, "1,284,331 letters; rehearsed "},
		{&deadletter.Rehearsal{At: time.Now(), Errors: 3}, ", 3 errors"},
		{&deadletter.Rehearsal{At: time.Now(), Problem: "it is torn"}, ": it is torn"},
	} {
		newest.Rehearsed = c.Rehearsal
		h.get("/").want(t, 200, c.want)
	}
}

// TestTheFirstChartIsOfAnHour checks how much time the chart covers if the request names no time
// range. If all letters have arrived within the last hour, the chart must cover an hour. As soon as
// a letter is older, it must cover a day.
func TestTheFirstChartIsOfAnHour(t *testing.T) {
	t.Parallel()
	h := open(t)
	const hour, day = `aria-current="true">1 h`, `aria-current="true">24 h`
	h.get("/").wantNot(t, hour, day) // the store is empty
	h.receive("sms", 1, "x")
	h.get("/").want(t, 200, hour)
	h.get("/?range=24h").want(t, 200, day)
	h.late.Add(int64(58 * time.Minute))
	h.receive("sms", 1, "x")
	h.get("/").want(t, 200, hour)
	h.late.Add(int64(time.Minute))
	h.get("/").want(t, 200, day)
}
