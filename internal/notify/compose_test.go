package notify

import (
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/google/go-cmp/cmp"
)

var office = Office{PublicURL: "https://dlo.example.com/"}

// someGroup returns a group as an example for the messages of these tests.
func someGroup() *deadletter.GroupRow {
	return &deadletter.GroupRow{
		ID: 418, Title: `template "welcome_v3" not found`, Broker: "main", VHost: "/", Queue: "email-queue",
		Type: "acme.notify.v1.EmailRequested", Reason: "rejected",
		Error:    "TemplateError: template \"welcome_v3\" not found\n  at render",
		Severity: deadletter.SeverityPage, Owner: "lena", Count: 312, Waiting: 4,
		FirstAt: time.Date(2026, 11, 20, 13, 58, 0, 0, time.UTC),
		LastAt:  time.Date(2026, 11, 20, 14, 2, 0, 0, time.UTC),
	}
}

func someDelivery(kind deadletter.NoticeKind) deadletter.Delivery {
	return deadletter.Delivery{ID: 9, Channel: "oncall", Group: someGroup(), Notice: deadletter.Notice{
		ID: 77, Kind: kind, Key: "group:418", Severity: deadletter.SeverityPage, Group: 418,
		At: time.Date(2026, 11, 20, 14, 2, 11, 0, time.UTC),
	}}
}

func TestWhatIsSaidOfAGroup(t *testing.T) {
	t.Parallel()
	got := Compose(office, someDelivery(deadletter.NoticeOpened))
	want := Message{
		ID: got.ID, Key: got.Key, Kind: deadletter.NoticeOpened, Event: Fires, Severity: deadletter.SeverityPage,
		Title: `312 letters dead in email-queue: template "welcome_v3" not found`,
		Facts: []Fact{
			{"group", "G-418"},
			{"queue", "email-queue"},
			{"broker", "main"},
			{"vhost", "/"},
			{"reason", "rejected"},
			{"type", "acme.notify.v1.EmailRequested"},
			{"letters", "312"},
			{"waiting", "4"},
			{"since", "2026-11-20 13:58 UTC"},
			{"last", "2026-11-20 14:02 UTC"},
			{"owner", "lena"},
		},
		Text: "TemplateError: template \"welcome_v3\" not found\n  at render",
		URL:  "https://dlo.example.com/groups/G-418",
		At:   time.Date(2026, 11, 20, 14, 2, 11, 0, time.UTC), Since: time.Date(2026, 11, 20, 13, 58, 0, 0, time.UTC),
		Count: new(312), Last: time.Date(2026, 11, 20, 14, 2, 0, 0, time.UTC),
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if len(got.ID) != 32 || !strings.HasSuffix(got.Key, "-group:418") {
		t.Errorf("ID %q, key %q", got.ID, got.Key)
	}
}

func TestTitlesAndEvents(t *testing.T) {
	t.Parallel()
	none := someDelivery(deadletter.NoticeOpened)
	none.Group.Count = 0
	one := someDelivery(deadletter.NoticeOpened)
	one.Group.Count = 1
	gone := someDelivery(deadletter.NoticeResolved)
	gone.Group = nil
	word := func(kind deadletter.NoticeKind, text string) deadletter.Delivery {
		return deadletter.Delivery{
			Notice: deadletter.Notice{ID: 1, Kind: kind, Text: text, Severity: deadletter.SeverityNotify},
		}
	}
	for _, c := range []struct {
		name       string
		d          deadletter.Delivery
		event      Event
		title, url string
	}{
		{
			"one letter", one, Fires, `1 letter dead in email-queue: template "welcome_v3" not found`,
			"https://dlo.example.com/groups/G-418",
		},
		{
			"dealt with before it was said", none, Fires,
			`Letters died in email-queue: template "welcome_v3" not found`, "https://dlo.example.com/groups/G-418",
		},
		{
			"came back", someDelivery(deadletter.NoticeRegressed), Fires,
			`Came back: 312 letters dead in email-queue: template "welcome_v3" not found`,
			"https://dlo.example.com/groups/G-418",
		},
		{
			"escalated", someDelivery(deadletter.NoticeEscalated), Updates,
			`Grows faster: 312 letters dead in email-queue: template "welcome_v3" not found`,
			"https://dlo.example.com/groups/G-418",
		},
		{
			"updated", someDelivery(deadletter.NoticeUpdated), Updates,
			`Now 312 letters dead in email-queue: template "welcome_v3" not found`,
			"https://dlo.example.com/groups/G-418",
		},
		{
			"resolved", someDelivery(deadletter.NoticeResolved), Resolves,
			`No longer needs anyone: email-queue: template "welcome_v3" not found`,
			"https://dlo.example.com/groups/G-418",
		},
		{
			"a group that is gone", gone, Resolves, "G-418 no longer needs anyone",
			"https://dlo.example.com/groups/G-418",
		},
		{
			"a breaker", word(deadletter.NoticeBreaker, "Retries of sms are held back: 48 of 50 came back."), Told,
			"Retries of sms are held back: 48 of 50 came back.", "https://dlo.example.com",
		},
		{
			"a problem of dlo: its first line",
			word(deadletter.NoticeProblem, "Inbox a is not read.\nIts letters wait in the queue.\nGrant it."), Fires,
			"Inbox a is not read.", "https://dlo.example.com",
		},
		{
			"a refusal without words", word(deadletter.NoticeRefused, ""), Told, "a queue refuses requeued letters",
			"https://dlo.example.com",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := Compose(office, c.d)
			if m.Title != c.title || m.Event != c.event || m.URL != c.url {
				t.Errorf("got %s, %q, %s", m.Event, m.Title, m.URL)
			}
			if strings.Contains(strings.ToLower(m.Title), "success") {
				t.Error("nobody knows of success")
			}
		})
	}
}

func TestIDsAreStableAndTellInstallationsAndNoticesApart(t *testing.T) {
	t.Parallel()
	d := someDelivery(deadletter.NoticeOpened)
	a := Compose(office, d)
	d.Tries, d.ID, d.Channel = 7, 10, "team"
	d.Group.Count = 9000
	if b := Compose(office, d); b.ID != a.ID || b.Key != a.Key {
		t.Error("a further try, or another channel, is another message")
	}
	next := someDelivery(deadletter.NoticeResolved)
	next.Notice.ID = 78
	if b := Compose(office, next); b.ID == a.ID || b.Key != a.Key {
		t.Errorf("the next notice of a key has ID %s and key %s, after %s and %s", b.ID, b.Key, a.ID, a.Key)
	}
	if b := Compose(Office{PublicURL: "https://other.example.com"}, d); b.ID == a.ID || b.Key == a.Key {
		t.Error("another installation says the same message")
	}
	named, moved := Office{PublicURL: "https://a", Name: "n"}, Office{PublicURL: "https://b", Name: "n"}
	if Compose(named, d).ID != Compose(moved, d).ID {
		t.Error("a new public URL makes another message of it")
	}
}

func TestWhatADigestSays(t *testing.T) {
	t.Parallel()
	berlin := location(t, "Europe/Berlin")
	base := deadletter.Digest{
		From: time.Date(2026, 11, 20, 8, 30, 0, 0, berlin), To: time.Date(2026, 11, 23, 8, 30, 0, 0, berlin),
	}
	full := base
	full.Groups, full.Letters, full.New, full.CameBack, full.Recovered = 7, 214, 2, 1, 31
	full.Before = deadletter.DigestCounts{Groups: 5, Letters: 1190, Recovered: 1}
	full.More = 5
	full.Lines = []deadletter.DigestLine{
		{
			Group: deadletter.GroupRow{
				ID: 418, Title: "no template", Queue: "email-queue", Status: deadletter.GroupNew,
				Severity: deadletter.SeverityNotify, Count: 312, Owner: "lena",
			},
			Letters:    112,
			Suggestion: "discarded 3 times before",
		},
		{
			Group: deadletter.GroupRow{
				ID: 7, Title: "timeout", Queue: "sms", Status: deadletter.GroupRegressed,
				Severity: deadletter.SeverityDigest, Count: 1,
			},
			Letters: 1,
		},
	}
	quiet, silent, night, paged := base, base, base, full
	quiet.Recovered, night.Recovered, night.Paged, paged.Paged = 31, 1, 1, 2
	for _, c := range []struct {
		name  string
		d     deadletter.Digest
		title string
	}{
		{"a morning", full, "7 groups, 214 letters, 2 new, 1 came back; 31 recovered by themselves; nothing paged"},
		{
			"a morning after pages", paged,
			"7 groups, 214 letters, 2 new, 1 came back; 31 recovered by themselves; paged 2 times",
		},
		{"a quiet day", quiet, "Nothing died that needs you. 31 letters recovered by themselves."},
		{"nothing at all", silent, "Nothing died that needs you."},
		{"a page that is over", night, "Nothing died that needs you. 1 letter recovered by itself. Paged once."},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := Compose(office, deadletter.Delivery{
				Digest: &c.d,
				Notice: deadletter.Notice{
					Kind: deadletter.NoticeDigest, Key: "digest:2026-11-23", Severity: deadletter.SeverityDigest,
				},
			})
			if m.Title != c.title || m.Event != Told || m.URL != "https://dlo.example.com/triage?tab=digest" {
				t.Errorf("got %s, %q, %s", m.Event, m.Title, m.URL)
			}
		})
	}
	m := Compose(office, deadletter.Delivery{Digest: &full, Notice: deadletter.Notice{Kind: deadletter.NoticeDigest}})
	if want := "From Fri 20 Nov 08:30 CET to Mon 23 Nov 08:30 CET.\nThe window before: 5 groups, 1,190 letters; 1 recovered by itself."; m.Text != want {
		t.Errorf("got %q, want %q", m.Text, want)
	}
	want := []Line{
		{
			Title: "no template",
			Text:  "112 letters in email-queue, new, notify, 312 dead in all, owner lena, discarded 3 times before",
			URL:   "https://dlo.example.com/groups/G-418", Group: "G-418", Count: new(112),
		},
		{
			Title: "timeout", Text: "1 letter in sms, came back", URL: "https://dlo.example.com/groups/G-7",
			Group: "G-7", Count: new(1),
		},
		{Title: "and 5 more groups", URL: "https://dlo.example.com/triage?tab=digest"},
	}
	if d := cmp.Diff(want, m.Lines); d != "" {
		t.Error(d)
	}
}

func TestADigestNamesWhatItLeavesOut(t *testing.T) {
	t.Parallel()
	d := deadletter.Digest{Groups: 100, Letters: 100, More: 3}
	for range 97 {
		d.Lines = append(d.Lines, deadletter.DigestLine{Letters: 1})
	}
	m := Compose(office, deadletter.Delivery{Digest: &d})
	if n := len(m.Lines); n != digestLines+1 || m.Lines[n-1].Title != "and 60 more groups" {
		t.Errorf("%d lines, the last %q", n, m.Lines[n-1].Title)
	}
}

func TestSeveralNoticesAtOnce(t *testing.T) {
	t.Parallel()
	var ds []deadletter.Delivery
	for i, k := range []deadletter.NoticeKind{
		deadletter.NoticeOpened, deadletter.NoticeOpened, deadletter.NoticeRegressed, deadletter.NoticeResolved,
		deadletter.NoticeBreaker,
	} {
		d := someDelivery(k)
		d.Notice.ID = int64(i)
		d.Notice.Severity = deadletter.SeverityNotify
		if k == deadletter.NoticeBreaker {
			d.Group, d.Notice.Group, d.Notice.Text = nil, 0, "Retries of sms are held back."
		}
		ds = append(ds, d)
	}
	ds[2].Notice.Severity = deadletter.SeverityPage
	m := Together(office, ds)
	if want := "5 notices: 2 need people, 1 came back, 1 no longer needs anyone, 1 other"; m.Title != want {
		t.Errorf("got %q, want %q", m.Title, want)
	}
	if m.Severity != deadletter.SeverityPage || m.Event != Told || m.URL != "https://dlo.example.com" ||
		len(m.Lines) != 5 {
		t.Errorf("got %+v", m)
	}
	want := Line{
		Title: `Came back: 312 letters dead in email-queue: template "welcome_v3" not found`,
		Text:  "G-418, rejected, acme.notify.v1.EmailRequested, since 2026-11-20 13:58 UTC, owner lena",
		URL:   "https://dlo.example.com/groups/G-418",
		Group: "G-418", Count: new(312), Last: time.Date(2026, 11, 20, 14, 2, 0, 0, time.UTC),
	}
	if d := cmp.Diff(want, m.Lines[2]); d != "" {
		t.Error(d)
	}
	if again := Together(office, ds); again.ID != m.ID || again.Key != m.Key {
		t.Error("the same notices are another message")
	}
	if fewer := Together(office, ds[:4]); fewer.ID == m.ID {
		t.Error("other notices are the same message")
	}
}

func TestHostileNamesAreBoundedVisibleText(t *testing.T) {
	t.Parallel()
	for _, h := range hostile {
		d := someDelivery(deadletter.NoticeOpened)
		g := d.Group
		g.Title, g.Queue, g.Broker, g.VHost, g.Type, g.Reason, g.Error, g.Owner, g.Ticket, d.Notice.Text = h, h, h, h, h, h, h, h, h, h
		digest := deadletter.Digest{Groups: 1, Lines: []deadletter.DigestLine{{Group: *g, Letters: 1, Suggestion: h}}}
		for _, d := range []deadletter.Delivery{d, {Notice: deadletter.Notice{Text: h}}, {Digest: &digest}} {
			m := Compose(office, d)
			isVisible(t, m.Title, "")
			isVisible(t, m.Text, "\n\t")
			if len(m.Title) > titleBytes || len(m.Text) > textBytes || m.Title == "" {
				t.Errorf("%d bytes of title, %d of text", len(m.Title), len(m.Text))
			}
			for _, f := range m.Facts {
				isVisible(t, f.Value, "")
				if len(f.Value) > factBytes {
					t.Errorf("%s is %d bytes", f.Name, len(f.Value))
				}
			}
			for _, l := range m.Lines {
				isVisible(t, l.Title+l.Text, "")
				if len(l.Title) > titleBytes || len(l.Text) > factBytes {
					t.Errorf("a line of %d and %d bytes", len(l.Title), len(l.Text))
				}
			}
		}
	}
}
