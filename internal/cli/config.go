package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/deadletteroffice/dlo/docs/examples"
	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/config"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/rules"
)

func configTable() command {
	return noun(
		"config", groupHere, "Check and show the configuration file, and compare it with a running dlo.",
		own("check", "Report every mistake in a configuration file with line and column.", configCheckCmd{}),
		own("show", "Print the configuration in force: the file, its variables, the environment and the defaults. "+
			"Secrets are hidden.", configShowCmd{}),
		own("schema", "Print the JSON schema of the configuration file, for editors.", configSchemaCmd{}),
		own("diff", "Say what a reload of the configuration file would change at a running dlo, and what waits for a start.",
			configDiffCmd{}),
	)
}

type configCheckCmd struct {
	config.File
	Broker bool   `name:"broker" help:"Connect to the brokers as well: rights, queues, management API. Nothing is changed there, and no letter is taken out."`
	Server string `name:"server" help:"URL of a running dlo, to warn also about rules whose queues match no queue of that server, about paths of search.fields that none of its types has, and about letters whose broker is not in the file. Without it, no server is contacted."`
}

func (c configCheckCmd) Run(p *Program) error {
	cfg, err := loadConfig(p, c.File)
	if err != nil {
		return err
	}
	if p.Check != nil {
		if err := p.Check(cfg); err != nil {
			return err
		}
	}
	if c.Server != "" {
		server := serverFlags{Server: c.Server}
		server.find(p.Getenv)
		known, _, err := fetch[api.Queues](server, p, http.MethodGet, "/queues", nil)
		if err != nil {
			return err
		}
		warnings := unknownQueues(cfg.Rules.Rules, known.Queues)
		for _, w := range append(warnings, leftBehind(cfg.Brokers, known.Queues)...) {
			p.note("dlo: warning: %s", w)
		}
		for _, path := range cfg.Search.Fields {
			at := withQuery("/types", map[string]any{"q": path})
			types, _, err := fetch[api.Types](server, p, http.MethodGet, at, nil)
			if err != nil {
				return err
			}
			if len(types.Sets) > 0 && len(types.Paths) == 0 { // without sets, the server can say nothing about a path
				const text = "search.fields: no type that the server knows has %s, so it finds only JSON bodies"
				p.note("dlo: warning: "+text, path)
			}
		}
	}
	if c.Broker {
		if err := askBrokers(p, cfg); err != nil {
			return err
		}
	}
	return p.say("the configuration is good")
}

// askBrokers asks each broker what it permits dlo to do, and prints the answers.
func askBrokers(p *Program, cfg config.Config) error {
	list, err := p.Ask(p.Ctx, cfg)
	if err != nil {
		return err
	}
	problems := 0
	for _, b := range list {
		problems += len(b.Problems())
	}
	if err := tell(p.Stdout, `{{template "rights" .}}`, list); err != nil {
		return err
	}
	if problems > 0 {
		return fmt.Errorf("problems at brokers: %d", problems)
	}
	return nil
}

// unknownQueues checks the queue patterns of the rules against the queues that the server knows. It
// returns a warning for each pattern that no queue matches, in the order of the rules. If a rule
// names a broker or a vhost, only queues of that broker or vhost count.
func unknownQueues(list []rules.Rule, known []deadletter.Queue) []string {
	var warnings []string
	for _, r := range list {
		for _, glob := range r.Match.Queue {
			if !slices.ContainsFunc(known, func(q deadletter.Queue) bool {
				return rules.Patterns{glob}.Fit(q.Queue) && r.Match.Broker.Fit(q.Broker) && r.Match.VHost.Fit(q.VHost)
			}) {
				const text = "rule %s: no queue that the server knows fits %s"
				warnings = append(warnings, fmt.Sprintf(text, r.Name, glob))
			}
		}
	}
	return warnings
}

// leftBehind returns a warning for each broker that is missing from the configuration, if the
// server has letters of this broker that are scheduled, dead or held. dlo would never send these
// letters.
func leftBehind(brokers []config.Broker, known []deadletter.Queue) []string {
	letters := map[string]int{}
	for _, q := range known {
		has := slices.ContainsFunc(brokers, func(b config.Broker) bool { return b.Name == q.Broker })
		if n := q.Scheduled + q.Dead + q.Held; !has && n > 0 {
			letters[q.Broker] += n
		}
	}
	var warnings []string
	for _, name := range slices.Sorted(maps.Keys(letters)) {
		const text = "broker %s is not in this file, but %d of its letters on the server wait or need people, and " +
			"dlo would not send them; if the broker has another name now, stop dlo and run dlo brokers rename %s NEW"
		warnings = append(warnings, fmt.Sprintf(text, name, letters[name], name))
	}
	return warnings
}

type configSchemaCmd struct{}

// Run prints the JSON schema of the configuration file.
func (configSchemaCmd) Run(p *Program) error { return p.write(examples.Schema) }

type configShowCmd struct{ config.File }

// Run prints the configuration in force.
func (c configShowCmd) Run(p *Program) error {
	path, err := c.Path(p.Getenv)
	if err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	shown, err := config.Show(path, p.Getenv)
	if err != nil {
		return err
	}
	return p.write(shown)
}

// loadConfig reads the configuration file that the command line or DLO_CONFIG names.
func loadConfig(p *Program, file config.File) (config.Config, error) {
	path, err := file.Path(p.Getenv)
	if err != nil {
		return config.Config{}, fmt.Errorf("%w: %w", errUsage, err)
	}
	return config.Load(path, p.Getenv)
}

type doctorCmd struct {
	config.File
	serverFlags
	Output string `json:"-" short:"o" enum:"table,json" default:"table" help:"How to print: table or json."`
}

// Run asks the running dlo. If the command names a configuration file and no server, or if no dlo
// answers where one would be if nothing names a server, it checks here what a dlo that starts here
// would need.
func (c doctorCmd) Run(p *Program) error {
	path, err := c.Path(p.Getenv)
	if err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	var list api.Doctor
	first := deadletter.Checkup{Part: "checked", Text: "what a dlo that starts here needs"}
	local := c.guessed && cmp.Or(c.Argument, c.Flag) != ""
	if !local {
		first.Text = "the dlo that runs at " + c.displayAddress()
		if err := c.call(p, http.MethodGet, "/doctor", nil, &list); err != nil && !c.guessed {
			return err
		} else if err != nil {
			local, first.Text = true, "what a dlo that starts here needs: "+err.Error()
			if first.Problem = !errors.Is(err, errSilent); first.Problem {
				first.Cure = "name the server with --server, and a token with DLO_TOKEN, or name the configuration file"
			}
		}
	}
	if local {
		if list.Checks, err = p.Doctor(p.Ctx, path, p.Getenv); err != nil {
			return err
		}
	}
	list.Checks = slices.Insert(list.Checks, 0, first)
	if c.Output == "json" {
		raw, err := api.Marshal(list)
		if err == nil {
			err = printJSON(p.Stdout, json.RawMessage(raw), true)
		}
		if err != nil {
			return err
		}
	} else if err := tell(p.Stdout, `{{template "doctor" .}}`, list); err != nil {
		return err
	}
	problems := 0
	for _, one := range list.Checks {
		if one.Problem {
			problems++
		}
	}
	if problems > 0 {
		return fmt.Errorf("problems: %d", problems)
	}
	return nil
}
