package view

import (
	"net/url"
	"strings"
	"time"

	"github.com/a-h/templ"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/payload"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/internal/rules"
)

func sampleGroups() []deadletter.GroupRow {
	g := func(
		id deadletter.GroupID, s deadletter.Severity, title, queue string, n int, last time.Duration, spark ...int,
	) deadletter.GroupRow {
		for len(spark) < 24 {
			spark = append([]int{0}, spark...)
		}
		return deadletter.GroupRow{
			ID: id, Title: title, Broker: "main", VHost: "/", Queue: queue, Severity: s, Count: n,
			FirstAt: now.Add(-20 * time.Hour), LastAt: now.Add(-last), Spark: spark,
		}
	}
	return []deadletter.GroupRow{
		g(
			402, deadletter.SeverityDigest, "endpoint answered 410 Gone", "webhook-queue", 1284, 61*time.Minute, 12, 14,
			9, 11, 13, 8, 12, 11, 17, 9, 12, 14, 13,
		),
		g(
			418, deadletter.SeverityPage, `template "welcome_v3" not found`, "email-queue", 312, 20*time.Second, 60,
			149, 150,
		),
		g(
			409, deadletter.SeverityNotify, "foreign key violation: author_id = 0", "timeline", 88, 80*time.Minute, 2,
			1, 3, 2, 9, 14, 17, 12,
		),
		g(
			411, deadletter.SeverityPage, "value too long for type character varying(255)", "billing-invoices", 9,
			3*time.Hour, 1, 0, 3, 2, 0, 5,
		),
	}
}

// sampleRetry returns n letters in retry of a queue that nobody consumes.
func sampleRetry(n int) InRetry {
	return InRetry{
		deadletter.InRetry{Letters: n, Groups: 1, DiesAt: now.Add(18 * time.Minute), QuietAt: now.Add(time.Minute)},
		[]string{"sms-queue"},
	}
}

func sampleOverview() OverviewPage {
	p := OverviewPage{
		Shell:    sampleShell("Overview", SectionOverview, "/"),
		Range:    "24h",
		Dead:     2614,
		Held:     12,
		InRetry:  sampleRetry(91),
		Groups:   sampleGroups(),
		MoreThan: true,
		Disk:     "18.2 GiB free of 20 GiB",
		Backup: &deadletter.Backup{
			At: now.Add(-9 * time.Hour), Letters: map[deadletter.State]int{deadletter.StateDead: 1_284_331},
			Rehearsed: &deadletter.Rehearsal{At: now.Add(-9 * time.Hour)},
		},
		Told: []string{"oncall"},
		Channels: []deadletter.Channel{
			{Name: "oncall", TestedAt: now.Add(-3 * time.Minute), Accepted: true, Answer: "202 Accepted"},
			{Name: "team"},
		},
		Restore: "for 7 days",
	}
	p.Standing = deadletter.Standing{
		Failing: deadletter.InboxShare{Groups: 2, Letters: 1596},
		Quiet:   deadletter.InboxShare{Groups: 9, Letters: 1030},
		LastAt:  now.Add(-20 * time.Second),
	}
	worst := sampleGroup().Group
	p.Worst, p.ByPeople = &worst, 18
	halted := sampleOperation(deadletter.OperationStopped, deadletter.VerbRequeue).Operation
	halted.HaltedAt = now.Add(-61 * time.Minute)
	p.Halted = []deadletter.Operation{halted}
	p.Arrivals = sampleBars(96, 15*time.Minute, func(i int) deadletter.Bar {
		b := deadletter.Bar{Recovered: 14 + i*7%11, Dead: i % 4 / 3, Discarded: i % 11 / 10}
		if i > 86 {
			b.Dead, b.Waiting = 30+i%5*2, (i-87)*2
		}
		return b
	})
	return p
}

func observingOverview() OverviewPage {
	p := sampleOverview()
	p.Shell.Observing = "all queues of broker main"
	return p
}

func sampleAudit() AuditPage {
	p := AuditPage{
		Shell: sampleShell("Audit log", SectionAudit, "/audit"), Next: "x",
		Entries: []AuditRow{
			sampleAct(9, time.Minute, "requeue", "Lena Sato", "page", "endpoints restored by vendor", deadletter.Act{
				Operation: 77, Action: deadletter.VerbRequeue, Query: "state:dead queue:webhook-queue", Total: 1341,
				Asked: 1341, Done: 520,
			}, sampleTarget("operation", "O-77", "")),
			sampleAct(
				8, 20*time.Minute, "resolved", "Lena Sato", "page", "in version 2026.11.20-2",
				deadletter.Act{Asked: 5, Done: 4}, sampleTarget("group", "G-418", `template "welcome_v3" not found`),
				sampleTarget("group", "G-420", "endpoint answered 410 Gone"), sampleTarget("group", "G-421", "timeout"),
				sampleTarget("group", "G-430", "timeout"),
			),
			sampleAct(
				7, 2*time.Hour, "redirect", "Priya Nair", "api", "letters of old-queue go to new-queue",
				deadletter.Act{Asked: 1, Done: 1}, sampleTarget("redirect", "old-queue", ""),
			),
			sampleAct(
				6, 7*time.Hour, "retention", "dlo", "dlo", "1204 letters purged that were discarded before 2026-11-13",
				deadletter.Act{Asked: 1204, Done: 1204}, sampleTarget("letters", "discarded", ""),
			),
			sampleAct(5, 20*time.Hour, "discard", "jonas.ode", "cli", "sent by a test", deadletter.Act{
				Operation: 75, Action: deadletter.VerbDiscard, Total: 30, Asked: 30, Done: 9,
			}, sampleTarget("operation", "O-75", "")),
			sampleAct(4, 50*time.Hour, "snoozed", "Lena Sato", "", "until 2026-11-20 08:30 UTC", deadletter.Act{
				Asked: deadletter.UnknownAmount, Done: deadletter.UnknownAmount,
			}, sampleTarget("group", "G-402", "timeout")),
			sampleAct(
				3, 51*time.Hour, "revealed", "Lena Sato", "page", "field to.address", deadletter.Act{Asked: 1, Done: 1},
				sampleTarget("letter", string(sampleID(2)), ""),
			),
			sampleAct(2, 52*time.Hour, "view removed", "local", "", "", deadletter.Act{
				Asked: deadletter.UnknownAmount, Done: deadletter.UnknownAmount,
			}),
		},
	}
	p.Entries[4].Restorable = true
	return p
}

func sampleAct(
	id int64, ago time.Duration, kind, actor string, through deadletter.Way, detail string, a deadletter.Act,
	targets ...deadletter.Target,
) AuditRow {
	a.ID, a.At, a.Kind, a.Actor, a.Through, a.Detail, a.Targets = id, now.Add(-ago), kind, actor, through, detail, targets
	row := AuditRow{Act: a}
	for _, t := range targets {
		row.Links = append(row.Links, map[deadletter.TargetKind]string{
			"operation": "/operations/" + t.Name, "group": "/groups/" + t.Name, "letter": "/letters/" + t.Name,
		}[t.Kind])
	}
	return row
}

func sampleTarget(kind deadletter.TargetKind, name, title string) deadletter.Target {
	return deadletter.Target{Kind: kind, Name: name, Title: title}
}

// samplePlan returns a back-off with the given delays.
func samplePlan(jitter float64, delays ...time.Duration) *rules.Retry {
	return &rules.Retry{Delays: delays, Jitter: jitter}
}

// sampleThousand returns a back-off with a thousand retries.
func sampleThousand() *rules.Retry {
	return &rules.Retry{First: time.Minute, Factor: 2, Max: 6 * time.Hour, Attempts: 1000, Jitter: .2}
}

func sampleRules() RulesPage {
	yaml := "name: email\nmatch: {queue: email-queue, reason: rejected}\nretry: {delays: [10s, 100s, 1000s], jitter: 0.1}\ndead: {severity: page}"
	return RulesPage{
		Shell:  sampleShell("Rules", SectionRules, "/rules"),
		Chosen: 1,
		Try: TryForm{
			Text: "rules:\n  - " + strings.ReplaceAll(yaml, "\n", "\n    ") +
				"\ndefault:\n  retry: {delays: [10s, 100s, 1000s]}\n",
		},
		Set: &rules.Set{
			File:   "/etc/dlo/dlo.yaml",
			Loaded: time.Date(2026, 11, 18, 15, 31, 0, 0, time.UTC),
			Rules: []rules.Rule{
				{
					Name:     "billing",
					Retry:    samplePlan(0, 30*time.Second, 5*time.Minute, time.Hour, 4*time.Hour),
					Severity: deadletter.SeverityPage,
					Match:    rules.Match{Queue: rules.Patterns{"billing-*"}},
				},
				{
					Name:     "email",
					Retry:    samplePlan(.1, 10*time.Second, 100*time.Second, 1000*time.Second),
					Severity: deadletter.SeverityPage,
					Match: rules.Match{
						Queue: rules.Patterns{"email-queue"}, Reason: rules.Patterns{"rejected"},
					},
					Watch: 30 * time.Minute,
					Rate:  new(10.0),
					YAML:  yaml,
				},
				{
					Name:     "webhooks 410",
					Severity: deadletter.SeverityDigest,
					Retry:    &rules.Retry{},
					Match:    rules.Match{Error: rules.Patterns{"*410 Gone*"}},
				},
				{
					Name:     "webhooks",
					Retry:    sampleThousand(),
					Severity: deadletter.SeverityDigest,
					Match:    rules.Match{Queue: rules.Patterns{"webhook-queue"}},
				},
				{
					Name:    "noise",
					Discard: true,
					Match: rules.Match{
						Queue:  rules.Patterns{"cdn-purge"},
						Header: []rules.Named{{Name: "x-source", Want: rules.Patterns{"*"}}},
					},
				},
				{
					Name:     "poison",
					Severity: deadletter.SeverityNotify,
					Match:    rules.Match{NoSchema: true},
				},
			},
			Default: rules.Rule{
				Name:     "default",
				Retry:    samplePlan(0, 10*time.Second, 100*time.Second, 1000*time.Second),
				Severity: deadletter.SeverityDigest,
				YAML:     "retry: {delays: [10s, 100s, 1000s]}",
			},
		},
		Guards: []deadletter.Guard{
			{
				Origin: deadletter.Origin{Broker: "main", VHost: "/", Queue: "sms-queue"},
				State:  deadletter.GuardPaused,
				Why:    "the carrier is down",
				By:     "Lena Sato",
				Since:  now.Add(-time.Hour),
			},
			{
				Origin: deadletter.Origin{Broker: "main", VHost: "/", Queue: "email-queue"},
				Group:  418,
				Title:  "welcome_v3 not found",
				State:  deadletter.GuardTripped,
				Why:    "48 of the last 50 came back",
				By:     "dlo",
				Since:  now.Add(-time.Minute),
			},
		},
		Overrides: []deadletter.Override{
			{
				ID: 3, Broker: "main", VHost: "/", Queue: "old-queue", To: "new-queue", By: "Priya Nair",
				Reason: "renamed", At: now.Add(-2 * time.Hour),
			},
		},
	}
}

// sampleApply returns the page with the changes that rules would make to waiting letters.
func sampleApply() ApplyPage {
	return ApplyPage{
		Shell:   sampleShell("Apply the rules", SectionRules, "/rules/apply/confirm"),
		Query:   "queue:webhook-queue,sms-queue",
		Loaded:  now.Add(-time.Hour),
		Restore: "for 7 days",
		Applied: rules.Applied{
			DryRun:    true,
			Looked:    2614,
			Unchanged: 1204,
			Changes: []rules.AppliedChange{
				{
					From:     rules.Decided{Rule: "webhooks", Outcome: deadletter.RuleRetry},
					To:       rules.Decided{Rule: "webhooks 410", Outcome: deadletter.RuleDead},
					Letters:  1284,
					Examples: []deadletter.ID{sampleID(0), sampleID(1), sampleID(2)},
				},
				{
					From:     rules.Decided{Rule: "default", Outcome: deadletter.RuleRetry},
					To:       rules.Decided{Rule: "noise", Outcome: deadletter.RuleDiscard},
					Letters:  101,
					Examples: []deadletter.ID{sampleID(3)},
				},
				{
					From:     rules.Decided{Rule: "default", Outcome: deadletter.RuleRetry},
					To:       rules.Decided{Rule: "default", Outcome: deadletter.RuleRetry},
					Letters:  22,
					Examples: []deadletter.ID{sampleID(4)},
				},
			},
			Left: map[string]int{"someone set its due time": 2, "an operation has released it": 1},
		},
	}
}

// sampleSettings returns the page with a change of the delays of a rule that is not saved yet.
func sampleSettings() SettingsPage {
	of := sampleRules()
	of.Set.Channels = []string{"oncall", "team"}
	words := func(text string, changed bool) []payload.Span { return []payload.Span{{Text: text, Changed: changed}} }
	return SettingsPage{
		Shell: sampleShell("Settings", SectionRules, "/settings"),
		Set:   of.Set,
		Rule:  &of.Set.Rules[1],
		Form: url.Values{
			"delays": {"10s, 5m"}, "severity": {"page"}, "notify": {"oncall"}, "fields": {"customer.id\norder.number"},
		},
		Posted: url.Values{"setting": {"delays"}, "rule": {"email"}, "delays": {"10s, 5m"}},
		Change: &deadletter.SettingChange{
			File: of.Set.File, Digest: "5f3a", Changes: "rule email, retry.delays: [10s, 5m], before [10s, 100s, 1000s]",
			Place: "as rule 2 of the list under rules", YAML: "- name: email\n  retry: {delays: [10s, 5m]}",
		},
		Diff: []payload.DiffLine{
			{Op: payload.LeftOut, Left: 12},
			{Op: payload.Same, Spans: words("    match: {queue: email-queue}", false)},
			{Op: payload.Removed, Spans: words("    retry: {delays: [10s, 100s, 1000s], jitter: 0.1}", true)},
			{Op: payload.Added, Spans: words("    retry: {delays: [10s, 5m], jitter: 0.1}", true)},
		},
		WhatIf: &rules.WhatIf{
			Looked: 500, Matching: 1284, Exact: true, Most: WhatIfLetters, Usual: true,
			Fates: []rules.Fate{{
				Was:      rules.Outcome{State: deadletter.StateDead, Rule: "email", Delays: "10 s, then dead: page"},
				Would:    rules.Outcome{Rule: "email", Action: deadletter.RuleRetry, Delays: "10 s, 5 min, then dead: page"},
				Letters:  500,
				Examples: []deadletter.ID{sampleID(0)},
			}},
		},
		Mistakes: map[string]string{},
	}
}

// settingsPages returns the page Settings before and after a change, and with mistakes.
func settingsPages() map[string]templ.Component {
	saved, copied, wrong := sampleSettings(), sampleSettings(), sampleSettings()
	change := *saved.Change
	change.Saved, change.Reindex = true, true
	saved.Change, saved.WhatIf = &change, nil
	refused := *copied.Change
	refused.Unsaved = "/etc/dlo/dlo.yaml is not writable by dlo"
	copied.Change, copied.Diff, copied.Rule = &refused, nil, &copied.Set.Default
	copied.Queue = deadletter.Origin{Broker: "main", VHost: "/", Queue: "sms-queue"}
	wrong.Change, wrong.Diff, wrong.WhatIf, wrong.Rule = nil, nil, nil, &wrong.Set.Rules[3]
	wrong.Problem = "/etc/dlo/dlo.yaml has changed since you looked at the change; check it again"
	wrong.Mistakes = map[string]string{
		"delays": `"soon" is not a duration.`, "severity": "No.", "notify": "No such channel.", "fields": "It is masked.",
		"rule": "There is no such rule.",
	}
	return map[string]templ.Component{
		"settings": Settings(sampleSettings()), "settings-saved": Settings(saved), "settings-copy": Settings(copied),
		"settings-mistakes": Settings(wrong),
	}
}

// applyPages returns the pages for applying rules to waiting letters, before and after the changes
// are made.
func applyPages() map[string]templ.Component {
	none := sampleApply()
	none.Query, none.Unchanged, none.Changes, none.Left = "", 2614, nil, nil
	done := sampleApply()
	done.DryRun, done.Stopped, done.Changes = false, true, append(done.Changes, rules.AppliedChange{
		From:    rules.Decided{Rule: "", Outcome: deadletter.RuleRetry},
		To:      rules.Decided{Rule: "billing", Outcome: deadletter.RuleRetry},
		Letters: 1,
	})
	refused := sampleApply()
	refused.Problem, refused.Mistakes = "Nothing was changed: see the marked field.", map[string]string{
		"count": "Type 101 to discard 101 letters.",
	}
	refused.Reason, refused.Typed = "known noise", "11"
	mistaken := sampleRules()
	mistaken.Apply, mistaken.Mistakes = "queu:sms", map[string]string{"q": `there is no field "queu"`}
	return map[string]templ.Component{
		"apply": Apply(sampleApply()), "apply-none": Apply(none), "apply-done": Apply(done),
		"apply-refused": Apply(refused), "rules-apply-mistaken": Rules(mistaken),
	}
}

func sampleFirstRun() *FirstRun {
	return &FirstRun{Setup: Setup{Broker: "main", Exchange: "dlo.dlx", Inbox: "dlo.letters", VHost: "/"}}
}

// sampleTrial returns a trial that has completed all its steps.
func sampleTrial(state deadletter.TrialState) *deadletter.Trial {
	at := func(seconds float64) time.Time { return now.Add(time.Duration(seconds*1000) * time.Millisecond) }
	return &deadletter.Trial{
		Broker: "main", VHost: "/", By: "local", State: state, Letter: sampleID(7),
		Summary: `text: "Hello from Dead Letter Office."`, StartedAt: now,
		RejectedAt: at(0.02), ArrivedAt: at(0.04), DecodedAt: at(0.05), RequeuedAt: at(1.2), AcceptedAt: at(1.21),
		QuietAt: at(8),
	}
}

// setupPages returns the pages that are not about letters or operations.
func setupPages() map[string]templ.Component {
	quiet := sampleOverview()
	quiet.Groups, quiet.Dead, quiet.Held, quiet.InRetry, quiet.Unindexed, quiet.MoreThan = nil, 0, 0, sampleRetry(1), 1204, false
	quiet.Standing, quiet.Worst = deadletter.Standing{}, nil
	quiet.Arrivals = sampleBars(24, time.Hour, func(int) deadletter.Bar { return deadletter.Bar{} })
	stale := sampleOverview()
	stale.Groups = stale.Groups[2:]
	stale.Standing, stale.Worst = deadletter.Standing{
		Quiet:  deadletter.InboxShare{Groups: 9, Letters: 97},
		LastAt: now.Add(-80 * time.Minute),
	}, nil
	stale.Copies, stale.Doubted = 1204, All{Query: "doubt:restart,cut-off", Until: now}
	stale.Fix = &deadletter.Deploy{Service: "timeline", Version: "2026.11.20-3", At: now.Add(-time.Hour)}
	down := sampleOverview()
	down.Brokers = []deadletter.BrokerStatus{
		{
			Name:    "main",
			VHost:   "/",
			Reached: true,
			Since:   now.Add(-42 * time.Second),
			NextTry: now.Add(8 * time.Second),
			Inboxes: []deadletter.InboxStatus{{Queue: "dlo.letters"}},
			Reason:  "connection refused",
		},
	}
	never := OverviewPage{
		Shell: sampleShell("Overview", SectionOverview, "/"), Range: "24h", FirstRun: sampleFirstRun(),
	}
	never.Brokers = []deadletter.BrokerStatus{
		{
			Name:     "main",
			VHost:    "/",
			Exchange: "dlo.dlx",
			Setting:  "DLO_AMQP_URL",
			Since:    now.Add(-5 * time.Second),
			NextTry:  now.Add(4400 * time.Millisecond),
			Inboxes:  []deadletter.InboxStatus{{Queue: "dlo.letters"}},
			Reason:   "dial tcp 127.0.0.1:5672: connect: connection refused",
		},
		{
			Name:    "second",
			VHost:   "shop",
			Setting: "url of broker second in dlo.yaml",
			Inboxes: []deadletter.InboxStatus{{Queue: "billing.dead"}},
			Reason:  "not connected yet",
		},
	}
	first := OverviewPage{
		Shell: sampleShell("Overview", SectionOverview, "/"), Range: "24h", FirstRun: sampleFirstRun(),
	}
	tried := func(state deadletter.TrialState, change func(f *FirstRun)) templ.Component {
		p := first
		p.FirstRun = sampleFirstRun()
		p.FirstRun.Trial = sampleTrial(state)
		change(p.FirstRun)
		return Overview(p)
	}
	noAudit := AuditPage{Shell: sampleShell("Audit log", SectionAudit, "/audit")}
	noMatch := noAudit
	noMatch.Query = "who:nobody"
	mistyped := noAudit
	mistyped.Query, mistyped.QueryError = "action:resolve", &query.Error{
		Pos: 7, Want: `there is no action "resolve" (did you mean resolved?)`,
	}
	wrong := sampleRules()
	wrong.Overrides, wrong.Brokers = nil, append(wrong.Brokers, deadletter.BrokerStatus{
		Name: "second", VHost: "shop", Connected: true,
	})
	wrong.Form, wrong.Mistakes = url.Values{
		"place": {vhostOf("second", "shop")}, "queue": {"a"}, "to": {"amq.gen-x"}, "reason": {"r"},
	}, map[string]string{"to": "amq.gen-x belongs to the broker"}
	several := sampleRules()
	several.Brokers = wrong.Brokers
	whatIf := sampleRules()
	whatIf.Chosen, whatIf.Set.File, whatIf.Guards = 5, "", nil
	const plain = "10 s, 1 min 40 s, 16 min 40 s, then dead: digest"
	whatIf.WhatIf = &rules.WhatIf{
		Usual: true, Matching: 2614, Exact: true, Most: 500, Looked: 470, Late: 27, Left: 3,
		Fates: []rules.Fate{
			{
				Was:      rules.Outcome{State: deadletter.StateScheduled, Rule: "default", Delays: plain},
				Would:    rules.Outcome{Rule: "noise", Action: deadletter.RuleDiscard, Delays: "discarded at once"},
				Letters:  52,
				Examples: []deadletter.ID{sampleID(0), sampleID(1), sampleID(2)},
				Query:    "id:" + string(sampleID(0)) + "," + string(sampleID(1)),
			},
			{
				Was:      rules.Outcome{State: deadletter.StateDead, Rule: "older", Severity: deadletter.SeverityDigest},
				Would:    rules.Outcome{Rule: "webhooks", Action: deadletter.RuleRetry, Delays: "1 min, then dead: digest"},
				Letters:  1,
				Examples: []deadletter.ID{sampleID(3)},
			},
			{
				Was: rules.Outcome{State: deadletter.StateDead, Severity: deadletter.SeverityPage},
				Would: rules.Outcome{
					Rule: "email", Action: deadletter.RuleDead, Severity: deadletter.SeverityPage,
					Delays: "9 s to 11 s, then dead: page",
				},
				Same:     true,
				Letters:  350,
				Examples: []deadletter.ID{sampleID(4)},
				Query:    "state:dead rule:email",
			},
			{
				Was:      rules.Outcome{State: deadletter.StateHeld, Rule: "default", Delays: plain},
				Would:    rules.Outcome{Rule: "default", Action: deadletter.RuleRetry, Delays: plain},
				Same:     true,
				Letters:  3,
				Examples: []deadletter.ID{sampleID(5)},
			},
		},
	}
	tested := whatIf
	tested.Set, tested.WhatIf = sampleRules().Set, new(rules.WhatIf)
	*tested.WhatIf = *whatIf.WhatIf
	tested.WhatIf.Usual = false
	tested.WhatIf.Notes = []string{"The text has no default; the one in use applies."}
	tested.Try = TryForm{
		Text:  "- name: email\n  retry: {delays: [10s, 100s, 1000s], jitter: 0.1}\n",
		Query: "group:G-418",
	}
	misread := sampleRules()
	misread.Try = TryForm{
		Text: "- name: email\n  retires: {}\n",
		Mistakes: []deadletter.Mistake{
			{Line: 2, Column: 3, Text: `there is no key "retires" in rules; the keys are dead, retry`},
			{Text: "and 2 more"},
		},
	}
	unasked := sampleRules()
	unasked.Overrides, unasked.Guards, unasked.Try = nil, nil, TryForm{Text: "x", Query: "queu:sms", Unshown: 70000}
	unasked.Mistakes = map[string]string{"try-q": `there is no field "queu"`}
	none := sampleRules()
	none.Overrides, none.Guards, none.Try = nil, nil, TryForm{Unshown: 70000}
	return map[string]templ.Component{
		"glossary": Glossary(sampleShell("Glossary", "", "/glossary")),
		"overview": Overview(sampleOverview()), "overview-quiet": Overview(quiet), "overview-stale": Overview(stale),
		"overview-broker-down": Overview(down), "overview-first-run": Overview(first),
		"overview-never-connected": Overview(never),
		"audit":                    Audit(sampleAudit()), "audit-empty": Audit(noAudit),
		"audit-no-match": Audit(noMatch),
		"audit-mistake":  Audit(mistyped), "rules": Rules(sampleRules()), "rules-wrong": Rules(wrong),
		"rules-several":  Rules(several),
		"overview-tried": tried(deadletter.TrialDone, func(*FirstRun) {}),
		"overview-trying": tried(deadletter.TrialRunning, func(f *FirstRun) {
			f.Trial.RequeuedAt, f.Trial.AcceptedAt, f.Trial.QuietAt = time.Time{}, time.Time{}, time.Time{}
		}),
		"overview-trial-begun": tried(deadletter.TrialRunning, func(f *FirstRun) {
			*f.Trial = deadletter.Trial{
				State: deadletter.TrialRunning, StartedAt: now,
			}
		}),
		"overview-trial-failed": tried(deadletter.TrialFailed, func(f *FirstRun) {
			*f.Trial = deadletter.Trial{
				State: deadletter.TrialFailed, StartedAt: now,
				Problem: "user dlo lacks a permission that a trial needs (ACCESS_REFUSED)",
				Cure:    `rabbitmqctl set_permissions -p '/' 'dlo' '^(dlo\..*)$' '^(amq\.default|dlo\..*)$' '^(dlo\..*)$'`,
			}
		}),
		"overview-no-trial": tried("", func(f *FirstRun) {
			f.Trial, f.Exchange, f.Unable = nil, "", "broker main has no dead-letter exchange in the configuration, and the test letter needs one"
		}),
		"rules-tested": Rules(tested), "rules-what-if": Rules(whatIf),
		"rules-misread": Rules(misread), "rules-try-no-query": Rules(unasked), "rules-no-overrides": Rules(none),
	}
}
