package cli

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/topology"
)

type topologyPlanCmd struct {
	serverFlags
	Queues      []string `arg:"" optional:"" name:"queue" help:"Queues, by name or glob, such as 'orders.*'. Without any, all queues that have a finding which a policy cures."`
	Broker      string   `name:"broker" help:"The name of a broker of the configuration. Or the URL of a management API, or @ and a file with that URL; dlo then reads that broker without a server."`
	VHost       string   `name:"vhost" help:"Only this vhost."`
	File        string   `name:"definitions" help:"Plan for a definitions file, without a server and a broker; - is standard input."`
	Exchange    string   `name:"exchange" default:"dlo.dlx" help:"The dead-letter exchange that the policies set, for --definitions or a URL."`
	Inbox       []string `name:"inbox" default:"dlo.letters" help:"The dead-letter queues that dlo drains, for --definitions or a URL."`
	AtLeastOnce bool     `name:"at-least-once" help:"Have quorum queues dead-letter at least once, which sets overflow to reject-publish."`
	Output      string   `name:"output" short:"o" enum:"table,rabbitmqctl,definitions,json" default:"table" help:"How to print: table, rabbitmqctl, definitions or json."`
}

func (c topologyPlanCmd) Run(p *Program) error {
	plans, err := c.plan(p)
	if err != nil {
		return err
	}
	switch c.Output {
	case "json":
		err = printJSON(p.Stdout, plans, true)
	case "table":
		printPlans(p.Stdout, plans)
	default:
		_, err = io.WriteString(p.Stdout, plans.Forms[c.Output])
	}
	if err != nil {
		return err
	}
	return c.refusedError(p, plans)
}

// refusedError returns an error if the command line names queues for which the plan contains no
// policy. If the output is not a table but in a format for machines, refusedError lists these
// queues on standard error.
func (c topologyPlanCmd) refusedError(p *Program, plans api.Plans) error {
	policies, refused := 0, 0
	for _, plan := range plans.Plans {
		policies += len(plan.Policies)
		refused += len(plan.Refused)
		for _, r := range plan.Refused {
			if c.Output != "table" {
				fmt.Fprintf(
					p.Stderr, "left alone: %s%s: %s\n", deadletter.Visible(r.Queue), placeOf(plans, plan),
					deadletter.Visible(r.Why),
				)
			}
		}
	}
	switch {
	case refused == 0 || len(c.Queues) == 0:
		return nil
	case policies == 0:
		return fmt.Errorf("nothing is planned: %s", countNoun(refused, "queue is left alone", "queues are left alone"))
	}
	return fmt.Errorf("%w: %s", errPartly, countNoun(refused, "queue is left alone", "queues are left alone"))
}

// plan returns the plans from the source that the command line names: a file, a broker or the
// server.
func (c topologyPlanCmd) plan(p *Program) (api.Plans, error) {
	var snapshots []topology.Snapshot
	switch byURL := strings.Contains(c.Broker, "://") || strings.HasPrefix(c.Broker, "@"); {
	case c.File != "" && c.Broker != "":
		return api.Plans{}, fmt.Errorf("%w: give --definitions or --broker, not both", errUsage)
	case c.File != "":
		text, err := readDefinitions(p, c.File)
		if err != nil {
			return api.Plans{}, err
		}
		if snapshots, err = topology.ReadDefinitions(text); err != nil {
			return api.Plans{}, fmt.Errorf("%s: %w", c.File, err)
		}
	case byURL:
		management, err := managementURL(c.Broker)
		if err != nil {
			return api.Plans{}, err
		}
		var vhosts []string
		if c.VHost != "" {
			vhosts = []string{c.VHost}
		}
		if snapshots, err = p.Look(p.Ctx, management, vhosts); err != nil {
			return api.Plans{}, err
		}
	default:
		var plans api.Plans
		err := c.call(p, http.MethodPost, "/topology/plan", api.PlanRequest{
			Broker:      c.Broker,
			VHost:       c.VHost,
			Queues:      c.Queues,
			AtLeastOnce: c.AtLeastOnce,
		}, &plans)
		return plans, err
	}
	var all []*topology.Snapshot
	var there []string
	for i := range snapshots {
		there = append(there, snapshots[i].VHost)
		if c.VHost == "" || c.VHost == snapshots[i].VHost {
			all = append(all, &snapshots[i])
		}
	}
	if len(all) == 0 && c.VHost != "" {
		return api.Plans{}, noVHost(c.VHost, there)
	}
	var plans []topology.Plan
	for i, globs := range topology.GlobsFor(all, c.Queues) {
		var queues []string
		if len(globs) > 0 || len(c.Queues) == 0 {
			queues = topology.Choose(
				all[i], topology.Inspect(all[i], topology.Options{Inboxes: c.Inbox}), globs, c.AtLeastOnce,
			)
		}
		plans = append(plans, topology.MakePlan(all[i], topology.Want{
			Queues:      queues,
			Exchange:    c.Exchange,
			AtLeastOnce: c.AtLeastOnce,
		}))
	}
	return api.NewPlans(plans), nil
}

// printPlans prints plans as text for people. It also prints how the user can apply them.
func printPlans(out io.Writer, plans api.Plans) {
	if printPolicies(out, plans) > 0 {
		fmt.Fprintln(
			out,
			"nothing was changed; `dlo topology apply` sets these policies, -o rabbitmqctl prints the commands, and -o definitions prints a file",
		)
	}
}

// printPolicies prints the policies of plans as text for people. It returns the number of policies.
func printPolicies(out io.Writer, plans api.Plans) (policies int) {
	brokers := brokersOf(plans.Plans, func(p api.TopologyPlan) string { return p.Broker })
	for _, plan := range plans.Plans {
		policies += len(plan.Policies)
		for _, p := range plan.Policies {
			fmt.Fprintf(
				out, "policy %s in %s, priority %d, for %s\n", p.Name, vhostOf(plan.Broker, plan.VHost, brokers > 1),
				p.Priority, countNoun(len(p.Queues), "queue", "queues"),
			)
			for _, q := range p.Queues {
				fmt.Fprintln(out, "  "+deadletter.Visible(q))
			}
			if p.Hides != "" {
				fmt.Fprintf(out, "  instead of policy %s, whose other keys it repeats\n", deadletter.Visible(p.Hides))
			}
			for _, change := range p.Changes {
				fmt.Fprintln(out, "    "+deadletter.Visible(topology.KeyChange(change).Words()))
			}
			if p.Hides != "" {
				fmt.Fprintln(out, "    all keys: "+deadletter.Visible(string(p.Definition)))
			}
		}
		for _, d := range plan.Drops {
			volume := "how many is unknown"
			if d.PerDay != nil {
				volume = fmt.Sprintf("about %d a day now", *d.PerDay)
			}
			fmt.Fprintf(
				out, "  %s drops messages by design (%s): all of them become letters, %s\n",
				deadletter.Visible(d.Queue), d.Limit, volume,
			)
		}
		if plan.Rule != "" {
			fmt.Fprintf(
				out, "  if nobody needs them, add this rule to the configuration of dlo first:\n%s",
				indented(plan.Rule),
			)
		}
		for _, r := range plan.Refused {
			fmt.Fprintf(
				out, "left alone: %s%s: %s\n", deadletter.Visible(r.Queue), placeOf(plans, plan),
				deadletter.Visible(r.Why),
			)
		}
	}
	if policies == 0 {
		fmt.Fprintln(out, "nothing to plan")
	}
	return policies
}

// placeOf returns the vhost of a plan in parentheses. It returns "" if there is only one plan.
func placeOf(all api.Plans, plan api.TopologyPlan) string {
	if len(all.Plans) < 2 {
		return ""
	}
	return " (" + vhostOf(
		plan.Broker, plan.VHost, brokersOf(all.Plans, func(p api.TopologyPlan) string { return p.Broker }) > 1,
	) + ")"
}

// vhostOf returns a phrase that names a vhost. If "withBroker" is true, the phrase also names its
// broker.
func vhostOf(broker, vhost string, withBroker bool) string {
	text := "vhost " + deadletter.Visible(vhost)
	if withBroker {
		text += " of broker " + deadletter.Visible(broker)
	}
	return text
}

// brokersOf returns the number of different brokers in a list.
func brokersOf[T any](list []T, broker func(T) string) int {
	names := map[string]bool{}
	for _, one := range list {
		names[broker(one)] = true
	}
	return len(names)
}

// indented indents every line of a text.
func indented(text string) string {
	return "    " + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n    ") + "\n"
}
