package notify

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/google/go-cmp/cmp"
)

// someIncident returns a delivery about an incident of n groups of one queue.
func someIncident(kind deadletter.NoticeKind, n int) deadletter.Delivery {
	d := someDelivery(kind)
	d.Notice.Key, d.Notice.ID = "G-418/1", int64(len(kind))
	for i := range n {
		g := *someGroup()
		g.ID += deadletter.GroupID(i)
		g.Title, g.Count, g.Waiting = fmt.Sprintf("cause %d", i+1), 100*(i+1), 0
		g.LastAt = g.LastAt.Add(time.Duration(i) * time.Second)
		d.Incident = append(d.Incident, g)
	}
	d.Group = &d.Incident[0]
	return d
}

func TestWhatIsSaidOfAnIncident(t *testing.T) {
	t.Parallel()
	d := someIncident(deadletter.NoticeOpened, 3)
	d.Incident[1].Status, d.Incident[2].Queue = deadletter.GroupRegressed, "sms"
	d.After = &deadletter.Deploy{Service: "mailer", Version: "1.4.1"}
	m := Compose(office, d)
	if m.Title != "3 causes in 2 queues after mailer 1.4.1, 600 letters dead: cause 1 and 2 more" ||
		m.URL != "https://dlo.example.com/triage?q=group%3AG-418%2CG-419%2CG-420" || linkName(
		m.URL,
	) != "Open the groups" {
		t.Errorf("%q %s", m.Title, m.URL)
	}
	var titles []string
	for _, l := range m.Lines {
		titles = append(titles, l.Title+" "+l.Group+fmt.Sprint(*l.Count))
	}
	if want := []string{
		"100 letters dead in email-queue: cause 1 G-418100",
		"Came back: 200 letters dead in email-queue: cause 2 G-419200", "300 letters dead in sms: cause 3 G-420300",
	}; !slices.Equal(titles, want) {
		t.Errorf("%q", titles)
	}
	if *m.Count != 600 || !m.Last.Equal(d.Incident[2].LastAt) || m.Fact(factLetters) != "600" ||
		m.Fact(factCauses) != "3" || m.Fact(factGroup) != "G-418" || m.Fact(factLast) != timeText(m.Last) {
		t.Errorf("%+v", m)
	}
	for kind, want := range map[deadletter.NoticeKind]struct {
		event Event
		title string
	}{
		deadletter.NoticeJoined:    {Updates, "Now 3 causes in email-queue, 600 letters dead: cause 1 and 2 more"},
		deadletter.NoticeUpdated:   {Updates, "Now 3 causes in email-queue, 600 letters dead: cause 1 and 2 more"},
		deadletter.NoticeRegressed: {Fires, "3 causes in email-queue, 600 letters dead: cause 1 and 2 more"},
		deadletter.NoticeQuiet: {
			Resolves, "No longer fails, 600 letters wait for people: 3 causes in email-queue: cause 1 and 2 more",
		},
		deadletter.NoticeResolved: {Resolves, "No longer needs anyone: 3 causes in email-queue: cause 1 and 2 more"},
	} {
		if m := Compose(office, someIncident(kind, 3)); m.Event != want.event || m.Title != want.title {
			t.Errorf("%s: %s %q", kind, m.Event, m.Title)
		}
	}
	// If a group with a lower severity joins an incident, the severity of the incident stays the
	// same.
	quiet := someIncident(deadletter.NoticeJoined, 2)
	quiet.Notice.Severity = deadletter.SeverityNotify
	if m := Compose(office, quiet); m.Severity != deadletter.SeverityPage {
		t.Errorf("%s", m.Severity)
	}
	alone := someDelivery(deadletter.NoticeQuiet)
	if m := Compose(
		office, alone,
	); m.Title != `No longer fails, 312 letters wait for people: email-queue: template "welcome_v3" not found` ||
		m.Event != Resolves {
		t.Errorf("%s %q", m.Event, m.Title)
	}
}

// TestOneIncidentOnEveryChannel checks three messages about an incident: its beginning, another
// cause, and its end. On each kind of channel, their key makes them one incident. The messages must
// have one line per cause.
func TestOneIncidentOnEveryChannel(t *testing.T) {
	t.Parallel()
	messages := []Message{
		Compose(office, someIncident(deadletter.NoticeOpened, 3)),
		Compose(office, someIncident(deadletter.NoticeJoined, 4)),
		Compose(office, someIncident(deadletter.NoticeQuiet, 4)),
	}
	causes := func(text string) (n int) {
		for i := range 4 {
			if strings.Contains(text, fmt.Sprintf("letters dead in email-queue: cause %d", i+1)) {
				n++
			}
		}
		return n
	}
	for _, name := range downKinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newReceiver(t, slices.Repeat([]func(http.ResponseWriter){
				respondWith(map[bool]int{true: 202, false: 200}[name == "pagerduty"], "{}"),
			}, 3)...)
			sender := channelTo(t, name, r.URL).Sender
			for _, m := range messages {
				if _, err := sender.Send(t.Context(), m); err != nil {
					t.Fatal(err)
				}
			}
			got := r.receivedRequests()
			for i, want := range []int{3, 4, 4} {
				if n := causes(string(got[i].body)); n != want {
					t.Errorf("message %d names %d causes: %s", i, n, got[i].body)
				}
			}
			switch name {
			case "pagerduty":
				var said []string
				for _, q := range got {
					var e pagerEvent
					if err := json.Unmarshal(q.body, &e); err != nil {
						t.Fatal(err)
					}
					said = append(said, e.Action+" "+e.DedupKey)
				}
				key := messages[0].Key
				if want := []string{"trigger " + key, "trigger " + key, "resolve " + key}; !slices.Equal(said, want) {
					t.Errorf("%q", said)
				}
			case "alertmanager":
				first, second, end := alerts(t, got[0]), alerts(t, got[1]), alerts(t, got[2])
				if d := cmp.Diff(first[0].Labels, second[0].Labels); d != "" || first[0].Labels["group"] != "G-418" {
					t.Error(d)
				}
				for _, a := range end {
					if a.EndsAt.After(time.Now()) {
						t.Errorf("%v goes on", a.Labels)
					}
				}
				if !slices.ContainsFunc(end, func(a alert) bool { return maps.Equal(a.Labels, first[0].Labels) }) {
					t.Errorf("%+v", end)
				}
			case "webhook":
				for i, want := range []string{"notice.opened fires", "notice.joined updates", "notice.quiet resolves"} {
					var w webhookMessage
					if err := json.Unmarshal(got[i].body, &w); err != nil {
						t.Fatal(err)
					}
					if w.Type+" "+w.Data.Event != want || w.Data.Key != messages[0].Key || *w.Data.Count != []int{
						600, 1000, 1000,
					}[i] || *w.Data.Lines[1].Count != 200 || w.Data.Lines[1].Last != "2026-11-20T14:02:01Z" {
						t.Errorf("%s", got[i].body)
					}
				}
			}
		})
	}
	t.Run("mail", func(t *testing.T) {
		t.Parallel()
		s := newMailServer(t, &mailServer{starttls: true})
		m := mailTo(t, s, "8.8.8.8", MailOptions{To: []string{"team@example.com"}})
		threads := map[string]bool{}
		for _, msg := range messages {
			if _, err := m.Send(t.Context(), msg); err != nil {
				t.Fatal(err)
			}
		}
		_, mails := s.received()
		for i, raw := range mails {
			header, text, page := readMail(t, raw)
			threads[header.Get("References")] = true
			if n := []int{3, 4, 4}[i]; causes(text) != n || causes(page) != n {
				t.Errorf("%s", text)
			}
		}
		if len(mails) != 3 || len(threads) != 1 {
			t.Errorf("%d mails in %d threads", len(mails), len(threads))
		}
	})
}

// TestAnAlertGoesOnAsItsNext checks the alerts of an incident after its first group has left it.
// The alert of the first group must end, and the alert of the second group must begin at the same
// time. When the incident ends, the alerts of all its groups must end, and so must the alert of the
// group that left earlier.
func TestAnAlertGoesOnAsItsNext(t *testing.T) {
	t.Parallel()
	d := someIncident(deadletter.NoticeUpdated, 3)
	d.Left, d.Incident = d.Incident[:1], d.Incident[1:]
	d.Group = &d.Incident[0]
	open := func(m Message) (groups []string) {
		for _, a := range alertsOf(&m, alertNow) {
			state := "ends "
			if a.EndsAt.After(alertNow) {
				state = "open "
			}
			groups = append(groups, state+a.Labels["group"]+" "+a.Labels["severity"])
		}
		return groups
	}
	want := []string{
		"open G-419 page", "ends G-419 notify", "ends G-419 digest", "ends G-418 page", "ends G-418 notify",
		"ends G-418 digest",
	}
	if got := open(Compose(office, d)); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	d.Notice.Kind = deadletter.NoticeResolved
	if got := open(Compose(office, d)); len(got) != 9 ||
		slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, "open") }) {
		t.Errorf("%q", got)
	}
}

// TestAnIncidentOfManyCausesStaysShort checks that a message about many causes names the first ones
// and counts the others. An Alertmanager must get the alerts in batches.
func TestAnIncidentOfManyCausesStaysShort(t *testing.T) {
	t.Parallel()
	const causes = 2*alertsAtOnce/3 + 1
	d := someIncident(deadletter.NoticeQuiet, causes)
	m := Compose(office, d)
	last := m.Lines[len(m.Lines)-1]
	if len(m.Lines) != digestLines+1 || last.Title != fmt.Sprintf("and %d more groups", causes-digestLines) ||
		last.URL != m.URL || *m.Count != 100*causes*(causes+1)/2 {
		t.Errorf("%d lines, the last %+v, of %d letters", len(m.Lines), last, *m.Count)
	}
	r := newReceiver(t, slices.Repeat([]func(http.ResponseWriter){respondWith(200, "")}, 10)...)
	if _, err := newTestAlertmanager(t, r).Send(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	ended := map[string]bool{}
	for _, q := range r.receivedRequests() {
		some := alerts(t, q)
		if len(some) > alertsAtOnce {
			t.Errorf("%d alerts at once", len(some))
		}
		for _, a := range some {
			ended[a.Labels["group"]] = true
		}
	}
	if len(ended) != causes {
		t.Errorf("%d of %d alerts end", len(ended), causes)
	}
}

// TestWhatIsSaidWithAMessageIsRecordedWithIt covers a delivery whose message replaces the messages
// of other deliveries. When this message is sent, the other deliveries must be recorded as sent
// too.
func TestWhatIsSaidWithAMessageIsRecordedWithIt(t *testing.T) {
	t.Parallel()
	said := &scribe{}
	clock := newWall()
	b := newBench(clock.now, Quiet{}, map[string]Channel{"c": {Sender: said}})
	b.box.add("c", opened, loud, "a")
	b.box.rows[0].Delivery.With = []int64{7, 8}
	drive(t, b, clock, "c", clock.now().Add(time.Minute))
	if got := b.box.row(1).Delivered; !got.Sent || !slices.Equal(got.With, []int64{7, 8}) {
		t.Errorf("%+v", got)
	}
}

// TestWhatMachinesAreTold checks that machines get their own notices with numbers, even during
// quiet hours.
func TestWhatMachinesAreTold(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 20, 14, 0, 0, 0, time.UTC)
	op := deadletter.Delivery{
		Notice: deadletter.Notice{
			ID: 5, Kind: deadletter.EventOperationFinished, Key: "O-77", Op: 77, At: at,
			Severity: deadletter.SeverityDigest,
		},
		Operation: &deadletter.Operation{
			ID:         77,
			Action:     deadletter.VerbRequeue,
			State:      deadletter.OperationDone,
			By:         "lena",
			Total:      31,
			CreatedAt:  at.Add(-time.Minute),
			FinishedAt: at,
			Counts: map[deadletter.Result]int{
				deadletter.ResultQuiet: 24, deadletter.ResultCameBack: 1, deadletter.ResultSkipped: 6,
				deadletter.ResultPending: 0,
			},
		},
	}
	body := func(d deadletter.Delivery) string {
		m := Compose(office, d)
		text, err := json.Marshal(webhookBody(&m))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	wanted := `{"type": "operation.finished", "timestamp": "2026-11-20T14:00:00Z", "data": {"id": "` +
		Compose(office, op).ID + `", "key": "` + Compose(office, op).Key + `", "event": "told", "severity": "digest",
		"title": "O-77, requeue by lena, is done: 24 quiet, 1 came back, 6 skipped", "url": "https://dlo.example.com/operations/O-77", "facts": {},
		"operation": {"id": "O-77", "action": "requeue", "state": "done", "by": "lena", "asked": 31, "done": 25, "counts": {"quiet": 24, "came back": 1, "skipped": 6}, "created_at": "2026-11-20T13:59:00Z", "finished_at": "2026-11-20T14:00:00Z"}}}`
	if d := cmp.Diff(decoded(t, wanted), decoded(t, body(op))); d != "" {
		t.Error(d)
	}
	for kind, title := range map[deadletter.NoticeKind]string{
		deadletter.EventGroupQuiet:    `No longer fails, 312 letters wait for people: email-queue`,
		deadletter.EventGroupResolved: `No longer needs anyone: email-queue`,
	} {
		if text := body(someDelivery(kind)); !strings.Contains(text, `{"type":"`+string(kind)+`"`) ||
			!strings.Contains(text, `"event":"told"`) || !strings.Contains(text, title) || !strings.Contains(
			text, `"count":312,"last":"2026-11-20T14:02:00Z"`,
		) || !strings.Contains(text, `"group":"G-418"`) {
			t.Errorf("%s: %s", kind, text)
		}
	}
	said := &scribe{}
	clock := newWall()
	b := newBench(clock.now, Quiet{
		From: TimeOfDay{},
		To:   TimeOfDay{},
		Days: []time.Weekday{0, 1, 2, 3, 4, 5, 6},
	}, map[string]Channel{"c": {Sender: said}})
	b.box.add("c", deadletter.EventGroupQuiet, deadletter.SeverityNotify, "a")
	drive(t, b, clock, "c", clock.now().Add(time.Minute))
	if told, _ := said.sentMessages(); len(told) != 1 {
		t.Errorf("%d at night", len(told))
	}
}
