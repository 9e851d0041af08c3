package view

import (
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/a-h/templ"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/payload"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/internal/rules"
	"github.com/deadletteroffice/dlo/internal/topology"
)

func hostileHex(bad string) *Hex {
	return &Hex{
		Title: bad, Total: 1 << 40, Marked: payload.Range{From: 3, To: 4000},
		Hex: payload.Hex{Note: bad, Rows: slicesRepeat(payload.HexRow{
			Offset: "ffffffff", Hex: strings.Repeat("22 ", 16), ASCII: strings.Repeat(`"`, 16),
		}, 10_000)},
	}
}

// hostilePages returns pages in which every field from a letter or a person contains hostile text.
// The parameter n is the length of that text in bytes.
func hostilePages(n int) map[string]templ.Component {
	bad := strings.Repeat(evil, n/len(evil)+1)[:n]
	id := sampleID(0)
	shell := sampleShell(bad, SectionLetters, LettersURL(bad[:min(n, 200)], "", ""))
	shell.Actor, shell.Theme = bad, ParseTheme(bad)
	shell.Brokers = []deadletter.BrokerStatus{
		{
			Name:  bad,
			VHost: bad,
			Label: bad, Colour: deadletter.Colour(bad),
			Reached: true,
			Reason:  bad,
			Inboxes: []deadletter.InboxStatus{{Queue: bad}},
		},
		{Name: bad, Connected: true, Version: bad},
	}
	shell.Problems = []deadletter.Problem{{Title: bad, Text: bad, Cure: bad, Inbox: bad}}
	stranger := SignInPage{Name: bad, Next: bad, Code: bad, Error: bad}
	row := deadletter.Row{
		ID: id, State: deadletter.State(bad), WaitsIn: bad, Broker: bad, VHost: bad, Queue: bad, Reason: bad, Type: bad,
		Group: 1, Exchange: bad, RoutingKey: bad, Summary: bad, Error: bad, Why: bad,
		Severity: deadletter.Severity(bad),
	}
	letters := LettersPage{
		Shell:   shell,
		Query:   bad[:min(n, 4096)],
		Tokens:  []Token{{Text: bad, Not: true, Remove: LettersURL(bad[:min(n, 200)], "", "")}},
		Widen:   "/letters?q=",
		Total:   1,
		InStore: 1,
		Older:   bad[:min(n, 100)],
		Newer:   bad[:min(n, 100)],
	}
	for range 50 {
		letters.Rows = append(letters.Rows, row)
	}
	for _, f := range []string{"State", "Queue", "Type", "Reason", "Severity", "Group"} {
		letters.Facets = append(letters.Facets, Facet{
			Title: f, Values: slicesRepeat(FacetValue{Label: bad, Term: "queue:" + hostileTerm(bad), Count: 1}, 15),
			More: 3,
		})
	}
	letters.Views = slicesRepeat(deadletter.View{ID: 1, Name: bad, Query: "queue:x"}, 6)
	letters.Histogram = &Histogram{Histogram: sampleBars(48, time.Hour, func(i int) deadletter.Bar {
		return deadletter.Bar{Dead: 1 << 40, Waiting: i, Recovered: i, Discarded: 1}
	})}
	letters.All = All{Query: bad[:min(n, 4096)], Until: now, Typed: bad[:min(n, 4096)]}
	mistake := letters
	mistake.QueryError, mistake.Rows = &query.Error{Pos: 3, Want: bad}, nil
	noMatch := letters
	noMatch.Rows, noMatch.Newer = nil, ""
	first := letters
	first.FirstRun = &FirstRun{
		Setup: Setup{Broker: bad[:min(n, 200)], Exchange: bad, Inbox: bad, VHost: bad[:min(n, 200)]}, Unable: bad,
		Trial: &deadletter.Trial{
			State: deadletter.TrialFailed, Letter: id, Problem: bad, Cure: bad, Summary: bad, StartedAt: now,
			DecodedAt: now,
		},
	}

	table := deadletter.Table{
		bad[:min(n, 255)]: bad,
		"x-death": []any{
			deadletter.Table{
				"queue":        bad,
				"exchange":     bad,
				"reason":       bad,
				"count":        int64(1) << 62,
				"routing-keys": []any{bad, bad, bad, bad, bad},
			},
		},
		"nested": deadletter.Table{bad: []any{bad, []byte(bad)}},
	}
	props := deadletter.Properties{
		ContentType: bad, ContentEncoding: bad, Headers: table, CorrelationID: bad, ReplyTo: bad, Expiration: bad,
		MessageID: bad, Type: bad, UserID: bad, AppID: bad, Timestamp: now,
	}
	letter := LetterPage{
		Shell:      shell,
		Query:      bad[:min(n, 4096)],
		Newer:      id,
		Older:      id,
		GroupTitle: bad,
		ErrorFrom:  []Span{{Text: line(bad, 100)}, {Text: line(bad, 100), Code: true}},
		Letter: deadletter.Letter{
			Row: deadletter.Row{
				ID:         id,
				State:      deadletter.State(bad),
				Broker:     bad,
				VHost:      bad,
				Queue:      bad,
				Exchange:   bad,
				RoutingKey: bad,
				Reason:     bad,
				Type:       bad,
				Group:      1,
				Severity:   deadletter.SeverityPage,
				Error:      bad,
				Why:        bad,
				WaitsIn:    bad,
			},
			Inbox:      bad,
			Properties: props,
			Arrived: deadletter.Properties{
				AppID:   bad,
				Headers: deadletter.Table{"x-death": table["x-death"], "other": bad},
			},
			ArrivedBy: deadletter.Route{Exchange: bad, RoutingKey: bad},
			Rule:      bad,
			Twin:      id,
			Annotation: &deadletter.Failure{
				By: bad, Type: bad, Message: bad, Stack: bad, Service: bad, Version: bad, FailedAt: now,
			},
			Revised: &deadletter.Revision{Number: 1, By: bad, Changes: bad, Reason: bad},
		},
		EditDiff: []payload.DiffLine{{Op: payload.DiffOp(bad), Spans: []payload.Span{{Text: bad, Changed: true}, {Text: bad}}}},
		Decoded: Decoded{
			Type:  bad,
			Note:  bad,
			Title: bad,
			Nodes: hostileTree(bad, 3, 12),
			Bytes: hostileHex(bad),
			Text:  bad,
			Notes: []string{bad, bad},
			From:  bad,
			Kind:  bad,
		},
		JSON: JSON{Text: `{"` + bad + `": "` + bad + bad + `"}`, Notes: []string{bad}},
		Raw: Raw{
			Layers: []RawLayer{{Name: line(bad, 30), Link: "/x"}},
			Hex:    *hostileHex(bad),
			Steps:  []payload.Step{{OK: true, Text: bad}, {OK: false, Text: bad}},
		},
	}
	typ := "a." + strings.Repeat("x", min(n, 190))
	pick := deadletter.Pick{ID: 1, Binding: deadletter.Binding{Queue: bad, Key: bad, Path: bad, Type: typ}, By: bad, Reason: bad, At: now}
	letter.Types = TypeChoice{
		May:     true,
		Picks:   []deadletter.Pick{pick, pick},
		Members: slicesRepeat(line(bad, 250), 5),
		Typed:   bad[:min(n, 500)],
		For:     bad,
		Reason:  bad[:min(n, 500)],
		Problem: bad,
	}
	letter.Types.Names, letter.Types.Unnamed = NamesOffered(slicesRepeat(typ, 500))
	for range 300 {
		letter.Attempts = append(letter.Attempts, deadletter.Attempt{
			Letter: id, Queue: bad, Outcome: deadletter.OutcomeKind(bad), Detail: bad, Sends: 2, At: now, WaitsIn: bad,
			WaitUntil: now, Back: &deadletter.Return{At: now, Queue: bad, Reason: bad, Copies: 1},
		})
		letter.History = append(letter.History, deadletter.Event{
			Letter: id, Kind: bad, Actor: bad, Detail: bad, At: now,
		})
		letter.Candidates = append(letter.Candidates, payload.Match{Type: line(bad, 200), Why: []string{bad}})
	}
	confirm := ConfirmPage{
		Shell: shell,
		Plan: deadletter.Plan{
			Action: deadletter.VerbRequeue, Total: 1, Eligible: 1, Warnings: []string{bad, bad},
		},
		Problem:  bad,
		Key:      "k",
		Return:   "/letters",
		Restore:  line(bad, 100),
		IDs:      []deadletter.ID{id},
		Mistakes: map[string]string{"rate": bad, "to": bad, "reason": bad},
	}
	confirm.Typed = url.Values{
		"canary": {bad[:min(n, 50)]}, "rate": {bad[:min(n, 50)]}, "to": {bad[:min(n, 255)]},
		"reason": {bad[:min(n, 500)]}, "count": {bad[:min(n, 50)]},
	}
	confirmAll := confirm
	confirmAll.IDs, confirmAll.Query, confirmAll.Until = nil, bad[:min(n, 4096)], now
	operation := OperationPage{
		Shell: shell, RateTyped: bad[:min(n, 50)], RateMistake: bad, Result: deadletter.ResultFailed,
		Operation: deadletter.Operation{
			ID: 1, Action: deadletter.VerbRequeue, State: deadletter.OperationState(bad), By: bad,
			Through: deadletter.Way(bad), Reason: bad, Key: bad, Query: bad, To: bad, Why: bad,
		},
	}
	operation.Tried = &Tried{
		Letter: deadletter.OperationLetter{Letter: id, Queue: bad, Result: deadletter.ResultCameBack, Error: bad},
		Attempt: &deadletter.Attempt{
			Queue: bad, Outcome: deadletter.OutcomeCameBack, Detail: bad, At: now, ClosedAt: now,
			Back: &deadletter.Return{At: now, Queue: bad, Reason: bad},
		},
	}
	audit := AuditPage{Shell: shell, Query: bad[:min(n, 4096)]}
	for range 50 {
		audit.Entries = append(audit.Entries, AuditRow{Act: deadletter.Act{
			At:        now,
			Kind:      bad,
			Actor:     bad,
			Detail:    bad,
			Operation: 1,
			Through:   deadletter.Way(bad),
			Query:     bad,
			Total:     1,
			Asked:     2,
			Done:      1,
			Targets: []deadletter.Target{
				{Kind: deadletter.TargetLetter, Name: string(id)},
				{Kind: deadletter.TargetKind(bad), Name: bad, Title: bad},
			},
		}, Links: []string{LetterURL(id, "", ""), ""}})
	}
	overview := OverviewPage{
		Shell: shell, Range: "24h", Disk: bad,
		Groups: slicesRepeat(deadletter.GroupRow{
			ID:       1,
			Title:    bad,
			Queue:    bad,
			Severity: deadletter.Severity(bad),
			Count:    1,
			LastAt:   now,
			Spark:    []int{1, 2},
		}, 10),
	}
	overview.Arrivals = letters.Histogram.Histogram
	stopped := operation.Operation
	stopped.State, stopped.HaltedAt = deadletter.OperationStopped, now
	overview.Halted = slicesRepeat(stopped, haltedShown+2)
	rulesPage := RulesPage{
		Shell:    shell,
		Set:      &rules.Set{Default: rules.Rule{Name: bad[:min(n, 100)]}},
		Form:     url.Values{"queue": {bad[:min(n, 255)]}, "to": {bad[:min(n, 255)]}, "reason": {bad[:min(n, 500)]}},
		Mistakes: map[string]string{"to": bad, "q": bad},
		Apply:    bad[:min(n, 4096)],
	}
	rulesPage.Brokers = []deadletter.BrokerStatus{
		{Name: line(bad, 100), VHost: line(bad, 100), Connected: true}, {Name: "main", VHost: "/", Connected: true},
	}
	rulesPage.Overrides = slicesRepeat(deadletter.Override{
		ID: 1, Broker: bad, VHost: bad, Queue: bad, To: bad, By: bad, Reason: bad,
	}, 50)
	name, held := bad[:min(n, 255)], deadletter.Guard{
		Origin: deadletter.Origin{Queue: bad},
		State:  deadletter.GuardPaused,
		By:     bad,
		Why:    bad[:min(n, 500)],
	}
	group := held
	group.Group, group.Title = 1, bad
	queues := QueuesPage{
		Shell: shell, Several: true, Problem: bad,
	}
	connection := ConnectionPage{Shell: shell, Inboxes: slicesRepeat(deadletter.Inbox{
		Origin: deadletter.Origin{Broker: bad, VHost: bad, Queue: bad}, Why: bad, Note: bad,
	}, 5)}
	queues.Looks = slicesRepeat(topology.Report{Broker: bad, Failed: bad, Gaps: []topology.Gap{{What: bad}}}, 3)
	planned := topology.Planned{
		Policy:  topology.Policy{Name: bad[:min(n, 100)], Pattern: bad[:min(n, 100)]},
		Queues:  slicesRepeat(name, 3),
		Hides:   bad,
		Changes: slicesRepeat(topology.KeyChange{Key: bad, After: bad}, 3),
	}
	queues.Faults = slicesRepeat(Fault{
		Same: slicesRepeat(topology.Finding{Title: bad, Broker: bad, Loses: bad, Why: bad, Cure: bad}, maxFaultTitles+1),
		Plan: topology.Plan{
			Policies: slicesRepeat(planned, 2),
			Drops:    slicesRepeat(topology.Drop{Queue: name, Limit: bad, PerDay: new(int64(7))}, 9),
			Rule:     bad[:min(n, maxRule)],
		},
		Sum: "1a2b3c4d5e6f7a8b",
	}, MaxFaults)
	queues.Adopted = slicesRepeat(topology.Adopted{
		ID: 1, Broker: name, VHost: name, Policy: topology.Policy{Name: bad}, Queues: slicesRepeat(name, 20), By: bad,
	}, 3)
	watched := WatchedQueue{
		Origin: deadletter.Origin{Broker: "main", VHost: name, Queue: name},
		Described: topology.Described{
			Kind: bad, Unacked: topology.Figure{N: 1 << 40, Known: true}, Published: 1e9, Policy: bad,
			Route: topology.Route{
				Known: true, Judged: true, Set: true, Exchange: name, Key: name, Fixed: true, From: bad,
				Queues: slicesRepeat(name, 5), More: 9, Lost: bad, Guarantee: bad,
			},
		},
		Rule: bad,
		State: deadletter.Queue{
			Origin:    deadletter.Origin{Broker: "main", VHost: "/", Queue: name},
			Scheduled: 1,
			Dead:      1,
			Held:      1,
			Retries:   held,
			Groups:    []deadletter.Guard{group},
		},
	}
	queues.Watched = WatchedQueues{
		Queues: slicesRepeat(watched, 30), Total: 90, From: 30, PageSize: 30, Filter: name, Only: OnlyLosing,
		Own: 7, ShowOwn: true,
	}
	queues.Watched.Queues[0].State.Retries.State = deadletter.GuardTripped
	queues.Watched.Queues[1].State.Retries.State = deadletter.GuardState(bad)
	queue := QueuePage{
		Shell: shell, Queue: watched, Several: true, Faults: queues.Faults[:3],
		Groups: slicesRepeat(deadletter.GroupRow{
			ID: 1, Title: bad, Queue: bad, Error: bad, Severity: deadletter.Severity(bad),
		}, 10),
		More: true, Letters: "/letters", Triage: "/triage", Audit: "/audit",
		Past: audit.Entries[:min(10, len(audit.Entries))],
	}
	ofGroup := letters
	ofGroup.Retries = &GroupGuard{Group: 1, Queue: held}
	condition := rules.Condition{Field: bad, Want: bad}
	many := rulesPage // the file contains nothing hostile, but reaches every limit
	many.Overrides, many.Chosen = nil, 3
	many.Set = &rules.Set{File: bad, Rules: slicesRepeat(rules.Rule{
		Name: bad, Severity: deadletter.Severity(bad), YAML: bad,
		Match: rules.Match{Header: slicesRepeat(rules.Named{Name: bad, Want: rules.Patterns{bad}}, 20)},
	}, 60)}
	rulesPage.Guards = slicesRepeat(deadletter.Guard{
		Origin: deadletter.Origin{Broker: bad, VHost: bad, Queue: bad},
		Group:  1,
		Title:  bad,
		State:  deadletter.GuardState(bad),
		Why:    bad,
		By:     bad,
		Since:  now,
	}, 60)
	decided := rules.Outcome{
		State: deadletter.State(bad), Action: deadletter.RuleOutcome(bad), Rule: bad,
		Severity: deadletter.Severity(bad), Delays: bad,
	}
	many.WhatIf = &rules.WhatIf{
		Matching: 1 << 40, Looked: 1, Late: 1, Left: 1, Notes: []string{bad},
		Fates: slicesRepeat(rules.Fate{
			Was:      decided,
			Would:    decided,
			Letters:  1 << 40,
			Examples: []deadletter.ID{id, id, id},
			Query:    "state:dead queue:" + hostileTerm(bad),
		}, 60),
	}
	written := many
	written.Set = &rules.Set{Rules: many.Set.Rules[:2]}
	// the text of the reader is shown again in full
	written.Try = TryForm{
		Text:  deadletter.VisibleLines(bad[:min(n, 4096)]),
		Query: bad[:min(n, 4096)],
	}
	written.Mistakes = map[string]string{"try-q": bad}
	misread := written
	misread.WhatIf, misread.Try.Mistakes = nil, slicesRepeat(deadletter.Mistake{Line: 1, Column: 1 << 40, Text: bad}, 50)
	letter.Explained, letter.Steps = true, append(slicesRepeat(rules.Step{
		Rule: bad, Clauses: slicesRepeat(rules.Clause{Condition: condition}, 3),
	}, 60), rules.Step{Rule: bad, Applies: true})
	for range 100 {
		confirm.Queues = append(confirm.Queues, deadletter.PlanQueue{
			Broker: bad, VHost: bad, Queue: bad, Warning: line(bad, 100),
		})
		operation.Operation.Queues = append(operation.Operation.Queues, deadletter.OperationQueue{
			Broker: bad, VHost: bad, Queue: bad,
		})
	}
	apply := ApplyPage{
		Shell:    shell,
		Query:    bad[:min(n, 4096)],
		Restore:  line(bad, 100),
		Reason:   bad[:min(n, 500)],
		Typed:    bad[:min(n, 50)],
		Mistakes: map[string]string{"reason": bad, "count": bad},
		Problem:  bad,
		Applied: rules.Applied{
			DryRun: true,
			Looked: 1 << 40,
			Changes: slicesRepeat(rules.AppliedChange{
				From:     rules.Decided{Rule: bad, Outcome: deadletter.RuleRetry},
				To:       rules.Decided{Rule: bad, Outcome: deadletter.RuleDiscard},
				Letters:  1 << 40,
				Examples: []deadletter.ID{id, id, id},
			}, 200),
			Left: map[string]int{bad: 1},
		},
	}
	confirm.Skipped = []deadletter.PlanSkip{{Reason: bad, Letters: 1, Examples: []deadletter.ID{id}}}
	operation.Operation.Queues[0].VHost = "other"
	for range 25 {
		operation.Letters = append(operation.Letters, deadletter.OperationLetter{
			Letter: id, Queue: bad, Result: deadletter.Result(bad), Reason: bad,
		})
		operation.Letters = append(operation.Letters, deadletter.OperationLetter{
			Letter: id, Queue: bad, Result: deadletter.ResultCameBack, Error: bad, Group: 1, Was: 2,
			State: deadletter.State(bad),
		})
	}
	operation.BackGroups = slicesRepeat(deadletter.BackGroup{Group: 1, Title: bad, Letters: 2}, 10)
	operation.Groups = slicesRepeat(deadletter.GroupRow{ID: 1, Title: bad, Queue: bad, Count: 1}, NextGroups)
	operation.From = LettersURL(bad[:min(n, MaxFrom/3)], "", "")
	all := map[string]templ.Component{
		"letters": Letters(letters), "letters-mistake": Letters(mistake), "letters-no-match": Letters(noMatch),
		"letters-first-run": Letters(first),
		"glossary":          Glossary(shell),
		"sign-in":           SignIn(stranger), "sign-in-again": SignInAgain(stranger), "welcome": Welcome(stranger),
		"account": Account(AccountPage{
			Shell:    shell,
			Grants:   []string{bad},
			Sessions: []deadletter.Session{{User: bad, Address: bad, Agent: bad}},
			Error:    bad,
		}),
		"access": Access(AccessPage{
			Shell:  shell,
			Roles:  deadletter.RoleNames(),
			Secret: &NewSecret{Name: bad, Text: bad},
			Forms: map[string]url.Values{
				"user": {
					"name": {bad}, "role": {bad}, "queues": {bad[:min(n, 1000)]}, "vhosts": {bad[:min(n, 500)]},
					"brokers": {bad[:min(n, 500)]},
				},
				"token": {"days": {bad}},
			},
			Mistakes: map[string]string{"user": bad},
			Users: []deadletter.User{
				{Name: bad, Grant: deadletter.Grant{Places: deadletter.Places{Queues: []string{bad}}}, CreatedBy: bad},
			},
			Tokens: []deadletter.APIToken{
				{
					Name:      bad,
					Grant:     deadletter.Grant{Places: deadletter.Places{Queues: []string{bad}}},
					CreatedBy: bad,
					UsedAt:    now,
					UsedFrom:  bad,
				},
			},
		}),
		"overview": Overview(overview), "audit": Audit(audit), "rules": Rules(rulesPage), "rules-many": Rules(many),
		"rules-written": Rules(written), "rules-misread": Rules(misread), "queues": Queues(queues), "connection": Connection(connection),
		"queue": Queue(queue), "letters-group": Letters(ofGroup), "confirm-all": Confirm(confirmAll),
		"confirm": Confirm(confirm), "apply": Apply(apply), "operation": Operation(operation),
		"operations": Operations(OperationsPage{Shell: shell, Operations: []deadletter.Operation{operation.Operation}}),
		"error":      Error(ErrorPage{Shell: shell, Status: 500, Detail: bad, Name: bad}),
	}
	all["settings"] = Settings(SettingsPage{
		Shell: shell, Set: many.Set, Rule: &many.Set.Rules[0], Problem: bad, WhatIf: many.WhatIf,
		Queue: deadletter.Origin{Broker: "main", VHost: "/", Queue: bad[:min(n, 255)]},
		Form: url.Values{
			"delays": {line(bad, 1000)}, "notify": slicesRepeat(line(bad, 100), 20), "fields": {bad[:min(n, 4096)]},
		},
		Mistakes: map[string]string{
			"delays": bad, "queue": bad, "severity": bad, "notify": bad, "fields": bad, "rule": bad,
		},
		Change: &deadletter.SettingChange{
			File: bad, Changes: bad, YAML: bad, Place: bad, Unsaved: bad,
		},
		Diff: slicesRepeat(payload.DiffLine{Op: payload.Added, Spans: []payload.Span{{Text: bad, Changed: true}}}, 3),
	})
	maps.Copy(all, hostileSchemas(shell, bad, n))
	maps.Copy(all, hostileTriage(shell, bad, n, overview.Halted))
	field := EditField{
		Name: line(bad, 100), Label: line(bad, 100), Value: line(bad, 100), Kind: line(bad, 20), Mistake: bad,
	}
	edit := EditPage{
		Shell:      shell,
		Letter:     id,
		Query:      bad[:min(n, 4096)],
		Group:      1,
		GroupTitle: bad,
		Others:     1 << 40,
		Queue:      bad,
		Type:       bad,
		Syntax:     "JSON",
		Text:       line(bad, 3000),
		Wrapped:    bad,
		Masked:     true,
		Newest:     1,
		Problem:    bad,
		Mistake:    &payload.EditError{Line: 1, Column: 1 << 40, Message: bad},
		Diff:       slicesRepeat(payload.DiffLine{Op: payload.DiffOp(bad), Spans: []payload.Span{{Text: bad, Changed: true}, {Text: bad}}}, 10),
		Checks:     slicesRepeat(payload.Check{Text: bad}, 20),
		Checked:    true,
		Properties: slicesRepeat(field, 8),
		Headers:    slicesRepeat(field, 30),
		Whole:      slicesRepeat(WholeHeader{Name: bad, Kind: line(bad, 20), Size: 1 << 40, Cuts: true}, 30),
		More:       1 << 40,
		Reason:     bad[:min(n, 500)],
		Mistakes:   map[string]string{"reason": bad, "headers": bad},
	}
	all["edit"] = Edit(edit)
	scheduled := letter
	scheduled.Tab, scheduled.Letter.State, scheduled.Letter.DueAt = TabHistory, deadletter.StateScheduled, now
	all["letter-scheduled"] = Letter(scheduled)
	byHand := ByHandPage{
		Shell: shell, Letter: id, Query: letter.Query, Form: FormCurl,
		Copy: Curl(deadletter.Origin{VHost: "/", Queue: "q"}, deadletter.Properties{
			Headers: deadletter.Table{bad[:min(n, 200)]: nil, "bad": bad},
		}, nil),
	}
	all["by-hand"] = ByHand(byHand)
	for _, tab := range Tabs {
		letter.Tab = tab
		all["letter-"+string(tab)] = Letter(letter)
		if tab == TabDecoded {
			all["letter-peek"] = LetterPeek(letter)
		}
	}
	return all
}

// TestEveryPageHasItsSamples checks that every exported template has a sample page and a hostile
// page.
func TestEveryPageHasItsSamples(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.templ")
	if err != nil {
		t.Fatal(err)
	}
	exported, words := regexp.MustCompile(`(?m)^templ ([A-Z]\w*)`), regexp.MustCompile(`([a-z])([A-Z])`)
	found := 0
	for _, file := range files {
		code, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range exported.FindAllSubmatch(code, -1) {
			found++
			name := strings.ToLower(words.ReplaceAllString(string(m[1]), "$1-$2"))
			for list, all := range map[string]map[string]templ.Component{
				"pages": pages(), "hostilePages": hostilePages(100),
			} {
				if !slices.ContainsFunc(
					slices.Collect(maps.Keys(all)),
					func(n string) bool { return n == name || strings.HasPrefix(n, name+"-") },
				) {
					t.Errorf("%s has no sample %s", list, name)
				}
			}
		}
	}
	if found == 0 {
		t.Error("no page was found")
	}
}

// hostileTerm returns a value of the query language, in which invisible characters are escaped.
func hostileTerm(bad string) string { return line(bad, 60) }

func hostileTree(bad string, depth, width int) []payload.Node {
	var nodes []payload.Node
	for i := range width {
		n := payload.Node{
			Number: int32(i + 1), Name: bad, Value: bad, Kind: payload.String, Note: bad, Type: bad, Unknown: i == 1,
		}
		if depth > 0 {
			n.Children = hostileTree(bad, depth-1, width)
		}
		nodes = append(nodes, n)
	}
	return nodes
}

func slicesRepeat[T any](v T, n int) []T {
	out := make([]T, n)
	for i := range out {
		out[i] = v
	}
	return out
}
