package cli

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/internal/topology"
)

type topologyApplyCmd struct {
	serverFlags
	Queues      []string `arg:"" optional:"" name:"queue" help:"Queues, by name or glob, such as 'orders.*'. Without any, all queues that have a finding which a policy cures."`
	Broker      string   `name:"broker" help:"Only this broker of the configuration."`
	VHost       string   `name:"vhost" help:"Only this vhost."`
	AtLeastOnce bool     `name:"at-least-once" help:"Have quorum queues dead-letter at least once, which sets overflow to reject-publish."`
	Yes         bool     `name:"yes" short:"y" help:"Do not ask before the policies are set."`
	Output      string   `name:"output" short:"o" enum:"table,json" default:"table" help:"How to print: table or json."`
}

func (c topologyApplyCmd) Run(p *Program) error {
	plan := topologyPlanCmd{
		serverFlags: c.serverFlags,
		Queues:      c.Queues,
		Broker:      c.Broker,
		VHost:       c.VHost,
		AtLeastOnce: c.AtLeastOnce,
		Output:      c.Output,
	}
	plans, err := plan.plan(p)
	if err != nil {
		return err
	}
	policies := 0
	for _, one := range plans.Plans {
		policies += len(one.Policies)
	}
	if c.Output == "table" {
		printPolicies(p.Stdout, plans)
	}
	if policies == 0 {
		return plan.refusedError(p, plans)
	}
	if err := c.confirmChange(
		p, c.Yes, "topology apply", "set "+countNoun(policies, "policy", "policies")+" on the broker",
	); err != nil {
		return err
	}
	done := []api.AppliedPlan{}
	var failed []error
	for _, one := range plans.Plans {
		if len(one.Policies) == 0 {
			continue
		}
		var applied api.AppliedPlan
		if err := c.call(p, http.MethodPost, "/topology/apply", api.ApplyPlanRequest{Plan: one}, &applied); err != nil {
			failed = append(
				failed,
				fmt.Errorf(
					"broker %s, vhost %s: %w", deadletter.Visible(one.Broker), deadletter.Visible(one.VHost), err,
				),
			)
			continue
		}
		done = append(done, applied)
		if c.Output == "table" {
			printApplied(p, applied)
		}
	}
	if c.Output == "json" {
		if err := printJSON(p.Stdout, done, true); err != nil {
			return err
		}
	}
	if len(failed) > 0 {
		return errors.Join(failed...)
	}
	return plan.refusedError(p, plans)
}

// confirmChange asks for confirmation on the terminal before a command changes a broker. With --yes
// it does not ask. Without a terminal, it returns an error unless --yes is set.
func (f serverFlags) confirmChange(p *Program, yes bool, command, question string) error {
	switch {
	case yes:
		return nil
	case !terminal(p.Stdin):
		return fmt.Errorf("%w: %s needs --yes when there is no terminal to ask on", errUsage, command)
	}
	if err := f.sayServer(p); err != nil {
		return err
	}
	return askUser(p, question)
}

// printApplied prints the policies that the server has set, as text for people.
func printApplied(p *Program, a api.AppliedPlan) {
	for _, one := range a.Policies {
		text := "proved with a message"
		if !one.Proved {
			text = "not proved with a message: " + deadletter.Visible(one.Why)
		}
		fmt.Fprintf(
			p.Stdout, "set: policy %s in vhost %s, for %s; %s\n", one.Policy, deadletter.Visible(a.VHost),
			countNoun(len(one.Queues), "queue", "queues"), text,
		)
	}
}

type topologyUndoCmd struct {
	serverFlags
	Queues []string `arg:"" optional:"" name:"queue" help:"Queues, by name or glob. Each policy that dlo has set for one of them is deleted, and so no longer applies to any other queue."`
	Broker string   `name:"broker" help:"Only this broker of the configuration."`
	VHost  string   `name:"vhost" help:"Only this vhost."`
	Yes    bool     `name:"yes" short:"y" help:"Do not ask before policies are deleted."`
	Output string   `name:"output" short:"o" enum:"table,json" default:"table" help:"How to print: table or json."`
}

func (c topologyUndoCmd) Run(p *Program) error {
	var all api.AdoptedPolicies
	if err := c.call(p, http.MethodGet, "/topology/adopted", nil, &all); err != nil {
		return err
	}
	chosen := c.choosePolicies(all.Policies)
	if c.Output == "json" && len(c.Queues) == 0 {
		return printJSON(p.Stdout, api.AdoptedPolicies{Policies: chosen}, true)
	}
	if c.Output == "table" {
		printAdopted(p, chosen)
	}
	switch {
	case len(c.Queues) == 0:
		return nil
	case len(chosen) == 0:
		return fmt.Errorf("dlo has set no policy for queue %s", deadletter.Visible(strings.Join(c.Queues, ", ")))
	}
	var queues []string
	for _, a := range chosen {
		queues = append(queues, a.Queues...)
	}
	if err := c.warnOfReturns(p, queues); err != nil {
		return err
	}
	if err := c.confirmChange(
		p, c.Yes, "topology undo", "delete "+countNoun(len(chosen), "policy", "policies"),
	); err != nil {
		return err
	}
	undone := api.AdoptedPolicies{Policies: []api.AdoptedPolicy{}}
	var failed []error
	for _, a := range chosen {
		var one api.AdoptedPolicy
		if err := c.call(p, http.MethodPost, "/topology/undo", api.UndoRequest{ID: a.ID}, &one); err != nil {
			failed = append(failed, err)
			continue
		}
		undone.Policies = append(undone.Policies, one)
		if c.Output == "table" {
			fmt.Fprintf(p.Stdout, "deleted: policy %s in vhost %s\n", one.Name, deadletter.Visible(one.VHost))
		}
	}
	switch {
	case c.Output == "json":
		if err := printJSON(p.Stdout, undone, true); err != nil {
			return err
		}
	case len(undone.Policies) > 0:
		fmt.Fprintln(p.Stderr, leftPaused)
	}
	return errors.Join(failed...)
}

// choosePolicies returns those policies of the list that the command line selects.
func (c topologyUndoCmd) choosePolicies(all []api.AdoptedPolicy) []api.AdoptedPolicy {
	list := ofPlace(all, c.Broker, c.VHost)
	if len(c.Queues) == 0 {
		return list
	}
	var queues []string
	for _, a := range list {
		queues = append(queues, a.Queues...)
	}
	queues = topology.Chosen(queues, c.Queues)
	return slices.DeleteFunc(list, func(a api.AdoptedPolicy) bool {
		return !slices.ContainsFunc(a.Queues, func(q string) bool { return slices.Contains(queues, q) })
	})
}

// ofPlace returns the policies of one broker and one vhost. An empty broker means all brokers, and
// an empty vhost means all vhosts.
func ofPlace(all []api.AdoptedPolicy, broker, vhost string) []api.AdoptedPolicy {
	return slices.DeleteFunc(all, func(a api.AdoptedPolicy) bool {
		return broker != "" && broker != a.Broker || vhost != "" && vhost != a.VHost
	})
}

// warnOfReturns is called before queues leave dlo, which means that their policy will no longer
// lead dead letters to dlo. It prints a warning if dlo has sent letters back to these queues. Such
// a letter may still fail again, and then it is lost.
func (f serverFlags) warnOfReturns(p *Program, queues []string) error {
	n := 0
	for some := range slices.Chunk(queues, 50) { // a URL must not become too long
		q := query.Query{}.With(
			query.State, string(deadletter.StatePublishing), string(deadletter.StateRequeued),
		).With(query.Queue, some...)
		var sent api.Count
		if err := f.call(
			p, http.MethodGet, "/letters/count?"+url.Values{"q": {q.String()}, "exact": {"1"}}.Encode(), nil, &sent,
		); err != nil {
			return err
		}
		n += sent.Count
	}
	if n > 0 {
		fmt.Fprintf(
			p.Stderr,
			"dlo has sent %s back to these queues and still watches whether they fail again. A letter that fails after its queue has left is lost. To be safe, pause the retries of these queues with dlo queues pause, and wait until no letter has the state requeued.\n",
			countNoun(n, "letter", "letters"),
		)
	}
	return nil
}

// printAdopted prints the policies that dlo has set in the past, as text for people.
func printAdopted(p *Program, list []api.AdoptedPolicy) {
	for _, a := range list {
		fmt.Fprintf(
			p.Stdout, "policy %s in vhost %s of broker %s, priority %d, set %s by %s\n", a.Name,
			deadletter.Visible(a.VHost), deadletter.Visible(a.Broker), a.Priority, clockTime(a.At),
			deadletter.Visible(a.By),
		)
		for _, q := range a.Queues {
			fmt.Fprintln(p.Stdout, "  "+deadletter.Visible(q))
		}
	}
	if len(list) == 0 {
		fmt.Fprintln(p.Stdout, "dlo has set no policy")
	}
}

// leftPaused is the text that the command line prints after queues have left dlo, so that their
// dead letters no longer come to dlo. It says what happens to the letters of these queues that dlo
// still has.
const leftPaused = "The retries of these queues are paused, because a letter that fails again would not return to dlo. Requeue or discard their letters, or continue with dlo queues resume."

type topologyLeaveCmd struct {
	serverFlags
	Queues []string `arg:"" name:"queue" help:"Queues, by name or glob."`
	Broker string   `name:"broker" help:"Only this broker of the configuration."`
	VHost  string   `name:"vhost" help:"Only this vhost."`
	Yes    bool     `name:"yes" short:"y" help:"Do not ask before policies are changed."`
	Output string   `name:"output" short:"o" enum:"table,json" default:"table" help:"How to print: table or json."`
}

func (c topologyLeaveCmd) Run(p *Program) error {
	var all api.AdoptedPolicies
	if err := c.call(p, http.MethodGet, "/topology/adopted", nil, &all); err != nil {
		return err
	}
	var queues []string
	for _, a := range ofPlace(all.Policies, c.Broker, c.VHost) {
		queues = append(queues, a.Queues...)
	}
	if err := c.warnOfReturns(p, topology.Chosen(queues, c.Queues)); err != nil {
		return err
	}
	if err := c.confirmChange(
		p, c.Yes, "topology leave",
		"take "+deadletter.Visible(strings.Join(c.Queues, ", "))+" out of the policies of dlo",
	); err != nil {
		return err
	}
	var left api.Left
	if err := c.call(p, http.MethodPost, "/topology/leave", api.LeaveRequest{
		Broker: c.Broker,
		VHost:  c.VHost,
		Queues: c.Queues,
	}, &left); err != nil {
		return err
	}
	if c.Output == "json" {
		return printJSON(p.Stdout, left, true)
	}
	for _, q := range left.Queues {
		fmt.Fprintln(p.Stdout, "left: "+deadletter.Visible(q))
	}
	fmt.Fprintln(p.Stderr, leftPaused)
	return nil
}
