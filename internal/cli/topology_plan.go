package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/internal/topology"
)

// planFlags are the arguments and flags that plan and apply share.
type planFlags struct {
	Queues        []string `arg:"" optional:"" name:"queue" help:"Queues, by name or glob, such as 'orders.*'. Without any, all queues that have a finding which a policy cures."`
	VHost         string   `name:"vhost" help:"Only this vhost."`
	AtLeastOnce   bool     `name:"at-least-once" help:"Have quorum queues dead-letter at least once, which sets overflow to reject-publish."`
	BrokerRetries bool     `name:"broker-retries" help:"Let the broker retry quick transient faults first, in quorum queues of RabbitMQ 4.3.1 and later: after 5 s x n, at most 5 min, up to the delivery limit; then dlo."`
}

type topologyPlanCmd struct {
	serverFlags
	planFlags
	Broker   atFile   `help:"The name of a broker of the configuration. Or the URL of a management API, or @ and a file with that URL; dlo then reads that broker without a server."`
	File     string   `name:"definitions" help:"Plan for a definitions file, without a server and a broker; - is standard input."`
	Exchange string   `default:"dlo.dlx" help:"The dead-letter exchange that the policies set, for --definitions or a URL."`
	Inbox    []string `default:"dlo.letters" help:"The dead-letter queues that dlo drains, for --definitions or a URL."`
	Output   string   `short:"o" enum:"table,rabbitmqctl,definitions,json" default:"table" help:"How to print: table, rabbitmqctl, definitions or json."`
}

// Run prints plans, and how they can be applied.
func (c topologyPlanCmd) Run(p *Program) error {
	plans, err := c.plan(p)
	if err != nil {
		return err
	}
	const cure = "nothing was changed; `dlo topology apply` sets these policies, -o rabbitmqctl prints the commands, " +
		"and -o definitions prints a file"
	if form, ok := plans.Forms[topology.Form(c.Output)]; ok {
		_, err = io.WriteString(p.Stdout, form)
	} else {
		err = changeFlags{Output: c.Output}.show(p, plans, `{{template "plans" .}}{{if policies .}}`+cure+"{{end}}")
	}
	return cmp.Or(err, c.refusedError(p, plans, c.Output == "table"))
}

// refusedError returns an error if the command line names queues for which the plan contains no
// policy. If these queues were not printed yet, refusedError lists them on standard error.
func (c planFlags) refusedError(p *Program, plans api.Plans, listed bool) error {
	refused := 0
	for _, plan := range plans.Plans {
		refused += len(plan.Refused)
	}
	if !listed {
		tell(p.Stderr, `{{range .Plans}}{{template "refused" .}}{{end}}`, plans)
	}
	text := deadletter.Plural(refused, "queue is left alone", "queues are left alone")
	switch {
	case refused == 0 || len(c.Queues) == 0:
		return nil
	case policyCount(plans) == 0:
		return fmt.Errorf("nothing is planned: %s", text)
	}
	return fmt.Errorf("%w: %s", errPartly, text)
}

// ask asks the server for plans.
func (c planFlags) ask(p *Program, server serverFlags, broker string) (plans api.Plans, err error) {
	request := topology.Wish{
		Broker: broker, VHost: c.VHost, Queues: c.Queues, AtLeastOnce: c.AtLeastOnce, BrokerRetries: c.BrokerRetries,
	}
	plans, _, err = fetch[api.Plans](server, p, http.MethodPost, "/topology/plan", request)
	return plans, err
}

// plan returns the plans from the source that the command line names: a file, a broker or the
// server.
func (c topologyPlanCmd) plan(p *Program) (api.Plans, error) {
	switch byURL := strings.Contains(string(c.Broker), "://"); {
	case c.File != "" && c.Broker != "":
		return api.Plans{}, fmt.Errorf("%w: give --definitions or --broker, not both", errUsage)
	case c.File == "" && !byURL:
		return c.ask(p, c.serverFlags, string(c.Broker))
	}
	var vhosts, there []string
	if c.VHost != "" {
		vhosts = []string{c.VHost}
	}
	snapshots, err := look(p, c.File, c.Broker, vhosts)
	if err != nil {
		return api.Plans{}, err
	}
	var all []*topology.Snapshot
	for i := range snapshots {
		there = append(there, snapshots[i].VHost)
		if c.VHost == "" || c.VHost == snapshots[i].VHost {
			all = append(all, &snapshots[i])
		}
	}
	return api.NewPlans(c.make(all)), noVHost(vhosts, there)
}

// make returns the plans for some vhosts.
func (c topologyPlanCmd) make(all []*topology.Snapshot) (plans []topology.Plan) {
	for i, globs := range topology.GlobsFor(all, c.Queues) {
		var queues []string
		if len(globs) > 0 || len(c.Queues) == 0 {
			findings := topology.Inspect(all[i], topology.Options{Inboxes: c.Inbox})
			queues = topology.Choose(all[i], findings, globs, c.AtLeastOnce)
		}
		want := topology.Want{
			Queues: queues, Exchange: c.Exchange, AtLeastOnce: c.AtLeastOnce, BrokerRetries: c.BrokerRetries,
		}
		plans = append(plans, topology.MakePlan(all[i], want))
	}
	return plans
}

// changeFlags are the flags of a command that changes policies on brokers.
type changeFlags struct {
	serverFlags
	Broker string `help:"Only this broker of the configuration."`
	Yes    bool   `json:"-" short:"y" help:"Do not ask before policies are changed."`
	Output string `short:"o" enum:"table,json" default:"table" help:"How to print: table or json."`
}

// show prints what was done, with a template for people.
func (f changeFlags) show(p *Program, done any, text string) error {
	if f.Output == "json" {
		return printJSON(p.Stdout, done, true)
	}
	return tell(p.Stdout, text, done)
}

// all does something with each value of a list. It goes on after an error.
func all[T, A any](list []T, do func(T) (A, error)) (done []A, err error) {
	done = []A{}
	for _, one := range list {
		if a, failed := do(one); failed != nil {
			err = errors.Join(err, failed)
		} else {
			done = append(done, a)
		}
	}
	return done, err
}

// leftPaused is the text that the command line prints after queues have left dlo, so that their
// dead letters no longer come to dlo. It says what happens to the letters of these queues that dlo
// still has.
const leftPaused = "The retries of these queues are paused, because a letter that fails again would not return to " +
	"dlo. Requeue or discard their letters, or continue with dlo queues resume."

type topologyApplyCmd struct {
	planFlags
	changeFlags
}

// Run sets the policies of plans, each plan on its own.
func (c topologyApplyCmd) Run(p *Program, k *kong.Context) error {
	plans, err := c.ask(p, c.serverFlags, c.Broker)
	if err != nil {
		return err
	}
	table := c.Output == "table"
	if table {
		tell(p.Stdout, `{{template "plans" .}}`, plans)
	}
	policies := policyCount(plans)
	if policies == 0 {
		return c.refusedError(p, plans, table)
	}
	if err := c.confirm(p, k, "set "+deadletter.Plural(policies, "policy", "policies")+" on the broker"); err != nil {
		return err
	}
	none := func(plan topology.Plan) bool { return len(plan.Policies) == 0 }
	chosen := slices.DeleteFunc(slices.Clone(plans.Plans), none)
	done, failed := all(chosen, func(plan topology.Plan) (applied topology.Applied, err error) {
		err = c.call(p, http.MethodPost, "/topology/apply", api.ApplyPlanRequest{Plan: plan}, &applied)
		if err != nil {
			err = fmt.Errorf("broker %s, vhost %s: %w", plan.Broker, plan.VHost, err)
		}
		return applied, err
	})
	if err := c.show(p, done, `{{range .}}{{template "applied" .}}{{end}}`); err != nil || failed != nil {
		return errors.Join(failed, err)
	}
	return c.refusedError(p, plans, table)
}

// leaveFlags are the flags of the commands after which queues do not dead-letter to dlo any more.
type leaveFlags struct {
	changeFlags
	VHost string `name:"vhost" help:"Only this vhost."`
}

type topologyUndoCmd struct {
	leaveFlags
	Queues []string `arg:"" optional:"" name:"queue" help:"Queues, by name or glob. Each policy that dlo has set for one of them is deleted, and so no longer applies to any other queue."`
}

// Run deletes policies, or lists them if no queue is given.
func (c topologyUndoCmd) Run(p *Program, k *kong.Context) error {
	list, err := c.adopted(p)
	if err != nil {
		return err
	}
	chosen := c.choosePolicies(list)
	if len(c.Queues) == 0 || c.Output == "table" {
		err := c.show(p, api.AdoptedPolicies{Policies: chosen}, `{{template "adopted" .}}`)
		if err != nil || len(c.Queues) == 0 {
			return err
		}
	}
	if len(chosen) == 0 {
		return fmt.Errorf("dlo has set no policy for queue %s", strings.Join(c.Queues, ", "))
	}
	question := "delete " + deadletter.Plural(len(chosen), "policy", "policies")
	if err := c.warn(p, k, queuesOf(chosen), question); err != nil {
		return err
	}
	undone, failed := all(chosen, func(a topology.Adopted) (one topology.Adopted, err error) {
		return one, c.call(p, http.MethodPost, "/topology/undo", api.UndoRequest{ID: a.ID}, &one)
	})
	const text = "{{range .Policies}}deleted: policy {{.Name}} in vhost {{.VHost}}\n{{end}}"
	err = c.show(p, api.AdoptedPolicies{Policies: undone}, text)
	if c.Output == "table" && len(undone) > 0 {
		p.note(leftPaused)
	}
	return errors.Join(failed, err)
}

// choosePolicies returns those policies of the list that the command line selects.
func (c topologyUndoCmd) choosePolicies(list []topology.Adopted) []topology.Adopted {
	if len(c.Queues) == 0 {
		return list
	}
	queues := topology.Chosen(queuesOf(list), c.Queues)
	return slices.DeleteFunc(list, func(a topology.Adopted) bool {
		return !slices.ContainsFunc(a.Queues, func(q string) bool { return slices.Contains(queues, q) })
	})
}

func queuesOf(list []topology.Adopted) (queues []string) {
	for _, a := range list {
		queues = append(queues, a.Queues...)
	}
	return queues
}

// adopted returns the policies that dlo has set on the broker and in the vhost of the flags.
func (f leaveFlags) adopted(p *Program) ([]topology.Adopted, error) {
	list, _, err := fetch[api.AdoptedPolicies](f.serverFlags, p, http.MethodGet, "/topology/adopted", nil)
	return slices.DeleteFunc(list.Policies, func(a topology.Adopted) bool {
		return f.Broker != "" && f.Broker != a.Broker || f.VHost != "" && f.VHost != a.VHost
	}), err
}

// warn asks before queues leave dlo, which means that their policy will no longer lead dead letters
// to dlo. Before that, it prints a warning if dlo has sent letters back to these queues. Such a
// letter may still fail again, and then it is lost.
func (f leaveFlags) warn(p *Program, k *kong.Context, queues []string, question string) error {
	n := 0
	for some := range slices.Chunk(queues, 50) { // a URL must not become too long
		q := query.Query{}.With(
			query.State, string(deadletter.StatePublishing), string(deadletter.StateRequeued),
		).With(query.Queue, some...)
		path := withQuery("/letters/count", map[string]any{"q": q.String(), "exact": true})
		sent, _, err := fetch[api.Count](f.serverFlags, p, http.MethodGet, path, nil)
		if err != nil {
			return err
		}
		n += sent.Count
	}
	if n > 0 {
		const text = "dlo has sent %s back to these queues and still watches whether they fail again. A letter that " +
			"fails after its queue has left is lost. To be safe, pause the retries of these queues with dlo " +
			"queues pause, and wait until no letter has the state requeued."
		p.note(text, deadletter.Plural(n, "letter", "letters"))
	}
	return f.confirm(p, k, question)
}

type topologyLeaveCmd struct {
	leaveFlags
	Queues []string `arg:"" name:"queue" help:"Queues, by name or glob."`
}

// Run takes queues out of the policies that dlo has set.
func (c topologyLeaveCmd) Run(p *Program, k *kong.Context) error {
	list, err := c.adopted(p)
	if err != nil {
		return err
	}
	question := "take " + strings.Join(c.Queues, ", ") + " out of the policies of dlo"
	if err := c.warn(p, k, topology.Chosen(queuesOf(list), c.Queues), question); err != nil {
		return err
	}
	request := api.LeaveRequest{Broker: c.Broker, VHost: c.VHost, Queues: c.Queues}
	left, _, err := fetch[api.Left](c.serverFlags, p, http.MethodPost, "/topology/leave", request)
	if err != nil {
		return err
	}
	if c.Output == "table" {
		p.note(leftPaused)
	}
	return c.show(p, left, "{{range .Queues}}left: {{.}}\n{{end}}")
}
