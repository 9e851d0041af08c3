package cli

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/topology"
)

type topologyCmd struct {
	Check topologyCheckCmd `cmd:"" help:"Report what will lose dead letters: on the brokers of the running server, on any broker, or in a definitions file."`
	Plan  topologyPlanCmd  `cmd:"" help:"Show policies that route dead letters to dlo, as commands or as a definitions file. Nothing is changed."`
	Apply topologyApplyCmd `cmd:"" help:"Plan policies that route dead letters to dlo, set them, and prove each with a message. If that fails, all changes are taken back."`
	Undo  topologyUndoCmd  `cmd:"" help:"Delete the policies that dlo has set, so that their queues are as before. Without a queue, list them."`
	Leave topologyLeaveCmd `cmd:"" help:"Take queues out of the policies that dlo has set. The other queues keep their policies."`
}

type topologyCheckCmd struct {
	serverFlags
	File   string   `arg:"" optional:"" name:"file" help:"A definitions file, as rabbitmqctl export_definitions writes it; - is standard input. No broker and no server is asked."`
	Broker string   `name:"broker" help:"The URL of a management API with user and password, http://user:password@host:15672, or @ and a file with that URL. The broker is only read. A user with the tag management is enough."`
	Metric string   `name:"metrics" help:"With --broker, the URL of a node's metrics (rabbitmq_prometheus), which count the messages that it has dropped. The default is port 15692 of the broker's host, if that answers."`
	VHost  []string `name:"vhost" help:"Only these vhosts."`
	Inbox  []string `name:"inbox" default:"dlo.letters" help:"The dead-letter queues that dlo drains, for a file or --broker."`
	Output string   `name:"output" short:"o" enum:"table,json,jsonl" default:"table" help:"How to print: table, json or jsonl."`
}

// findingsError is the error for a check that found at least one fault. Its exit code is 5.
type findingsError struct{ n int }

func (e findingsError) Error() string { return countNoun(e.n, "finding", "findings") }
func (e findingsError) ExitCode() int { return exitFindings }

func (c topologyCheckCmd) Run(p *Program) error {
	checked, err := c.check(p)
	if err != nil {
		return err
	}
	dropped, unknown := c.droppedCount(p)
	if err := c.print(p.Stdout, checked, dropped); err != nil {
		return err
	}
	if unknown != nil {
		return unknown
	}
	if n := faultCount(checked.Findings); n > 0 {
		return findingsError{n}
	}
	return unreadError(checked)
}

// faultCount returns the number of findings that are faults. A finding of kind topology.Moved is
// not a fault: it only says that something moves messages out of a queue, for example a shovel.
func faultCount(list []api.Finding) (n int) {
	for _, f := range list {
		if f.Kind != string(topology.Moved) {
			n++
		}
	}
	return n
}

// check returns the findings from the source that the command line names: a file, a broker or the
// server.
func (c topologyCheckCmd) check(p *Program) (checked api.Topology, err error) {
	var snapshots []topology.Snapshot
	switch {
	case c.Broker == "" && c.Metric != "":
		return checked, fmt.Errorf("%w: --metrics works only with --broker", errUsage)
	case c.File != "" && c.Broker != "":
		return checked, fmt.Errorf("%w: give a file or --broker, not both", errUsage)
	case c.File != "":
		text, err := readDefinitions(p, c.File)
		if err != nil {
			return checked, err
		}
		if snapshots, err = topology.ReadDefinitions(text); err != nil {
			return checked, fmt.Errorf("%s: %w", c.File, err)
		}
	case c.Broker != "":
		management, err := managementURL(c.Broker)
		if err != nil {
			return checked, err
		}
		if snapshots, err = p.Look(p.Ctx, management, c.VHost); err != nil {
			return checked, err
		}
	default:
		if err := c.call(p, http.MethodGet, "/topology/findings", nil, &checked); err != nil {
			return checked, err
		}
		return c.inVHosts(checked)
	}
	var reports []topology.Report
	for i := range snapshots {
		reports = append(reports, topology.ReportOn(&snapshots[i], topology.Options{Inboxes: c.Inbox}))
	}
	return c.inVHosts(api.NewTopology(reports))
}

// droppedCount returns how many rejected messages the node at --broker has dropped, or 0 if the
// number is unknown. The user may give the URL of the metrics that contain this number. Without
// that URL, droppedCount ignores errors, because not every broker has the metrics.
func (c topologyCheckCmd) droppedCount(p *Program) (int64, error) {
	if c.Broker == "" || p.Dropped == nil || c.Output != "table" {
		return 0, nil
	}
	management, err := managementURL(c.Broker)
	if err != nil {
		return 0, err
	}
	n, err := p.Dropped(p.Ctx, management, c.Metric)
	if c.Metric == "" {
		err = nil
	}
	return n, err
}

// managementURL returns the URL of the management API from the value of --broker. If the value
// begins with @, the rest is the name of a file that contains the URL. With a file, the password
// does not appear in the list of processes.
func managementURL(broker string) (string, error) {
	file, ok := strings.CutPrefix(broker, "@")
	if !ok {
		return broker, nil
	}
	text, err := os.ReadFile(file)
	return strings.TrimSpace(string(text)), err
}

// maxDefinitions is the maximum size of a definitions file in bytes. A file with about 100,000
// queues is smaller.
const maxDefinitions = 64 << 20

// readDefinitions reads a definitions file. The name "-" stands for standard input.
func readDefinitions(p *Program, name string) ([]byte, error) {
	in, err := openInput(p, name)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	text, err := io.ReadAll(io.LimitReader(in, maxDefinitions+1))
	if err == nil && len(text) > maxDefinitions {
		err = fmt.Errorf("%s is larger than %d MiB", name, maxDefinitions>>20)
	}
	return text, err
}

// inVHosts returns the findings in the vhosts that --vhost names, and omits all others. It does the
// same with the times at which the vhosts were read. It returns an error if one of the named vhosts
// does not exist.
func (c topologyCheckCmd) inVHosts(t api.Topology) (api.Topology, error) {
	if len(c.VHost) == 0 {
		return t, nil
	}
	var there []string
	for _, l := range t.Looks {
		there = append(there, l.VHost)
	}
	kept := api.Topology{Findings: []api.Finding{}, Looks: []api.Look{}}
	for _, vhost := range c.VHost {
		if !slices.Contains(there, vhost) {
			return kept, noVHost(vhost, there)
		}
		for _, f := range t.Findings {
			if f.VHost == vhost {
				kept.Findings = append(kept.Findings, f)
			}
		}
		for _, l := range t.Looks {
			if l.VHost == vhost {
				kept.Looks = append(kept.Looks, l)
			}
		}
	}
	return kept, nil
}

// noVHost returns the error for a vhost that the command line names, but that was not read. The
// parameter "read" lists the vhosts that were read.
func noVHost(vhost string, read []string) error {
	if len(read) == 1 && read[0] == "" {
		return fmt.Errorf("%w: the file does not name its vhost; leave out --vhost", errUsage)
	}
	return fmt.Errorf(
		"%w: there is no vhost %s; there is: %s", errUsage, deadletter.Visible(vhost),
		deadletter.Visible(strings.Join(slices.Compact(slices.Sorted(slices.Values(read))), ", ")),
	)
}

func (c topologyCheckCmd) print(out io.Writer, t api.Topology, dropped int64) error {
	switch c.Output {
	case "json":
		return printJSON(out, t, true)
	case "jsonl":
		for _, f := range t.Findings {
			if err := printJSON(out, f, false); err != nil {
				return err
			}
		}
		return nil
	}
	printTopology(out, t, dropped)
	return nil
}

// unreadError returns an error that lists everything that could not be read. It returns nil if
// everything was read.
func unreadError(t api.Topology) error {
	var list []string
	for _, l := range t.Looks {
		if l.Failed != "" {
			list = append(list, l.Broker+" "+l.VHost+": "+l.Failed)
		}
		for _, g := range l.Gaps {
			list = append(list, l.Broker+" "+l.VHost+": "+g.What+": "+g.Why)
		}
	}
	if len(list) == 0 {
		return nil
	}
	return errors.New("could not look at everything: " + strings.Join(list, "; "))
}

// dropping contains the kinds of findings that mean that messages are lost. If a queue has such a
// finding, the broker drops the messages that the queue's consumers reject.
var dropping = map[string]bool{
	string(topology.NoExchange): true, string(topology.ExchangeMissing): true, string(topology.NoBinding): true,
	string(topology.QueueMissing): true, string(topology.PolicyShadowed): true,
}

// printTopology prints findings as text for people. The first line says how many queues drop
// messages. The findings follow, and successive findings with the same explanation share it. The
// parameter "dropped" is the number of rejected messages that the node has dropped since it
// started. If this number is unknown, "dropped" is 0.
func printTopology(out io.Writer, t api.Topology, dropped int64) {
	queues, drops := 0, map[[3]string]bool{}
	for _, l := range t.Looks {
		queues += l.Queues
	}
	for _, f := range t.Findings {
		if dropping[f.Kind] {
			drops[[3]string{f.Broker, f.VHost, f.Queue}] = true
		}
	}
	var first string
	switch {
	case len(drops) == 1:
		first = fmt.Sprintf("1 of %d queues will drop what its consumers reject", queues)
	case len(drops) > 0:
		first = fmt.Sprintf("%d of %d queues will drop what their consumers reject", len(drops), queues)
	case unreadError(t) != nil:
		first = fmt.Sprintf(
			"%s, %s; it is not known whether a queue drops what its consumers reject",
			countNoun(queues, "queue", "queues"), countNoun(faultCount(t.Findings), "finding", "findings"),
		)
	default:
		first = fmt.Sprintf(
			"%s, %s; no queue drops what its consumers reject", countNoun(queues, "queue", "queues"),
			countNoun(faultCount(t.Findings), "finding", "findings"),
		)
	}
	if dropped > 0 {
		first += fmt.Sprintf(
			"; the node has dropped %s since it started", countNoun(int(dropped), "message", "messages"),
		)
	}
	fmt.Fprintln(out, first)
	brokers := brokersOf(t.Looks, func(l api.Look) string { return l.Broker })
	for _, l := range t.Looks {
		if l.Failed != "" && !l.ReadAt.IsZero() {
			fmt.Fprintf(
				out, "\ncould not look at %s now: %s\n  what is known about it is from %s\n",
				vhostOf(l.Broker, l.VHost, brokers > 1), deadletter.Visible(l.Failed), clockTime(l.ReadAt),
			)
		}
	}
	for i, f := range t.Findings {
		if i == 0 || !explainedBy(t.Findings[i-1], f) {
			fmt.Fprintf(out, "\n%s  %s\n", f.Severity, f.Kind)
		}
		title := f.Title
		if len(t.Looks) > 1 {
			title += " (" + vhostOf(f.Broker, f.VHost, brokers > 1) + ")"
		}
		if since := f.Since; !since.IsZero() {
			title += ", since " + clockTime(since)
		}
		fmt.Fprintln(out, "  "+deadletter.Visible(title))
		if i+1 < len(t.Findings) && explainedBy(f, t.Findings[i+1]) {
			continue
		}
		for _, part := range [][2]string{{"loses", f.Loses}, {"why", f.Why}, {"cure", f.Cure}} {
			fmt.Fprintf(out, "    %-6s %s\n", part[0]+":", deadletter.Visible(part[1]))
		}
		if f.Sure == string(topology.Likely) {
			fmt.Fprintln(out, "    sure:  this is likely, not certain")
		}
	}
	for _, l := range t.Looks {
		for _, g := range l.Gaps {
			fmt.Fprintf(
				out, "\nnot known: %s of %s: %s\n", deadletter.Visible(g.What), vhostOf(l.Broker, l.VHost, brokers > 1),
				deadletter.Visible(g.Why),
			)
		}
	}
}

// clockTime formats a time in UTC, with minutes.
func clockTime(at time.Time) string { return at.UTC().Format("2006-01-02 15:04 UTC") }

// explainedBy reports whether two findings have the same explanation. They may differ in the queue,
// the vhost, the broker, the title and the time.
func explainedBy(a, b api.Finding) bool {
	a.Queue, a.Title, a.Since, a.Broker, a.VHost = b.Queue, b.Title, b.Since, b.Broker, b.VHost
	return a == b
}

// countNoun returns a number followed by a noun. It uses the form "one" for 1 and the form "many"
// for all other numbers.
func countNoun(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
