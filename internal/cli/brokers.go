package cli

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/config"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

func brokersTable() command {
	return noun(
		"brokers", groupBrokers, "Look at the connections to brokers, try them now, and rename brokers in the store.",
		list("List the brokers of the configuration, and whether they are connected.", nil,
			"GET /brokers", "brokers", api.Brokers{},
			"broker=name label vhost connected since=since|age rabbitmq=version inboxes=inboxes|inboxes note=|broker"),
		act("connect", "Try to connect to a broker now, instead of at the end of the back-off.", struct {
			callCmd
			Broker string `arg:"" help:"The broker, by its name in the configuration."`
		}{}, "POST /brokers/{broker}/connect", deadletter.BrokerStatus{},
			"broker {{.Name}} is {{if .Connected}}connected{{else}}not connected: {{.Reason}}{{end}}"),
		own("rename", "Rename a broker in the store, after its name in the configuration. No dlo may be running.",
			brokersRenameCmd{}),
	)
}

type brokersRenameCmd struct {
	Old string `arg:"" help:"The name in the store, which the configuration has no more."`
	New string `arg:"" help:"The new name, which the configuration has already."`
	config.File
}

// Run renames a broker in the store.
func (c brokersRenameCmd) Run(p *Program) error {
	cfg, err := loadConfig(p, c.File)
	if err != nil {
		return err
	}
	if err := p.Rename(p.Ctx, cfg, c.Old, c.New); err != nil {
		return err
	}
	const text = "broker %s has everything of broker %s; write the new name into rules, grants and saved views"
	return p.say(text, c.New, c.Old)
}

func queuesTable() command {
	const retries, drain = `retries of queue {{.Queue}}: {{template "retries" .}}`, `{{template "drain" .}}`
	queues := list(
		"List the queues that letters died in, and whether their retries are held back. With --inboxes, list "+
			"the inboxes.",
		struct {
			callCmd
			Inboxes bool `json:"-" help:"List the inboxes that dlo drains instead."`
		}{}, "GET /queues", "queues", api.Queues{},
		"broker vhost queue scheduled dead held depth=depth|count consumers=consumers|count "+
			"retries=|queue groups_held_back=groups_paused|held_back")
	inboxes := list("", nil, "GET /queues", "inboxes", api.Queues{},
		"broker vhost inbox=queue connected drained=draining depth=depth|count note")
	queues.with, queues.other = "inboxes", &inboxes
	drains := list("List running drains, and the newest that ended.", nil, "GET /queues/drains", "drains", api.Drains{},
		"id state broker queue taken of=count|all started=started_at|age who=by why")
	drains.name = "drains"
	take := act("drain", "Take letters out of a queue that is not an inbox, once.", queuesDrainCmd{},
		"POST /queues/drain", deadletter.Drain{}, drain)
	take.failed = `{{if eq .State "failed"}}{{.ID}} failed: {{.Why}}{{end}}`
	take.partly = `{{if eq .State "stopped"}}{{.ID}} was stopped{{end}}`
	return noun(
		"queues", groupBrokers,
		"Look at queues, pause and resume their retries, and take letters out of queues that are not inboxes.",
		queues,
		act("pause", "Pause the automatic retries of a queue; what people requeue is still sent.", queueCmd{},
			"POST /queues/pause", deadletter.Guard{}, retries),
		act("resume", "Resume the automatic retries of a queue; slowly at first if the breaker had tripped.",
			queueCmd{}, "POST /queues/resume", deadletter.Guard{}, retries),
		take,
		drains,
		act("stop", "Stop a drain; the rest stays in its queue.", struct {
			callCmd
			Drain string `arg:"" help:"The drain, for example D-1mfc2x8k4."`
		}{}, "POST /queues/drains/{drain}/stop", deadletter.Drain{}, drain),
	)
}

type reasonFlag struct {
	Reason string `help:"The reason, which the page and the audit log show."`
}

// placeFlags are the flags that select a broker and a vhost.
type placeFlags struct {
	Broker string `help:"The broker, by its name in the configuration; may be omitted if there is only one."`
	VHost  string `name:"vhost" help:"The vhost; the broker's if omitted."`
}

// queueCmd is a command about the retries of one queue.
type queueCmd struct {
	callCmd
	placeFlags
	reasonFlag
	Queue string `arg:"" help:"The queue that letters died in."`
}

type queuesDrainCmd struct {
	answerFlags
	placeFlags
	Queue  string `arg:"" help:"The queue."`
	Count  int    `help:"How many letters at most; 0 = until the queue is empty."`
	Origin string `help:"The queue in which letters died whose headers do not name it; without this, such letters are held."`
	Watch  bool   `json:"-" help:"Wait for the end."`
}

// Run starts a drain, and with --watch waits for its end.
func (c queuesDrainCmd) Run(p *Program, k *kong.Context) error {
	values, err := given(p, k.Selected())
	if err != nil {
		return err
	}
	d, _, err := fetch[deadletter.Drain](c.serverFlags, p, http.MethodPost, "/queues/drain", values)
	if err != nil {
		return err
	}
	for c.Watch && d.State == deadletter.DrainRunning {
		const text = "%s continues on the server; dlo queues drains shows it, dlo queues stop %s ends it"
		if err := p.wait(text, d.ID, d.ID); err != nil {
			return err
		}
		answer, _, err := fetch[api.Drains](c.serverFlags, p, http.MethodGet, "/queues/drains", nil)
		if p.Ctx.Err() != nil {
			continue // the wait says what it means
		}
		i := slices.IndexFunc(answer.Drains, func(one deadletter.Drain) bool { return one.ID == d.ID })
		if err == nil && i < 0 {
			err = fmt.Errorf("%s is no longer known: dlo was restarted; the audit log says how it ended", d.ID)
		}
		if err != nil {
			return err
		}
		d = answer.Drains[i]
	}
	raw, err := api.Marshal(d)
	return cmp.Or(err, c.finish(p, commandOf(k.Selected()), raw))
}

type tryCmd struct {
	answerFlags
	Broker string `help:"The broker, by its name in the configuration; may be omitted if there is only one."`
}

// Run starts a trial. It prints each step that the server has observed, until the trial is over.
func (c tryCmd) Run(p *Program, k *kong.Context) error {
	request := api.TrialRequest{Broker: c.Broker}
	t, raw, err := fetch[api.Trial](c.serverFlags, p, http.MethodPost, "/trial", request)
	for printed := ""; err == nil; {
		if text, err := textOf("trial", t); err == nil && c.Output == "table" && len(text) > len(printed) {
			fmt.Fprintln(p.Stdout, strings.TrimPrefix(strings.TrimPrefix(text, printed), "\n"))
			printed = text
		}
		if t.State != deadletter.TrialRunning {
			if err := c.print(p, commandOf(k.Selected()), raw); err != nil || t.State == deadletter.TrialDone {
				return err
			}
			if t.Cure != "" {
				t.Problem += "\n" + t.Cure
			}
			return fmt.Errorf("the trial did not get all the way: %s", t.Problem)
		}
		if err := p.wait("the trial continues on the server"); err != nil {
			return err
		}
		t, raw, err = fetch[api.Trial](c.serverFlags, p, http.MethodGet, "/trial", nil)
	}
	return err
}
