package cli

import (
	"fmt"
	"net/http"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/config"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/rules"
)

type configCmd struct {
	Check configCheckCmd `cmd:"" help:"Report every mistake of a configuration file with line and column."`
}

type configCheckCmd struct {
	config.File
	Broker bool   `name:"broker" help:"Connect to the brokers as well: rights, queues, management API. Nothing is changed there, and no letter is taken."`
	Server string `name:"server" help:"URL of a running dlo: warn of queues in rules that none of its known queues fits. Without it no server is asked."`
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
		known, err := c.queues(p)
		if err != nil {
			return err
		}
		warnings = unknownQueues(cfg.Rules.Rules, known)
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

// askBrokers writes what each broker lets dlo do.
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
				fmt.Fprintln(p.Stdout, "  no management API in the configuration: nobody can say whether a policy deletes letters from the queues of dlo")
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

func (c configCheckCmd) queues(p *Program) ([]api.Queue, error) {
	var answer api.Queues
	err := serverFlags{Server: c.Server}.call(p, http.MethodGet, "/queues", nil, &answer)
	return answer.Queues, err
}

// unknownQueues returns a warning for each queue of a rule that none of the known queues fits, in the order of the rules. Where a rule names a broker or a vhost, only queues there count.
func unknownQueues(list []rules.Rule, known []api.Queue) []string {
	var warnings []string
	for _, r := range list {
		for _, glob := range r.Match.Queue {
			only, met := rules.Patterns{glob}, false
			for _, q := range known {
				met = met || only.Fit(q.Queue) && r.Match.Broker.Fit(q.Broker) && r.Match.VHost.Fit(q.VHost)
			}
			if !met {
				warnings = append(warnings, fmt.Sprintf("rule %s: no queue that the server knows fits %s", r.Name, glob))
			}
		}
	}
	return warnings
}
