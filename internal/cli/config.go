package cli

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/config"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/rules"
)

type configCmd struct {
	Check configCheckCmd `cmd:"" help:"Report every mistake in a configuration file with line and column."`
}

type configCheckCmd struct {
	config.File
	Broker bool   `name:"broker" help:"Connect to the brokers as well: rights, queues, management API. Nothing is changed there, and no letter is taken out."`
	Server string `name:"server" help:"URL of a running dlo, to warn also about rules whose queues match no queue of that server, about paths of search.fields that none of its types has, and about letters whose broker is not in the file. Without it, no server is contacted."`
}

func (c configCheckCmd) Run(p *Program) error {
	path, err := c.Path(p.Getenv)
	if err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	cfg, err := config.Load(path, p.Getenv)
	if err != nil {
		return err
	}
	if p.Check != nil {
		if err := p.Check(cfg); err != nil {
			return err
		}
	}
	var warnings []string
	if c.Server != "" {
		var known api.Queues
		if err := c.ask(p, "/queues", &known); err != nil {
			return err
		}
		warnings = unknownQueues(cfg.Rules.Rules, known.Queues)
		warnings = append(warnings, leftBehind(cfg.Brokers, known.Queues)...)
		for _, path := range cfg.Search.Fields {
			var types api.Types // without sets, the server can say nothing about a path
			if err := c.ask(p, "/types?q="+url.QueryEscape(path), &types); err != nil {
				return err
			}
			if len(types.Sets) > 0 && len(types.Paths) == 0 {
				const text = "search.fields: no type that the server knows has %s, so it finds only JSON bodies"
				warnings = append(warnings, fmt.Sprintf(text, path))
			}
		}
	}
	for _, w := range warnings {
		fmt.Fprintln(p.Stderr, "dlo: warning:", deadletter.Visible(w))
	}
	if c.Broker {
		if err := askBrokers(p, cfg); err != nil {
			return err
		}
	}
	fmt.Fprintln(p.Stdout, "the configuration is good")
	return nil
}

// askBrokers asks each broker what it permits dlo to do, and prints the answers.
func askBrokers(p *Program, cfg config.Config) error {
	list, err := p.Ask(p.Ctx, cfg)
	if err != nil {
		return err
	}
	problems := 0
	for _, b := range list {
		fmt.Fprintf(p.Stdout, "broker %s, vhost %s: ", b.Name, deadletter.Visible(b.VHost))
		if b.Connected {
			fmt.Fprintf(p.Stdout, "RabbitMQ %s, user %s\n", deadletter.Visible(b.Version), deadletter.Visible(b.User))
			for _, r := range b.Rights {
				fmt.Fprintf(p.Stdout, "  %-8s %-9s %s\n", r.State, r.Operation, deadletter.Visible(r.Resource))
			}
			if !b.Managed {
				fmt.Fprintln(
					p.Stdout,
					"  no management API in the configuration: dlo cannot tell whether a policy deletes letters from its own queues",
				)
			}
		} else {
			fmt.Fprintln(p.Stdout, "not connected")
		}
		for _, problem := range b.Problems() {
			problems++
			fmt.Fprintln(p.Stdout, "  problem:", deadletter.Visible(problem.Title), deadletter.Visible(problem.Text))
			if problem.Cure != "" {
				fmt.Fprintln(p.Stdout, "    "+deadletter.Visible(problem.Cure))
			}
		}
	}
	if problems > 0 {
		return fmt.Errorf("problems at brokers: %d", problems)
	}
	return nil
}

func (c configCheckCmd) ask(p *Program, path string, into any) error {
	return serverFlags{Server: c.Server}.call(p, http.MethodGet, path, nil, into)
}

// unknownQueues checks the queue patterns of the rules against the queues that the server knows. It
// returns a warning for each pattern that no queue matches, in the order of the rules. If a rule
// names a broker or a vhost, only queues of that broker or vhost count.
func unknownQueues(list []rules.Rule, known []api.Queue) []string {
	var warnings []string
	for _, r := range list {
		for _, glob := range r.Match.Queue {
			only, met := rules.Patterns{glob}, false
			for _, q := range known {
				met = met || only.Fit(q.Queue) && r.Match.Broker.Fit(q.Broker) && r.Match.VHost.Fit(q.VHost)
			}
			if !met {
				warnings = append(
					warnings, fmt.Sprintf("rule %s: no queue that the server knows fits %s", r.Name, glob),
				)
			}
		}
	}
	return warnings
}

// leftBehind returns a warning for each broker that is missing from the configuration, if the
// server has letters of this broker that are scheduled, dead or held. dlo would never send these
// letters.
func leftBehind(brokers []config.Broker, known []api.Queue) []string {
	letters, order := map[string]int{}, []string{}
	for _, q := range known {
		has := slices.ContainsFunc(brokers, func(b config.Broker) bool { return b.Name == q.Broker })
		n := q.Scheduled + q.Dead + q.Held
		if has || n == 0 {
			continue
		}
		if letters[q.Broker] == 0 {
			order = append(order, q.Broker)
		}
		letters[q.Broker] += n
	}
	var warnings []string
	for _, name := range order {
		warnings = append(
			warnings,
			fmt.Sprintf(
				"broker %s is not in this file, but %d of its letters on the server wait or need people, and dlo would not send them; if the broker has another name now, stop dlo and run dlo brokers rename %s NEW",
				name, letters[name], name,
			),
		)
	}
	return warnings
}
