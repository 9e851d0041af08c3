package cli

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/topology"
)

func topologyTable() command {
	check := list(
		"Report what will lose dead letters: on the brokers of the running server, on any broker, or in a "+
			"definitions file.",
		topologyCheckCmd{}, "GET /topology/findings", "findings", api.Topology{},
		"severity kind broker vhost queue since=since|time sure title cure")
	check.name = "check"
	return noun("topology", groupBrokers, "Find faults that lose dead letters, and cure them with policies.",
		check,
		own("plan", "Show policies that route dead letters to dlo, as commands or as a definitions file. Nothing is changed.",
			topologyPlanCmd{}),
		own("apply", "Plan policies that route dead letters to dlo, set them, and prove each with a message. "+
			"If that fails, all changes are taken back.", topologyApplyCmd{}),
		own("undo",
			"Delete the policies that dlo has set, so that their queues are as before. Without a queue, list them.",
			topologyUndoCmd{}),
		own("leave", "Take queues out of the policies that dlo has set. The other queues keep their policies.",
			topologyLeaveCmd{}),
	)
}

type topologyCheckCmd struct {
	answerFlags
	File   string   `arg:"" optional:"" name:"file" help:"A definitions file, as rabbitmqctl export_definitions writes it, or manifests of Kubernetes; - is standard input. No broker and no server is asked."`
	Broker atFile   `help:"The URL of a management API with user and password, http://user:password@host:15672, or @ and a file with that URL. The broker is only read. A user with the tag management is enough."`
	Metric string   `name:"metrics" help:"With --broker, the URL of a node's metrics (rabbitmq_prometheus), which count the messages that it has dropped. The default is port 15692 of the broker's host, if that answers."`
	VHost  []string `name:"vhost" help:"Only these vhosts."`
	Inbox  []string `name:"inbox" default:"dlo.letters" help:"The dead-letter queues that dlo drains, for a file or --broker."`
}

// findingsError is the error for a check that found at least one fault. Its exit code is 5.
type findingsError struct{ n int }

func (e findingsError) Error() string { return deadletter.Plural(e.n, "finding", "findings") }
func (e findingsError) ExitCode() int { return exitFindings }

// Run prints the findings, and returns an error if there are faults. JSON output is the whole
// answer.
func (c topologyCheckCmd) Run(p *Program, k *kong.Context) error {
	checked, err := c.check(p)
	if err != nil {
		return err
	}
	if c.Output == "table" {
		dropped, unknown := c.droppedCount(p)
		err = errors.Join(tell(p.Stdout, `{{template "check" .}}`, newVerdict(checked, dropped)), unknown)
	} else {
		err = c.printWhole(p, commandOf(k.Selected()), checked)
	}
	if n := faultCount(checked.Findings); err == nil && n > 0 {
		return findingsError{n}
	}
	return cmp.Or(err, unreadError(checked))
}

// faultCount returns the number of findings that are faults. A finding of kind topology.Moved is
// not a fault: it only says that something moves messages out of a queue, for example a shovel.
func faultCount(list []topology.Finding) (n int) {
	for _, f := range list {
		if f.Kind != topology.Moved {
			n++
		}
	}
	return n
}

// check returns the findings from the source that the command line names: a file, a broker or the
// server.
func (c topologyCheckCmd) check(p *Program) (checked api.Topology, err error) {
	switch {
	case c.Broker == "" && c.Metric != "":
		return checked, fmt.Errorf("%w: --metrics works only with --broker", errUsage)
	case c.File != "" && c.Broker != "":
		return checked, fmt.Errorf("%w: give a file or --broker, not both", errUsage)
	case c.File == "" && c.Broker == "":
		checked, _, err = fetch[api.Topology](c.serverFlags, p, http.MethodGet, "/topology/findings", nil)
		if err != nil {
			return checked, err
		}
		return c.inVHosts(checked)
	}
	snapshots, err := look(p, c.File, c.Broker, c.VHost)
	if err != nil {
		return checked, err
	}
	var reports []topology.Report
	for i := range snapshots {
		reports = append(reports, topology.ReportOn(&snapshots[i], topology.Options{Inboxes: c.Inbox}))
	}
	return c.inVHosts(api.NewTopology(reports))
}

// look returns what a definitions file says about its vhosts, or what a broker says.
func look(p *Program, file string, broker atFile, vhosts []string) ([]topology.Snapshot, error) {
	if file == "" {
		return p.Look(p.Ctx, string(broker), vhosts)
	}
	text, err := readInput(p, file)
	if err != nil {
		return nil, err
	}
	snapshots, err := topology.ReadDefinitions(text)
	if err != nil {
		err = fmt.Errorf("%s: %w", file, err)
	}
	return snapshots, err
}

// droppedCount returns how many rejected messages the node at --broker has dropped, or 0 if the
// number is unknown. The user may give the URL of the metrics that contain this number. Without
// that URL, droppedCount ignores errors, because not every broker has the metrics.
func (c topologyCheckCmd) droppedCount(p *Program) (int, error) {
	if c.Broker == "" || p.Dropped == nil {
		return 0, nil
	}
	n, err := p.Dropped(p.Ctx, string(c.Broker), c.Metric)
	if c.Metric == "" {
		err = nil
	}
	return int(n), err
}

// atFile is the name of a broker, or the URL of its management API. After @ it is the name of a
// file that contains the URL, so that the password does not appear in the list of processes.
type atFile string

// UnmarshalText reads the file.
func (a *atFile) UnmarshalText(text []byte) (err error) {
	if file, ok := strings.CutPrefix(string(text), "@"); ok {
		text, err = os.ReadFile(file)
	}
	*a = atFile(strings.TrimSpace(string(text)))
	return err
}

// inVHosts returns the findings in the vhosts that --vhost names, and omits all others. It does the
// same with the times at which the vhosts were read. It returns an error if one of the named vhosts
// does not exist.
func (c topologyCheckCmd) inVHosts(t api.Topology) (api.Topology, error) {
	var there []string
	for _, l := range t.Looks {
		there = append(there, l.VHost)
	}
	other := func(vhost string) bool { return len(c.VHost) > 0 && !slices.Contains(c.VHost, vhost) }
	t.Findings = slices.DeleteFunc(t.Findings, func(f topology.Finding) bool { return other(f.VHost) })
	t.Looks = slices.DeleteFunc(t.Looks, func(l topology.Report) bool { return other(l.VHost) })
	return t, noVHost(c.VHost, there)
}

// noVHost returns an error if the command line names a vhost that was not read.
func noVHost(named, read []string) error {
	for _, vhost := range named {
		switch {
		case slices.Contains(read, vhost):
		case len(read) == 1 && read[0] == "":
			return fmt.Errorf("%w: the file does not name its vhost; leave out --vhost", errUsage)
		default:
			slices.Sort(read)
			there := strings.Join(slices.Compact(read), ", ")
			return fmt.Errorf("%w: there is no vhost %s; there is: %s", errUsage, vhost, there)
		}
	}
	return nil
}

// unreadError returns an error that lists everything that could not be read. It returns nil if
// everything was read.
func unreadError(t api.Topology) error {
	text, err := textOf("unread", t)
	if text != "" {
		err = errors.New(text)
	}
	return err
}

// dropping contains the kinds of findings that mean that messages are lost. If a queue has such a
// finding, the broker drops the messages that the queue's consumers reject.
var dropping = []topology.Kind{
	topology.NoExchange, topology.ExchangeMissing, topology.NoBinding, topology.QueueMissing, topology.PolicyShadowed,
}

// verdict is what a check says about findings, for people. Those that have one explanation are
// together.
type verdict struct {
	api.Topology
	Alike   [][]topology.Finding
	Queues  int  // all of them
	Drops   int  // queues that drop what their consumers reject
	Faults  int  // findings that are faults
	Unread  bool // something could not be read
	Dropped int  // rejected messages that the node has dropped since it started; 0 = unknown
}

func newVerdict(t api.Topology, dropped int) verdict {
	v := verdict{Topology: t, Faults: faultCount(t.Findings), Unread: unreadError(t) != nil, Dropped: dropped}
	for _, l := range t.Looks {
		v.Queues += l.Queues
	}
	drops := map[[3]string]bool{}
	for i, f := range t.Findings {
		ignored := f.Kind == topology.PolicyIgnored && f.Severity == deadletter.SeverityPage
		if ignored || slices.Contains(dropping, f.Kind) {
			for _, queue := range f.Queues() {
				drops[[3]string{f.Broker, f.VHost, queue}] = true
			}
		}
		if i == 0 || !explainedBy(t.Findings[i-1], f) {
			v.Alike = append(v.Alike, nil)
		}
		last := &v.Alike[len(v.Alike)-1]
		*last = append(*last, f)
	}
	v.Drops = len(drops)
	return v
}

// explainedBy reports whether two findings have the same explanation. They may differ in the queue,
// the vhost, the broker, the title and the time.
func explainedBy(a, b topology.Finding) bool {
	a.Broker, a.VHost = b.Broker, b.VHost
	return a.Alike(b)
}
