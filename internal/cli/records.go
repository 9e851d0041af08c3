package cli

import (
	"github.com/alecthomas/kong"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// numberedCmd is a command about an object with a number.
type numberedCmd struct {
	callCmd
	ID int64 `arg:"" name:"id" help:"The number that the list shows."`
}

// namedCmd is a command about an object with a name.
type namedCmd struct {
	callCmd
	Name string `arg:"" help:"The name, as the list shows it."`
}

func viewsTable() command {
	return noun("views", groupLetters, "Saved queries.",
		list("List saved queries.", nil, "GET /views", "views", api.Views{}, "id name query who=by saved=at|age"),
		act("add", "Save a query under a name.", struct {
			callCmd
			Name  string `arg:"" help:"The name."`
			Query string `arg:"" json:"query" help:"The query; relative times stay relative."`
		}{}, "POST /views", deadletter.View{}, "view {{.ID}}: {{.Name}}"),
		act("remove", "Remove a saved query.", numberedCmd{}, "DELETE /views/{id}", nil, "view {{.id}} is removed"),
	)
}

func overridesTable() command {
	return noun("overrides", "", "Manage redirects, which send the letters of one queue to another.",
		list("List redirects.", nil, "GET /overrides", "overrides", api.Overrides{},
			"id broker vhost queue goes_to=to who=by saved=at|age reason"),
		act("add", "Send the letters of a queue to another queue of its broker and vhost.", struct {
			callCmd
			placeFlags
			Queue  string `arg:"" help:"The queue that letters died in."`
			To     string `arg:"" help:"The queue that the letters go to."`
			Reason string `help:"Why, for the audit."`
		}{}, "POST /overrides", deadletter.Override{}, "redirect {{.ID}}: letters of {{.Queue}} go to {{.To}}"),
		act("remove", "Remove a redirect: letters go to their own queue again.", numberedCmd{},
			"DELETE /overrides/{id}", nil, "redirect {{.id}} is removed"),
	)
}

func deploysTable() command {
	return noun("deploys", groupRules, "Mark deploys, and list them.",
		list("List the deploys of the last 90 days.", nil, "GET /deploys", "deploys", api.Deploys{},
			"when=at|age service version who=by link"),
		act("add",
			"Mark that a version of a service went live: charts show it, and failures that begin after it name it.",
			struct {
				callCmd
				Service string `arg:"" help:"What was deployed."`
				Version string `arg:"" help:"Its version."`
				Link    string `help:"A link to what went live."`
				At      string `help:"When, for example 2026-11-20T07:30:00Z; without it, now."`
			}{}, "POST /deploys", deadletter.Deploy{}, "deploy of {{.Service}} {{.Version}}"),
	)
}

func auditTable() command {
	return noun("audit", groupPeople, "What was done, by whom.",
		list("Everything people and dlo did, newest first.", auditListCmd{}, "GET /audit", "entries", api.Audit{},
			"time=at|time what=kind who=actor via=through|through targets=targets|targets asked=asked|recorded "+
				"done=done|recorded query detail"),
	)
}

type auditListCmd struct {
	callCmd
	Query     string `json:"q" short:"q" help:"Only what a query selects, for example 'who:lena action:resolved target:G-418 since:7d'; its fields are who, action, target, via, since and until."`
	Actor     string `help:"Only entries of this person, or of dlo."`
	Kind      string `help:"Only entries of this kind, for example requeue, discard, resolved, deploy."`
	Through   string `enum:"page,api,cli,dlo," default:"" help:"Only entries that came through page, api or cli; dlo selects what dlo did automatically."`
	Operation string `help:"Of one operation, for example O-77."`
	Since     string `help:"Only entries from this time on, for example 2026-11-20T14:00:00Z."`
	Before    string `help:"Only entries before this time."`
	limitFlag
	CSV bool `name:"csv" json:"-" help:"All of it as CSV, for a spreadsheet."`
}

// Run lists the audit. With --csv, the server writes all of it.
func (c auditListCmd) Run(p *Program, k *kong.Context) error {
	if !c.CSV {
		return c.callCmd.Run(p, k)
	}
	return c.copyGiven(p, k, "", "/audit?format=csv", "limit")
}

func annotationsTable() command {
	return noun("annotations", groupRules, "Say why messages were rejected.",
		act("add", "Report why a message was rejected, as its consumer would (see docs/consumers.md).",
			annotationsAddCmd{}, "POST /annotations", deadletter.Annotated{},
			"{{.New}} annotations stored{{with .Again}}, {{.}} were already there{{end}}; "+
				"{{.Joined}} letters were waiting for one"),
	)
}

type annotationsAddCmd struct {
	callCmd
	File       jsonFile `arg:"" json:"*" optional:"" help:"JSON, one annotation or an array of them, instead of the flags; - reads standard input."`
	MessageID  string   `name:"message-id" help:"The message: its property message_id,"`
	Token      string   `name:"dlo-token" help:"or its header dlo-token,"`
	BodySHA256 string   `name:"body-sha256" help:"or the SHA-256 of its body, in hex."`
	Queue      string   `help:"The queue that it was delivered from."`
	Exchange   string   `help:"The exchange that it was published to."`
	RoutingKey string   `help:"The routing key that it was published with."`
	ErrorType  string   `help:"What kind of error, for example TimeoutError."`
	Message    string   `help:"What went wrong."`
	Stack      string   `help:"The stack trace."`
	Service    string   `help:"Who rejected it."`
	Version    string   `help:"The version of that service."`
	At         string   `help:"When, for example 2026-11-20T14:00:00Z."`
	Broker     string   `help:"The broker, by its name in the configuration; the first if omitted."`
	VHost      string   `name:"vhost" help:"The vhost; the broker's if omitted."`
}

func digestTable() command {
	return noun("digest", groupLetters, "The morning digest.",
		command{
			name: "preview", help: "Show the digest as it would be sent now.",
			route: "GET /digest", answer: deadletter.Digest{},
			columns: "since=from|time groups letters new came_back recovered_by_retries=recovered paged " +
				"paused=pauses|pause left_out=more|left_out",
			parts: []command{{
				rows: "lines", none: "all quiet: nothing needs you",
				columns: "group=group.id new=letters|plus total=group.count severity=group.severity status=group.status " +
					"queue=group.queue what=group.title|cut before=suggestion",
			}},
		},
		act("send", "Send that digest now, whatever the clock says.", nil, "POST /digest/send", api.DigestSent{},
			"on its way to {{range $i, $one := .Channels}}{{if $i}}, {{end}}{{.}}{{end}}"),
	)
}

func notifyTable() command {
	test := act("test", "Send a test notice to a channel, and print what its receiver answers.", struct {
		callCmd
		Channel string `arg:"" help:"Name of the channel in the configuration."`
	}{}, "POST /channels/test", deadletter.Channel{},
		"{{if .Accepted}}{{.Name}} accepted the test: {{.Answer}}{{end}}")
	test.failed = "{{if not .Accepted}}{{.Name}} did not accept the test: {{.Answer}}{{end}}"
	return noun("notify", groupPeople, "The channels through which people are notified.", test)
}
