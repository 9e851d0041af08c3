package cli

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

func groupsTable() command {
	const decision = `{{template "decision" .}}`
	const retries = `retries of group {{.Group}}: {{template "retries" .}}`
	decide := func(name, help string, args any) command {
		return act(name, help, args, "POST /groups/decisions", deadletter.Decided{}, decision)
	}
	undo := act("undo", "Undo a decision on groups.", struct {
		callCmd
		Decision int64 `arg:"" optional:"" help:"The number of the decision; without it, the decisions of the last seven days are listed."`
	}{}, "POST /groups/decisions/{decision}/undo", deadletter.Decided{},
		`undone: {{.Kind}} {{template "spaced" .Groups}}`)
	decisions := list("", nil, "GET /groups/decisions", "decisions", api.Decisions{},
		"decision=id when=at|age who=by what=|decided groups=groups|spaced undone=undone_at|age")
	undo.without, undo.other = "decision", &decisions
	return noun(
		"groups", groupLetters,
		"Triage letters that fail for one cause: look at them, decide, requeue or discard them.",
		list("List failure groups: those whose letters need people, the most urgent first.", struct {
			callCmd
			Query string `json:"q" short:"q" help:"Which groups, for example 'severity:page queue:billing.*'."`
			Tab   string `enum:"inbox,retrying,quiet,snoozed,resolved,all" default:"inbox" help:"Which of them: inbox, retrying, quiet (sent again, and nothing came back), snoozed, resolved or all."`
			Order string `enum:",urgency,letters,last,first" default:"" help:"What comes first: urgency, letters, last (seen) or first (seen); without it, urgency, or last for quiet groups, or for resolved groups, those resolved last."`
			Limit int    `help:"How many at most; 0 = all." default:"100"`
		}{}, "GET /groups", "groups", api.Groups{},
			"group=id severity status dead=count waiting overdue retrying last_seen=last_seen|age queue reason owner "+
				"what=title|cut"),
		command{
			name: "show",
			help: "Show all that is known about a group: what its letters share, and what was done with it.",
			args: groupCmd{}, route: "GET /groups/{group}", answer: api.GroupDetail{},
			columns: "group=id title queue type reason severity status merged_into=merged_into owner ticket note " +
				"note_by=note_by letters=letters|states first_seen=first_seen|age last_seen=last_seen|age " +
				"deploy_before=suspect|deploy headline=headline|headline sampled=sampled|some shared=shared|shared " +
				"quiet_sampled=quiet_sampled|some different=different|different operation=operations|started " +
				"history=history|event",
		},
		own("requeue", "Requeue the dead and held letters of groups.", struct {
			groupsVerbCmd
			paceFlags
		}{}),
		own("discard", "Discard the dead and held letters of groups.", groupsVerbCmd{}),
		decide("snooze",
			"Snooze groups: until a time, until more letters die, or until another queue has the same error.",
			struct {
				decideFlags
				For   string `json:"snooze.for" xor:"until" help:"How long, for example 4h or 7d; at most 90d."`
				Until string `json:"snooze.until" xor:"until" help:"Until a time, for example 2026-11-22T08:30:00Z."`
				After int    `json:"snooze.after" help:"Or until this many more letters die."`
				Queue bool   `name:"another-queue" json:"snooze.queue" help:"Or until another queue has the same error."`
			}{}),
		decide("resolve", "Resolve groups. A resolved group reopens as regressed if another letter dies.", struct {
			decideFlags
			In   string `json:"resolve.version" default:"" help:"The version of the consumer that fixes the cause; older versions may keep failing."`
			Note string `help:"The cause, for the history."`
		}{}),
		decide("reopen", "Reopen groups that are snoozed or resolved.", struct {
			decideFlags
			Reopen bool `hidden:"" default:"true"`
		}{}),
		decide("assign", "Give groups an owner.", struct {
			decideFlags
			To string `json:"owner" required:"" help:"The owner; an empty text removes it."`
		}{}),
		decide("note", "Add a note to a group, or a ticket.", struct {
			callCmd
			Group  groupList `arg:"" json:"groups" help:"The group, for example G-418."`
			Note   string    `arg:"" optional:"" help:"The note."`
			Ticket *string   `help:"A link or a number; an empty text removes it."`
		}{}),
		decide("severity", "Set the severity of groups.", struct {
			decideFlags
			To severityArg `json:"severity" enum:"page,notify,digest,rules" required:"" help:"page, notify or digest; or rules, which restores the severity that the rules set."`
		}{}),
		act("merge", "Merge groups whose letters fail for one cause.", struct {
			decideFlags
			Into groupArg `required:"" help:"The group that they are merged into."`
		}{}, "POST /groups/{into}/merge", deadletter.Decided{}, decision),
		act("split", "Split off a group that was merged into another.", groupCmd{},
			"POST /groups/{group}/split", deadletter.Decided{}, decision),
		undo,
		act("pause", "Pause the automatic retries of a group; what people requeue is still sent.", groupsPauseCmd{},
			"POST /groups/{group}/pause", deadletter.Guard{}, retries),
		act("resume", "Resume the automatic retries of a group.", groupsPauseCmd{},
			"POST /groups/{group}/resume", deadletter.Guard{}, retries),
	)
}

// groupCmd is a command about one group.
type groupCmd struct {
	callCmd
	ID groupArg `arg:"" name:"group" help:"The group, for example G-418."`
}

type groupsPauseCmd struct {
	groupCmd
	reasonFlag
}

// groupsVerbCmd does to the dead and held letters of groups what the name of the command says.
type groupsVerbCmd struct {
	operateFlags
	Groups []groupArg `arg:"" json:"-" help:"The groups, for example G-418 G-397."`
}

// Run starts an operation on every dead or held letter of the groups.
func (c groupsVerbCmd) Run(p *Program, k *kong.Context) error {
	list := strings.ReplaceAll(strings.Trim(fmt.Sprint(c.Groups), "[]"), " ", ",")
	return c.act(p, k, nil, "state:dead,held group:"+list)
}

// decideFlags are the arguments and flags of a decision about groups.
type decideFlags struct {
	callCmd
	Groups []groupArg `arg:"" help:"The groups, for example G-418 G-397."`
}

// groupList is an argument that names one group, where the API takes a list.
type groupList []groupArg

// UnmarshalText checks the id of the group.
func (l *groupList) UnmarshalText(text []byte) error {
	*l = groupList{""}
	return (*l)[0].UnmarshalText(text)
}

// severityArg is a severity, or rules.
type severityArg string

// MarshalText returns the severity as the API reads it. The one that the rules set is empty there.
func (a severityArg) MarshalText() ([]byte, error) {
	return []byte(strings.TrimPrefix(string(a), "rules")), nil
}
