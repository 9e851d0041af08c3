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
	fmt.Fprintln(p.Stdout, "the configuration is good")
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
