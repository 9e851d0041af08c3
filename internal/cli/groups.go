package cli

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

type groupsCmd struct {
	List    groupsListCmd    `cmd:"" help:"List failure groups: those whose letters need people, the most urgent first."`
	Show    groupsShowCmd    `cmd:"" help:"Show all that is known about a group: what its letters share, and what was done with it."`
	Requeue groupsRequeueCmd `cmd:"" help:"Requeue the dead and held letters of groups."`
	Discard groupsDiscardCmd `cmd:"" help:"Discard the dead and held letters of groups."`

	Snooze   groupsSnoozeCmd   `cmd:"" help:"Snooze groups: until a time, until more letters die, or until another queue has the same error."`
	Resolve  groupsResolveCmd  `cmd:"" help:"Resolve groups. A resolved group reopens as regressed when another letter of it dies."`
	Reopen   groupsReopenCmd   `cmd:"" help:"Reopen groups that are snoozed or resolved."`
	Assign   groupsAssignCmd   `cmd:"" help:"Give groups an owner."`
	Note     groupsNoteCmd     `cmd:"" help:"Add a note to a group, or a ticket."`
	Severity groupsSeverityCmd `cmd:"" help:"Set the severity of groups."`
	Merge    groupsMergeCmd    `cmd:"" help:"Merge groups whose letters fail for one cause."`
	Split    groupsSplitCmd    `cmd:"" help:"Split off a group that was merged into another."`
	Undo     groupsUndoCmd     `cmd:"" help:"Undo a decision on groups."`
	Pause    groupsPauseCmd    `cmd:"" help:"Pause the automatic retries of a group; what people requeue is still sent."`
	Resume   groupsResumeCmd   `cmd:"" help:"Resume the automatic retries of a group."`
}

type groupsListCmd struct {
	answerFlags
	Query string `name:"query" short:"q" help:"Which groups, for example 'severity:page queue:billing.*'."`
	Tab   string `name:"tab" enum:"inbox,snoozed,resolved,all" default:"inbox" help:"Which of them: inbox, snoozed, resolved or all."`
	Order string `name:"order" enum:"urgency,letters,last,first" default:"urgency" help:"What comes first: urgency, letters, last (seen) or first (seen)."`
	Limit int    `name:"limit" help:"How many at most; 0 = all." default:"100"`
}

func (c groupsListCmd) Run(p *Program) error {
	order := c.Order
	if order == string(deadletter.ByUrgency) {
		order = "" // the server's default: by urgency, or for resolved groups by when they were resolved
	}
	list := listing[api.Group]{
		path:   "/groups",
		key:    "groups",
		limit:  c.Limit,
		values: url.Values{"q": {c.Query}, "tab": {c.Tab}, "order": {order}},
		head: []string{
			"GROUP", "SEVERITY", "STATUS", "DEAD", "WAITING", "OVERDUE", "LAST SEEN", "QUEUE", "REASON", "OWNER",
			"WHAT",
		},
		none: "no group matches",
	}
	return list.run(p, c.answerFlags, func(g api.Group) []string {
		return []string{
			g.ID.String(), g.Severity, g.Status, strconv.Itoa(g.Count), strconv.Itoa(g.Waiting), strconv.Itoa(g.Overdue),
			ago(g.LastSeen, time.Now()), g.Queue, g.Reason, g.Owner, deadletter.Cut(g.Title, 100),
		}
	})
}

type groupsShowCmd struct {
	answerFlags
	ID string `arg:"" name:"group" help:"The group, for example G-418."`
}

func (c groupsShowCmd) Run(p *Program) error {
	var g api.GroupDetail
	if printed, err := c.fetch(p, http.MethodGet, "/groups/"+url.PathEscape(c.ID), nil, &g); printed || err != nil {
		return err
	}
	now := time.Now()
	var rows [][]string
	say := func(name, value string) {
		if value != "" {
			rows = append(rows, []string{name, value})
		}
	}
	say("group", g.ID.String()+"  "+g.Title)
	say("queue", g.Queue)
	say("type", g.Type)
	say("reason", g.Reason)
	say("severity", g.Severity)
	say("status", g.Status)
	say("merged into", g.MergedInto.String())
	say("owner", g.Owner)
	say("ticket", g.Ticket)
	note := g.Note
	if note != "" && g.NoteBy != nil {
		note += " (by " + *g.NoteBy + ")"
	}
	say("note", note)
	var letters []string
	for _, s := range deadletter.States {
		if n := g.Letters[s]; n > 0 {
			letters = append(letters, fmt.Sprintf("%d %s", n, s))
		}
	}
	say("letters", strings.Join(letters, ", "))
	say("seen", "first "+ago(g.FirstSeen, now)+", last "+ago(g.LastSeen, now))
	if g.Suspect != nil {
		say("deploy before", g.Suspect.Service+" "+g.Suspect.Version+", "+ago(g.Suspect.At, now))
	}
	for _, s := range g.Shared {
		say("shared", fmt.Sprintf("%s = %s in %d of %d", s.Field, s.Value, s.Letters, g.Sampled))
	}
	for _, d := range g.Different {
		say(
			"different",
			fmt.Sprintf(
				"%s in %d of %d here, in %d of %d that stayed quiet", d.Field+" = "+cmp.Or(d.Value, "(any value)"),
				d.Here, g.Sampled, d.Otherwise, g.Quiet,
			),
		)
	}
	for _, o := range g.Operations {
		say("operation", o.ID.String()+" "+string(o.Action)+", "+string(o.State))
	}
	for _, e := range g.History {
		say("history", strings.TrimSpace(ago(e.At, now)+" "+e.Actor+": "+e.Kind+" "+e.Detail))
	}
	return printTable(p.Stdout, []string{"FIELD", "VALUE"}, rows)
}

// groupsFlags are the arguments and flags that select groups.
type groupsFlags struct {
	answerFlags
	IDs []string `arg:"" name:"groups" help:"The groups, for example G-418 G-397."`
}

// decisionWords returns a sentence that describes a decision and names the command that undoes it.
func decisionWords(d deadletter.Decided) string {
	text := strings.TrimSpace(
		d.Kind+" "+joined(d.Groups)+" "+d.Detail,
	) + fmt.Sprintf("; dlo groups undo %d undoes it", d.ID)
	for _, s := range d.Skipped {
		text += fmt.Sprintf("; %s %s", s.Group, s.Why)
	}
	return text
}

func (c groupsFlags) decide(p *Program, change api.Change) error {
	if _, err := parsedGroups(c.IDs); err != nil {
		return err
	}
	return add(p, c.answerFlags, "/groups/decisions", api.GroupsChange{Change: change, Groups: c.IDs}, decisionWords)
}

// parsedGroups parses a list of group names, such as G-418.
func parsedGroups(names []string) ([]deadletter.GroupID, error) {
	var ids []deadletter.GroupID
	for _, name := range names {
		id, err := deadletter.ParseGroupID(name)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errUsage, err)
		}
		ids = append(ids, id)
	}
	return ids, nil
}

type groupActFlags struct {
	groupsFlags
	Reason string `name:"reason" help:"Why; kept in the history."`
	DryRun bool   `name:"dry-run" help:"Show what would happen, and do nothing."`
	Yes    bool   `name:"yes" short:"y" help:"Do not ask."`
	Watch  bool   `name:"watch" help:"Wait until the verdict on every letter is known, and print it."`
}

// lettersOfGroups returns flags that select every dead or held letter of the groups.
func (c groupActFlags) lettersOfGroups() (actFlags, error) {
	ids, err := parsedGroups(c.IDs)
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = id.String()
	}
	q := "state:dead,held group:" + strings.Join(names, ",")
	return actFlags{
		answerFlags: c.answerFlags,
		Query:       &q,
		Reason:      c.Reason,
		DryRun:      c.DryRun,
		Yes:         c.Yes,
		Watch:       c.Watch,
	}, err
}

type groupsRequeueCmd struct {
	groupActFlags
	paceFlags
}

func (c groupsRequeueCmd) Run(p *Program) error {
	flags, err := c.lettersOfGroups()
	if err != nil {
		return err
	}
	return lettersRequeueCmd{actFlags: flags, paceFlags: c.paceFlags}.Run(p)
}

type groupsDiscardCmd struct{ groupActFlags }

func (c groupsDiscardCmd) Run(p *Program) error {
	flags, err := c.lettersOfGroups()
	if err != nil {
		return err
	}
	return lettersDiscardCmd{flags}.Run(p)
}

type groupsSnoozeCmd struct {
	groupsFlags
	For   duration `name:"for" help:"How long, for example 4h or 7d; at most 90d."`
	Until string   `name:"until" help:"Until a time, for example 2026-11-22T08:30:00Z."`
	After int      `name:"after" help:"Or until this many more letters die."`
	Queue bool     `name:"another-queue" help:"Or until another queue has the same error."`
}

func (c groupsSnoozeCmd) Run(p *Program) error {
	snooze := api.SnoozeChange{After: c.After, Queue: c.Queue}
	switch {
	case c.For != 0 && c.Until != "":
		return fmt.Errorf("%w: --for or --until, not both", errUsage)
	case c.For == 0 && c.Until == "" && c.After == 0 && !c.Queue:
		return fmt.Errorf("%w: say until when, with --for, --until, --after or --another-queue", errUsage)
	case c.For != 0:
		snooze.For = time.Duration(c.For).String()
	case c.Until != "":
		at, err := time.Parse(time.RFC3339, c.Until)
		if err != nil {
			return fmt.Errorf("%w: --until %q is not a time such as 2026-11-22T08:30:00Z", errUsage, c.Until)
		}
		snooze.Until = at
	}
	return c.decide(p, api.Change{Snooze: &snooze})
}

type groupsResolveCmd struct {
	groupsFlags
	In   string `name:"in" help:"The version of the consumer that fixes the cause; older versions may keep failing."`
	Note string `name:"note" help:"The cause, for the history."`
}

func (c groupsResolveCmd) Run(p *Program) error {
	return c.decide(p, api.Change{Resolve: &api.ResolveChange{Version: c.In}, Note: c.Note})
}

type groupsReopenCmd struct{ groupsFlags }

func (c groupsReopenCmd) Run(p *Program) error { return c.decide(p, api.Change{Reopen: true}) }

type groupsAssignCmd struct {
	groupsFlags
	To string `name:"to" required:"" help:"The owner; an empty text removes it."`
}

func (c groupsAssignCmd) Run(p *Program) error { return c.decide(p, api.Change{Owner: &c.To}) }

type groupsNoteCmd struct {
	answerFlags
	ID     string  `arg:"" name:"group" help:"The group, for example G-418."`
	Note   string  `arg:"" name:"note" optional:"" help:"The note."`
	Ticket *string `name:"ticket" help:"A link or a number; an empty text removes it."`
}

func (c groupsNoteCmd) Run(p *Program) error {
	if c.Ticket == nil && strings.TrimSpace(c.Note) == "" {
		return fmt.Errorf("%w: give the note, or --ticket", errUsage)
	}
	return groupsFlags{c.answerFlags, []string{c.ID}}.decide(p, api.Change{Note: c.Note, Ticket: c.Ticket})
}

type groupsSeverityCmd struct {
	groupsFlags
	Severity string `name:"to" enum:"page,notify,digest,rules" required:"" help:"page, notify or digest; or rules, which restores the severity that the rules set."`
}

func (c groupsSeverityCmd) Run(p *Program) error {
	severity := deadletter.Severity(c.Severity)
	if severity == "rules" {
		severity = ""
	}
	return c.decide(p, api.Change{Severity: &severity})
}

type groupsMergeCmd struct {
	groupsFlags
	Into string `name:"into" required:"" help:"The group that they are merged into."`
}

func (c groupsMergeCmd) Run(p *Program) error {
	if _, err := parsedGroups(append([]string{c.Into}, c.IDs...)); err != nil {
		return err
	}
	return add(
		p, c.answerFlags, "/groups/"+url.PathEscape(c.Into)+"/merge", api.MergeRequest{Groups: c.IDs}, decisionWords,
	)
}

type groupsSplitCmd struct {
	answerFlags
	ID string `arg:"" name:"group" help:"The group, for example G-418."`
}

func (c groupsSplitCmd) Run(p *Program) error {
	if _, err := parsedGroups([]string{c.ID}); err != nil {
		return err
	}
	return add(p, c.answerFlags, "/groups/"+url.PathEscape(c.ID)+"/split", nil, decisionWords)
}

type groupsUndoCmd struct {
	answerFlags
	Decision int64 `arg:"" name:"decision" optional:"" help:"The number of the decision; without it, the decisions of the last seven days are listed."`
}

func (c groupsUndoCmd) Run(p *Program) error {
	if c.Decision != 0 {
		return add(
			p, c.answerFlags, "/groups/decisions/"+strconv.FormatInt(c.Decision, 10)+"/undo", nil,
			func(d deadletter.Decided) string {
				return "undone: " + strings.TrimSpace(d.Kind+" "+joined(d.Groups))
			},
		)
	}
	list := listing[deadletter.Decided]{
		path:  "/groups/decisions",
		key:   "decisions",
		whole: true,
		head:  []string{"DECISION", "WHEN", "WHO", "WHAT", "GROUPS", "UNDONE"},
		none:  "no decisions in the last seven days",
	}
	return list.run(p, c.answerFlags, func(d deadletter.Decided) []string {
		undone := ""
		if !d.UndoneAt.IsZero() {
			undone = ago(d.UndoneAt, time.Now())
		}
		return []string{
			strconv.FormatInt(d.ID, 10), ago(d.At, time.Now()), d.By, strings.TrimSpace(d.Kind + " " + d.Detail),
			joined(d.Groups), undone,
		}
	})
}
