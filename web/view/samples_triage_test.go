package view

import (
	"slices"
	"time"

	"github.com/a-h/templ"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
)

// sampleTriaged returns the groups that the samples of Triage show.
func sampleTriaged() []deadletter.GroupRow {
	list := []deadletter.GroupRow{
		{
			ID: 418, Title: `template "welcome_v3" not found`, Queue: "email-queue", Reason: "rejected",
			Type: "acme.notify.v1.EmailRequested", Severity: deadletter.SeverityPage, Status: deadletter.GroupNew,
			Count: 312, Waiting: 46, Owner: "Priya Nair",
		},
		{
			ID: 397, Title: "value too long for type character varying(160)", Queue: "billing-invoices",
			Reason: "rejected", Type: "acme.billing.v1.InvoicePaid", Severity: deadletter.SeverityPage,
			Status: deadletter.GroupRegressed, Count: 9, Waiting: 2,
			Back: deadletter.Back{Since: now.Add(-49 * time.Minute), After: 2},
		},
		{
			ID: 415, Title: "foreign key violation: author_id = 0", Queue: "timeline", Reason: "delivery_limit",
			Severity: deadletter.SeverityNotify, Status: deadletter.GroupEscalating, Count: 88,
			Note: "the author was deleted, see the ticket", NoteBy: "bob",
		},
		{
			ID: 402, Title: "endpoint answered 410 Gone", Queue: "webhook-queue", Reason: "rejected",
			Type: "acme.hooks.v1.WebhookDelivery", Severity: deadletter.SeverityDigest, Status: deadletter.GroupOpen,
			Count: 1284,
		},
		{ID: 388, Queue: "media-transcode", Reason: "maxlen", Status: deadletter.GroupOpen, Count: 203},
	}
	for i := range list {
		g := &list[i]
		g.Broker, g.VHost, g.FirstAt, g.LastAt = "main", "/", now.Add(-time.Duration(i*i+2)*time.Hour), now.Add(
			-time.Duration(i+1)*20*time.Second,
		)
		g.Spark = make([]int, 24)
		for hour := 24 - 3*(i+1); hour < 24; hour++ {
			g.Spark[hour] = (hour*7 + i) % 50
		}
	}
	return list
}

func sampleDecisions() []deadletter.Decided {
	return []deadletter.Decided{
		{
			ID:      13,
			Kind:    "resolved",
			Detail:  "in version 2026.11.20-2",
			By:      "local",
			At:      now.Add(-time.Minute),
			Groups:  []deadletter.GroupID{411},
			Skipped: []deadletter.Skipped{{Group: 376, Why: "is resolved already"}},
		},
		{
			ID:       12,
			Kind:     "snoozed",
			Detail:   "until 2026-11-21 09:14 UTC",
			By:       "ana",
			At:       now.Add(-time.Hour),
			Groups:   []deadletter.GroupID{402, 409},
			UndoneAt: now,
		},
	}
}

func sampleTriage(tab TriageTab) TriagePage {
	p := TriagePage{
		Shell:      sampleShell("Triage", SectionTriage, TriageURL(tab, "", "")),
		Tab:        tab,
		DigestSize: 5,
		Rows:       sampleTriaged(),
		People:     []string{"local", "Lena Sato", "jonas.ode"},
	}
	p.Groups = deadletter.GroupCounts{Inbox: 5, Letters: 1896, Mine: 1, Quiet: 5, Snoozed: 2, Resolved: 41}
	return p
}

func sampleInbox() TriagePage {
	p := sampleTriage(TriageInbox)
	d := sampleDecisions()[0]
	p.Done, p.Next = &Done{Decision: d.ID, Text: DecidedWords(d)}, "x"
	sending, watched := sampleOperation(
		deadletter.OperationRunning, deadletter.VerbRequeue,
	).Operation, sampleOperation(deadletter.OperationPaused, deadletter.VerbDiscard).Operation
	p.WorkedOn = map[deadletter.GroupID]deadletter.Operation{418: sending, 402: watched}
	peek := sampleGroup()
	peek.Page, peek.Whole, peek.Newest = false, false, nil
	p.Peek = &peek
	return p
}

func sampleGroup() GroupView {
	deploy := deadletter.Deploy{
		ID: 1, At: now.Add(-2*time.Hour - 2*time.Minute), Service: "notifications", Version: "2026.11.20-1",
		Link: "https://ci.example.com/4711",
	}
	op := sampleOperation(deadletter.OperationDone, deadletter.VerbRequeue).Operation
	g := GroupView{
		Page: true, Now: now, People: []string{"local", "Lena Sato"}, Morning: now.Truncate(24 * time.Hour).Add(32*time.Hour + 30*time.Minute),
		QueueLink: "/letters?q=queue%3Aemail-queue",
		Error:     `TemplateMissing: template "welcome_v3" not found`, Latest: sampleLetters().Rows[:3],
	}
	g.Group = deadletter.Group{
		GroupRow:   sampleTriaged()[0],
		Letters:    map[deadletter.State]int{deadletter.StateDead: 312, deadletter.StateScheduled: 46},
		Rules:      []string{"email"},
		Merged:     sampleTriaged()[3:4],
		Operations: []deadletter.Operation{op},
		Deploys:    []deadletter.Deploy{deploy},
		Suspect:    &deploy,
		History: []deadletter.Event{
			{Kind: "assigned", Actor: "ana", Detail: "to Priya Nair", At: now.Add(-time.Minute)},
		},
	}
	g.Failing = true
	g.Chosen, g.Ticket, g.Note = true, "https://tickets.example.com/118", "the template was renamed\nby the campaign of November"
	g.NoteBy = "ana"
	g.Shared, g.Sampled, g.Whole, g.Quiet = []deadletter.Shared{
		{Field: "template.name", Value: "welcome_v3", Letters: 60, Values: 1},
		{Field: "header.x-error-class", Value: "TemplateMissing", Letters: 60, Values: 1},
		{Field: "template.locale", Value: "en-GB", Letters: 38, Values: 4},
	}, 60, true, 42
	g.Headline = &deadletter.Headline{
		Path: "tenant_id", Value: "48213", Share: 1, Elsewhere: .3, Sampled: 312, Others: 500,
	}
	g.Different = []deadletter.Different{
		{Field: "tenant", Value: "acme", Here: 58, Otherwise: 1},
		{Field: "coupon_code", Here: 57, Otherwise: 1},
	}
	newest := sampleLetter(TabDecoded)
	newest.Decoded.Bytes = nil
	g.Newest, g.Alike = &newest, sampleTriaged()[1:2]
	return g
}

func sampleDigest() TriagePage {
	p := sampleTriage(TriageDigest)
	p.Digest = &DigestView{
		Next:       now.Add(23 * time.Hour),
		Channels:   []string{"team", "mail"},
		Sent:       "2026-11-20",
		Decisions:  sampleDecisions(),
		Operations: sampleGroup().Operations,
	}
	p.Digest.Digest = deadletter.Digest{
		From: now.Add(-15 * time.Hour), To: now, Groups: 9, Letters: 661, New: 2, CameBack: 1, Recovered: 402, Paged: 2,
		More: 4,
	}
	p.Digest.Before.Groups, p.Digest.Before.Letters = 7, 540
	for i, g := range sampleTriaged() {
		line := deadletter.DigestLine{Group: g, Letters: 231 - 40*i}
		if i == 3 {
			line.Suggestion = "Discarded the last 3 times (O-118)"
		}
		p.Digest.Lines = append(p.Digest.Lines, line)
	}
	return p
}

// triagePages returns the tabs of Triage and the page of a group, in every state that looks
// different.
func triagePages() map[string]templ.Component {
	snoozed, resolved, zero, mistake, quiet := sampleTriage(TriageSnoozed), sampleTriage(
		TriageResolved,
	), sampleTriage(TriageInbox), sampleTriage(TriageInbox), sampleDigest()
	for i := range snoozed.Rows {
		snoozed.Rows[i].Status, snoozed.Rows[i].Snooze = deadletter.GroupSnoozed, deadletter.Snooze{
			Until: now.Add(time.Hour), After: 20, Queue: true, By: "ana",
		}
		resolved.Rows[i].Status, resolved.Rows[i].Resolved = deadletter.GroupResolved, deadletter.Resolution{
			At: now.Add(-time.Hour), By: "ana", Version: "2026.11.20-2",
		}
	}
	zero.Rows, zero.Groups, zero.Decisions = nil, deadletter.GroupCounts{}, sampleDecisions()
	zero.InRetry = sampleRetry(40)
	retrying := sampleTriage(TriageRetrying)
	retrying.InRetry = sampleRetry(240)
	for i := range retrying.Rows {
		g := &retrying.Rows[i]
		g.Count, g.Overdue, g.Waiting, g.Retrying = 0, 0, i*i*100, max(40, i*i*100)
		g.NextAt = now.Add(time.Duration(i+1) * time.Minute)
	}
	mistake.Query, mistake.Rows, mistake.QueryError = "colour:red", nil, &query.Error{
		Pos: 0, Want: "there is no field colour",
	}
	quiet.Digest.Digest = deadletter.Digest{From: now.Add(-15 * time.Hour), To: now, Recovered: 31}
	quiet.Digest.Channels, quiet.Digest.Operations, quiet.Digest.Decisions = nil, nil, nil
	put, merged := sampleGroup(), sampleGroup()
	put.Status, put.Snooze, put.History, put.GroupValues, put.Latest, put.Count = deadletter.GroupSnoozed, snoozed.Rows[0].Snooze, nil, deadletter.GroupValues{}, nil, 0
	merged.Head, merged.Merged = 402, nil
	still, back := sampleGroup(), sampleGroup()
	still.Failing, still.Count, still.Waiting, still.Fix = false, 0, 0, nil
	still.Letters = map[deadletter.State]int{deadletter.StateQuiet: 312}
	back.Status, back.Back = deadletter.GroupRegressed, sampleTriaged()[1].Back
	group := func(g GroupView) templ.Component {
		return Group(GroupPage{
			Shell: sampleShell(g.ID.String(), SectionTriage, GroupURL(g.ID)),
			Group: g,
		})
	}
	return map[string]templ.Component{
		"triage": Triage(sampleInbox()), "triage-mine": Triage(sampleTriage(TriageMine)),
		"triage-snoozed": Triage(snoozed), "triage-resolved": Triage(resolved), "triage-zero": Triage(zero),
		"triage-mistake": Triage(mistake), "triage-retrying": Triage(retrying),
		"triage-quiet": Triage(sampleTriage(TriageQuiet)),
		"digest":       Triage(sampleDigest()), "digest-quiet": Triage(quiet),
		"group": group(sampleGroup()), "group-snoozed": group(put), "group-merged": group(merged),
		"group-quiet": group(still), "group-back": group(back),
	}
}

// hostileTriage returns the pages of Triage. Every field that comes from a letter or from a person
// contains the text "bad".
func hostileTriage(shell Shell, bad string, n int, halted []deadletter.Operation) map[string]templ.Component {
	row := deadletter.GroupRow{
		ID:       1,
		Title:    bad,
		Broker:   bad,
		VHost:    bad,
		Queue:    bad,
		Type:     bad,
		Reason:   bad,
		Error:    bad,
		Status:   deadletter.GroupSnoozed,
		Severity: deadletter.Severity(bad[:min(n, 20)]),
		Chosen:   true,
		Owner:    bad[:min(n, 100)],
		Ticket:   "https://x/" + bad[:min(n, 490)],
		Note:     bad[:min(n, 4000)],
		Snooze:   deadletter.Snooze{Until: now, After: 1 << 24, By: bad},
		Resolved: deadletter.Resolution{At: now, By: bad, Version: bad},
		Count:    1 << 24,
		Waiting:  1 << 24,
		FirstAt:  now,
		LastAt:   now,
		Spark:    slices.Repeat([]int{1 << 24}, 24),
	}
	done := deadletter.Decided{
		ID:      1,
		Kind:    "moved",
		Detail:  bad,
		By:      bad,
		At:      now,
		Groups:  []deadletter.GroupID{1},
		Skipped: slicesRepeat(deadletter.Skipped{Group: 1, Why: bad}, 20),
	}
	op := deadletter.Operation{ID: 1, Action: deadletter.VerbRequeue, By: bad, Reason: bad, CreatedAt: now}
	deploy := deadletter.Deploy{At: now, Service: bad, Version: bad, Link: "javascript:alert(1)", By: bad}
	g := GroupView{
		Page: true, Now: now, QueueLink: LettersURL("queue:"+hostileTerm(bad), "", ""), Error: bad, People: []string{bad},
	}
	g.Shared, g.Sampled, g.Whole, g.Quiet, g.Different = slicesRepeat(
		deadletter.Shared{Field: bad, Value: bad, Letters: 1 << 24, Values: 1}, 8,
	), 60, true, 60, slicesRepeat(deadletter.Different{
		Field: bad, Value: bad, Here: 1 << 24,
	}, 12)
	g.Headline = &deadletter.Headline{Path: bad, Value: bad, Share: .999999, Elsewhere: .000001, Sampled: 1000, Others: 1}
	g.Newest = &LetterPage{
		Letter:  deadletter.Letter{Row: deadletter.Row{ID: sampleID(0), Error: bad, State: deadletter.StateDead}},
		Query:   hostileTerm(bad),
		Decoded: Decoded{Kind: bad, Type: bad, Title: bad, Note: bad, Nodes: hostileTree(bad, 2, 4)},
	}
	g.Latest = slicesRepeat(deadletter.Row{
		ID: sampleID(0), State: deadletter.State(bad), Queue: bad, Summary: bad, Error: bad,
	}, 5)
	g.Group = deadletter.Group{
		GroupRow:   row,
		Letters:    map[deadletter.State]int{deadletter.State(bad): 1},
		Rules:      slicesRepeat(bad, 5),
		Merged:     slicesRepeat(row, 20),
		Deploys:    slicesRepeat(deploy, 10),
		Suspect:    &deploy,
		Operations: slicesRepeat(op, 10),
		History:    slicesRepeat(deadletter.Event{Kind: bad, Actor: bad, Detail: bad, At: now}, 100),
	}
	peek := g
	peek.Page, peek.Whole = false, false
	p := TriagePage{
		Shell:  shell,
		Tab:    TriageInbox,
		Query:  bad[:min(n, 4096)],
		Rows:   slicesRepeat(row, 100),
		After:  bad[:min(n, 100)],
		Next:   bad[:min(n, 100)],
		People: []string{bad},
		Peek:   &peek,
		Halted: halted,
		Done:   &Done{Decision: 1, Text: DecidedWords(done)},
	}
	resolved, zero, mistake, digest := p, p, p, p
	resolved.Tab = TriageResolved
	zero.Rows, zero.Decisions = nil, slicesRepeat(done, 20)
	zero.InRetry = sampleRetry(1 << 24)
	zero.InRetry.Unconsumed = []string{bad, bad}
	mistake.Rows, mistake.QueryError = nil, &query.Error{Pos: 1, Want: bad}
	digest.Tab, digest.Digest = TriageDigest, &DigestView{
		Next: now, Channels: slicesRepeat(bad, 5), Sent: "2026-11-20", Decisions: slicesRepeat(done, 6),
		Operations: slicesRepeat(op, 6),
	}
	digest.Digest.Digest = deadletter.Digest{
		From: now, To: now, Groups: 50, Letters: 1 << 24,
		Lines: slicesRepeat(deadletter.DigestLine{Group: row, Letters: 1 << 24, Suggestion: bad}, 50),
	}
	head := g
	head.Head = 2
	return map[string]templ.Component{
		"triage": Triage(p), "triage-resolved": Triage(resolved), "triage-zero": Triage(zero),
		"triage-mistake": Triage(mistake), "digest": Triage(digest),
		"group":        Group(GroupPage{Shell: shell, Group: g, Done: p.Done}),
		"group-merged": Group(GroupPage{Shell: shell, Group: head}),
	}
}
