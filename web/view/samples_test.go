package view

import (
	"fmt"
	"maps"
	"net/url"
	"time"

	"github.com/a-h/templ"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
)

var now = time.Date(2026, 11, 20, 9, 14, 0, 0, time.UTC)

func sampleShell(title string, section Section, path string) Shell {
	return Shell{
		Title: title, Section: section, Path: path, Actor: "local", Running: 1, Live: true, Now: now,
		Brokers: []deadletter.BrokerStatus{
			{
				Name:  "main",
				VHost: "/",
				Label: "production", Colour: "red",
				Connected: true,
				Reached:   true,
				Exchange:  "dlo.dlx",
				Setting:   "DLO_AMQP_URL",
				Since:     now.Add(-time.Hour),
				Version:   "4.3.6",
				Inboxes:   []deadletter.InboxStatus{{Queue: "dlo.letters"}},
			},
		},
	}
}

func sampleID(n int) deadletter.ID {
	return deadletter.ID(fmt.Sprintf("019a9f3e-5b1e-7ac0-9d3f-44e2%08x", 0x79c3aeae+n*0x1021347))
}

// sampleScheduled returns the page with the list of waiting letters, sorted by due time.
func sampleScheduled() LettersPage {
	p := sampleLetters()
	p.Query, p.States, p.Order, p.Tokens = "state:scheduled", []deadletter.State{
		deadletter.StateScheduled,
	}, deadletter.OrderDue, nil
	for i := range p.Rows {
		p.Rows[i].State, p.Rows[i].DueAt = deadletter.StateScheduled, p.Now.Add(time.Duration(i*i)*time.Minute)
	}
	return p
}

func sampleLetters() LettersPage {
	p := LettersPage{
		Shell: sampleShell("Letters", SectionLetters, "/letters?q=state%3Adead+queue%3Awebhook-queue%2Csms-queue"),
		Query: "state:dead queue:webhook-queue,sms-queue since:7d", States: []deadletter.State{deadletter.StateDead},
		Tokens: []Token{
			{Text: "state:dead", Remove: LettersURL("queue:webhook-queue,sms-queue", "", "")},
			{Text: "queue:webhook-queue,sms-queue", Remove: LettersURL("state:dead", "", "")},
			{Text: "since:7d", Remove: LettersURL("state:dead queue:webhook-queue,sms-queue", "", "")},
		},
		Total: 1341, Exact: true, Older: "019a9f3e", InStore: 2705, Order: deadletter.OrderReceived,
	}
	for _, order := range deadletter.Orders {
		p.Sorts = append(p.Sorts, Sort{order, LettersURL(p.Query+" sort:"+string(order), "", ""), order == p.Order})
	}
	type v = FacetValue
	p.Facets = []Facet{
		{
			Title: "State",
			Values: []v{
				{"Dead", "state:dead", 1341, true, false},
				{"Scheduled", "state:scheduled", 31, false, false},
				{"Requeued", "state:requeued", 4120, false, false},
				{"Discarded", "state:discarded", 214, false, false},
			},
		},
		{
			Title: "Queue",
			Values: []v{
				{"webhook-queue", "queue:webhook-queue", 1284, true, false},
				{"sms-queue", "queue:sms-queue", 57, true, false},
				{"cdn-purge", "queue:cdn-purge", 640, false, false},
				{"email-queue", "queue:email-queue", 312, false, false},
				{"media-transcode", "queue:media-transcode", 203, false, true},
				{"timeline", "queue:timeline", 88, false, false},
			},
		},
		{
			Title: "Type",
			Values: []v{
				{"WebhookDelivery", "type:acme.hooks.v1.WebhookDelivery", 1284, false, false},
				{"SmsRequested", "type:acme.sms.v1.SmsRequested", 57, false, false},
				{"no type", "type:none", 0, false, false},
			},
		},
		{
			Title: "Reason",
			Values: []v{
				{"rejected", "reason:rejected", 1341, false, false},
				{"expired", "reason:expired", 0, false, false},
			},
		},
		{
			Title: "Severity",
			Values: []v{
				{"Notify", "severity:notify", 1284, false, false},
				{"Digest", "severity:digest", 57, false, false},
			},
			Closed: true,
		},
		{Title: "Group", Closed: true},
	}
	for i := range 14 {
		p.Facets[5].Values = append(p.Facets[5].Values, v{
			fmt.Sprintf("G-%d", 402+i), fmt.Sprintf("group:G-%d", 402+i), 1284 / (i + 1), false, false,
		})
	}
	p.Histogram = &Histogram{
		Histogram: sampleBars(
			48, 210*time.Minute, func(i int) deadletter.Bar { return deadletter.Bar{Dead: 10 + i*37%31} },
		),
	}
	for _, b := range p.Histogram.Bars {
		p.Histogram.Links = append(p.Histogram.Links, LettersURL(p.Query+" since:"+Stamp(b.At), "", ""))
	}
	p.Range = Range{Preset: "7d", From: now.Add(-7 * 24 * time.Hour)}
	p.All = All{Query: "state:dead queue:webhook-queue,sms-queue since:2026-11-13T09:14:00.000Z", Until: now}
	p.All.Typed = p.All.Query + " before:2026-11-20T09:14:00.000Z"
	p.Views = []deadletter.View{
		{ID: 1, Name: "Dead webhooks, this week", Query: p.Query, By: "local", At: now},
		{ID: 2, Name: "Held for a person", Query: "state:held", By: "dana", At: now},
	}
	p.Facets[1].More = 12
	for i := range 16 {
		r := deadletter.Row{
			ID: sampleID(i), State: deadletter.StateDead, Broker: "main", VHost: "/", Queue: "webhook-queue",
			Reason: "rejected", Type: "acme.hooks.v1.WebhookDelivery",
			Group: 402, Attempts: 3, ReceivedAt: now.Add(-time.Duration(i*i+1) * 21 * time.Second),
			DiedAt: now.Add(-time.Minute), Size: 340 + 97*i,
			Summary: `url: "https://hooks.orbitcrm.example/v2/events"`, Error: "endpoint answered 410 Gone",
		}
		if i%5 == 3 {
			r.Queue, r.Type, r.Group, r.Attempts = "sms-queue", "acme.sms.v1.SmsRequested", 409, 2
			r.Summary, r.Error = `to: "+44 •••• 286", body: "Your code is…"`, "carrier refused: 30007 filtered"
		}
		p.Rows = append(p.Rows, r)
	}
	return p
}

// sampleBars returns a histogram with n bars. The last bar ends now.
func sampleBars(n int, step time.Duration, of func(i int) deadletter.Bar) deadletter.Histogram {
	h := deadletter.Histogram{From: now.Add(-time.Duration(n) * step), To: now, Step: step}
	for i := range n {
		b := of(i)
		b.At = h.From.Add(time.Duration(i) * step)
		h.Bars = append(h.Bars, b)
	}
	return h
}

func sampleAllStates() LettersPage {
	p := sampleLetters()
	p.Query, p.States, p.Tokens, p.Exact, p.Total, p.Newer, p.Range = "", nil, nil, false, 10_000, "x", Range{}
	p.Facets[1].Sampled, p.Unindexed = 100_000, 1204
	p.Query = "-queue:media-transcode"
	p.All = All{Query: p.Query, Until: now, Typed: p.Query + " before:2026-11-20T09:14:00.000Z"}
	p.Facets[0].Values[0].On, p.Facets[1].Values[0].On, p.Facets[1].Values[1].On = false, false, false
	p.Tokens = []Token{{Text: "-queue:media-transcode", Not: true, Remove: "/letters?q="}}
	p.Histogram = &Histogram{Histogram: sampleBars(40, time.Hour, func(i int) deadletter.Bar {
		return deadletter.Bar{Dead: i % 7, Waiting: i / 30 * 4, Recovered: 20 + i*13%17, Discarded: i % 3}
	}), Links: nil}
	for i := range p.Rows {
		p.Rows[i].State = deadletter.States[i%len(deadletter.States)]
	}
	p.Rows[1].WaitsIn = "dlo.wait.1000"
	p.Rows[3].Why = "returned by the broker: no such queue"
	p.Rows[6].Unverified = true
	return p
}

// pages returns every page in every state that looks different.
func pages() map[string]templ.Component {
	empty := LettersPage{
		Shell:   sampleShell("Letters", SectionLetters, "/letters?q=state%3Adead"),
		Query:   "state:dead",
		Tokens:  []Token{{Text: "state:dead", Remove: "/letters?q="}},
		States:  []deadletter.State{deadletter.StateDead},
		Exact:   true,
		InStore: 2705,
	}
	noMatch := empty
	noMatch.Query, noMatch.Tokens = "state:dead type:InvoicePaid", append(empty.Tokens, Token{
		Text: "type:InvoicePaid", Remove: "/letters?q=state%3Adead",
	})
	noMatch.Widen = "/letters?q=state%3Adead"
	mistake := LettersPage{
		Shell: empty.Shell, Query: "state:daed queue:sms",
		QueryError: &query.Error{Pos: 6, Want: `there is no state "daed"; the states are received, scheduled, dead`},
	}
	retried := sampleAllStates()
	in := sampleRetry(40)
	retried.Query, retried.InRetry = "", &in
	first := LettersPage{Shell: empty.Shell, InStore: 0, Exact: true, FirstRun: sampleFirstRun()}
	down := sampleLetters()
	down.Theme = ThemeDark
	down.Brokers = []deadletter.BrokerStatus{
		{
			Name:    "main",
			VHost:   "/",
			Reached: true,
			Version: "4.3.6",
			Since:   now.Add(-42 * time.Second),
			NextTry: now.Add(8 * time.Second),
			Inboxes: []deadletter.InboxStatus{{Queue: "dlo.letters"}, {Queue: "orders_error"}},
			Reason:  "connection refused",
		},
		{Name: "second", VHost: "shop", Label: "spare", Colour: "teal", Connected: true},
	}
	down.Problems = []deadletter.Problem{
		{
			Title: "The disk is nearly full: 200 MiB free.",
			Text:  "Nothing is taken from the inboxes until there is room. Letters wait in RabbitMQ.",
		},
	}
	doubtful := sampleLetters()
	doubtful.Query, doubtful.Doubts, doubtful.All.Query = "doubt:restart", []string{string(
		deadletter.DoubtRestart,
	)}, "doubt:restart"
	confirmOne := sampleConfirm(deadletter.VerbRequeue)
	confirmOne.Eligible, confirmOne.Queues, confirmOne.Skipped, confirmOne.IDs = 1, confirmOne.Queues[:1], nil, confirmOne.IDs[:1]
	confirmOne.Queues[0].Letters = 1
	confirmAway := sampleConfirm(deadletter.VerbRequeue)
	for i := range confirmAway.Queues {
		q := &confirmAway.Queues[i]
		q.Facts.Known, q.Away, q.Warning = i == 0, sampleAway, ""
	}
	confirmAway.Warnings = []string{sampleAway}
	refused := sampleConfirm(deadletter.VerbDiscard)
	refused.Problem, refused.Typed = "Nothing was discarded.", url.Values{"count": {"13"}, "reason": {"test data"}}
	refused.Mistakes = map[string]string{"count": "Type 133 to discard 133 letters."}
	mistyped := sampleConfirmAll(deadletter.VerbRequeue)
	mistyped.Problem, mistyped.Typed = "Nothing was started: see the marked fields.", maps.Clone(mistyped.Typed)
	mistyped.Typed.Set("rate", "fast")
	mistyped.Typed.Set("to", "amq.gen-x")
	mistyped.Typed.Set("order", "newest")
	mistyped.Mistakes = map[string]string{
		"rate": "a rate is a number above 0, for example 50", "to": "amq.gen-x belongs to the broker",
	}
	none := sampleConfirm(deadletter.VerbRestore)
	none.Eligible, none.Queues = 0, nil
	noOperations := OperationsPage{Shell: sampleShell("Operations", SectionOperations, "/operations"), First: true}
	noOperations.Running = 0

	all := map[string]templ.Component{
		"letters": Letters(sampleLetters()), "letters-all-states": Letters(sampleAllStates()),
		"letters-empty": Letters(empty), "letters-scheduled": Letters(sampleScheduled()),
		"letters-no-match": Letters(noMatch), "letters-in-retry": Letters(retried),
		"letters-doubted": Letters(doubtful), "letters-mistake": Letters(mistake), "letters-first-run": Letters(first),
		"letters-broker-down": Letters(down),
		"confirm-requeue":     Confirm(sampleConfirm(deadletter.VerbRequeue)),
		"confirm-discard":     Confirm(sampleConfirm(deadletter.VerbDiscard)),
		"confirm-restore":     Confirm(sampleConfirm(deadletter.VerbRestore)),
		"confirm-all":         Confirm(sampleConfirmAll(deadletter.VerbRequeue)), "confirm-mistyped": Confirm(mistyped),
		"confirm-purge": Confirm(sampleConfirmAll(deadletter.VerbPurge)),
		"confirm-hold":  Confirm(sampleConfirm(deadletter.VerbHold)),
		"confirm-away":  Confirm(confirmAway), "confirm-one": Confirm(confirmOne), "confirm-refused": Confirm(refused),
		"confirm-none":          Confirm(none),
		"letter-undecoded":      Letter(sampleUndecoded()),
		"letter-ambiguous":      Letter(sampleAmbiguous()),
		"letter-reported":       Letter(sampleReported()),
		"letter-masked":         Letter(sampleMasked(TabDecoded)),
		"letter-masked-raw":     Letter(sampleMasked(TabRaw)),
		"letter-masked-headers": Letter(sampleMasked(TabHeaders)),
		"operation":             Operation(sampleOperation(deadletter.OperationRunning, deadletter.VerbRequeue)),
		"operation-done":        Operation(sampleOperation(deadletter.OperationDone, deadletter.VerbDiscard)),
		"operation-stopped":     Operation(sampleOperation(deadletter.OperationCancelled, deadletter.VerbRestore)),
		"operations":            Operations(sampleOperations()),
		"operations-empty":      Operations(noOperations),
		"sign-in":               SignIn(SignInPage{Next: "/triage"}),
		"sign-in-wrong": SignIn(SignInPage{
			Name: "lena", Next: "/", Error: "That name and password do not match. 4 tries left.",
		}),
		"sign-in-again": SignInAgain(SignInPage{
			Name: "lena", Next: "/letters", Error: "That name and password do not match. 4 tries left.",
		}),
		"welcome":      Welcome(SignInPage{Name: "lena", Code: "dlo_x", Error: "The two passwords differ."}),
		"welcome-late": Welcome(SignInPage{}),
		"account":      Account(sampleAccount()),
		"account-of-a-proxy": Account(AccountPage{
			Shell:  sampleShell("Your account", "", "/account"),
			Grants: []string{"reader"},
		}),
		"overview-observing": Overview(observingOverview()),
		"access":             Access(sampleAccess(nil)),
		"access-link": Access(sampleAccess(&NewSecret{
			Link: true, Name: "priya", Text: "https://dlo.example.com/welcome?code=dlo_x",
		})),
		"access-token": Access(sampleAccess(&NewSecret{Name: "ci", Text: "dlo_x"})),
		"access-off": Access(AccessPage{
			Shell: sampleShell("Users and tokens", "", "/access"), UsersOff: true, TokensOff: true,
		}),
		"error-404": Error(ErrorPage{
			Shell: sampleShell("Not found", "", "/groups/G-9999"), Status: 404, Detail: "there is no group G-9999",
		}),
		"error-with-details": Error(ErrorPage{
			Shell: sampleShell("Something broke on our side", "", "/letters"), Status: 500,
			Detail: "the store did not answer", Name: "7f3a",
		}),
	}
	maps.Copy(all, samplePhases())
	maps.Copy(all, setupPages())
	maps.Copy(all, queuePages())
	maps.Copy(all, applyPages())
	maps.Copy(all, settingsPages())
	maps.Copy(all, schemaPages())
	maps.Copy(all, editPages())
	maps.Copy(all, triagePages())
	for _, status := range []int{400, 403, 405, 409, 413, 503} {
		all[fmt.Sprintf("error-%d", status)] = Error(ErrorPage{
			Shell: sampleShell(ErrorTitle(status), "", "/"), Status: status,
		})
	}
	for _, form := range Forms {
		all["by-hand-"+string(form)] = ByHand(sampleByHand(form))
	}
	maskedCopy := sampleByHand(FormCurl)
	maskedCopy.Copy, maskedCopy.Masked, maskedCopy.MayReveal = Copy{}, true, true
	all["by-hand-masked"] = ByHand(maskedCopy)
	for _, tab := range Tabs {
		all["letter-"+string(tab)] = Letter(sampleLetter(tab))
	}
	refusedType := sampleUndecoded()
	refusedType.Types.Typed, refusedType.Types.For, refusedType.Types.Problem = "acme.Gone", "binding", `type "acme.Gone" is not registered; give the full name of a message type of a registered set`
	all["letter-type-refused"] = Letter(refusedType)
	scheduled := sampleLetter(TabTimeline)
	scheduled.Letter.State, scheduled.Letter.Why, scheduled.Letter.DueAt = deadletter.StateScheduled, "retry 3 of 3 in 16m40s", now.Add(
		4*time.Minute,
	)
	all["letter-scheduled"] = Letter(scheduled)
	all["letter-waits-in-the-broker"], all["letter-waits-in-ttl"] = Letter(sampleWaiting(TabHistory, "dlo.wait.1000000")), Letter(sampleWaiting(TabTimeline, deadletter.WaitTTL))
	settled := sampleWaiting(TabHistory, "")
	settled.Letter.State, settled.Letter.Unverified = deadletter.StateQuiet, true
	all["letter-unverified"] = Letter(settled)
	all["letter-peek"] = LetterPeek(sampleLetter(TabDecoded))
	return all
}

// evil is a text that contains a piece of every attack on a page, for example a script element.
const evil = `<script>alert(1)</script>"><img src=x onerror=alert(1)> javascript:alert(1) ' onmouseover='alert(1) style="x" ` +
	"\x1b[31m\u202eright to left\u200b\x00\xff {{.}} </textarea></title>"

func sampleAccount() AccountPage {
	session := func(n byte) deadletter.Session {
		return deadletter.Session{
			User:      "lena",
			Hash:      [32]byte{n},
			CreatedAt: now.Add(-26 * time.Hour),
			UsedAt:    now.Add(-time.Minute),
			Address:   "192.0.2.7",
			Agent:     "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36",
		}
	}
	return AccountPage{
		Shell:    sampleShell("Your account", "", "/account"),
		Grants:   []string{"operator, reveal", "reader"},
		Sessions: []deadletter.Session{session(1), session(2)},
		This:     [32]byte{1},
		Error:    "The two passwords differ.",
	}
}

func sampleAccess(secret *NewSecret) AccessPage {
	grant := func(role deadletter.Role, queues ...string) deadletter.Grant {
		return deadletter.Grant{Role: role, Places: deadletter.Places{Queues: queues}}
	}
	p := AccessPage{
		Shell:  sampleShell("Users and tokens", "", "/access"),
		Roles:  deadletter.RoleNames(),
		Secret: secret,
		Forms:  map[string]url.Values{"token": {"days": {"90"}}},
		Users: []deadletter.User{
			{
				Name:       "admin",
				Grant:      deadletter.Grant{Role: deadletter.RoleAdmin, Reveal: true, Purge: true},
				CreatedAt:  now.Add(-90 * 24 * time.Hour),
				CreatedBy:  "dlo",
				SignedInAt: now.Add(-2 * time.Minute),
			},
			{
				Name: "lena", Grant: grant(deadletter.RoleOperator, "webhook-*", "email-queue"),
				CreatedAt: now.Add(-30 * 24 * time.Hour), CreatedBy: "admin", SignedInAt: now.Add(-26 * time.Hour),
			},
			{
				Name: "priya", Grant: grant(deadletter.RoleViewer), CreatedAt: now.Add(-time.Minute),
				CreatedBy: "admin", Invited: true,
			},
		},
		Tokens: []deadletter.APIToken{
			{
				Name: "ci", Grant: grant(deadletter.RoleOperator), CreatedAt: now.Add(-20 * 24 * time.Hour),
				CreatedBy: "admin", ExpiresAt: now.Add(70 * 24 * time.Hour), UsedAt: now.Add(-3 * time.Minute),
				UsedFrom: "192.0.2.7",
			},
			{
				Name: "nightly-export", Grant: grant(deadletter.RoleReader, "billing-*"),
				CreatedAt: now.Add(-100 * 24 * time.Hour), CreatedBy: "token:first",
				ExpiresAt: now.Add(-10 * 24 * time.Hour),
			},
		},
	}
	if secret == nil {
		p.Forms["user"] = url.Values{
			"name": {"lena"}, "role": {"operator"}, "purge": {"1"}, "queues": {"webhook-*"},
		}
		p.Mistakes = map[string]string{"user": "there is already a user lena"}
	}
	return p
}
