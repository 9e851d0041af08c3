package cli

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/config"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/topology"
)

type initCmd struct {
	Broker atFile `placeholder:"URL" help:"The URL of the broker, or @ and a file with it; otherwise DLO_AMQP_URL."`
	Out    string `default:"dlo.yaml" help:"The file to write. A file that exists is not overwritten."`
	Yes    bool   `short:"y" help:"Do not ask; the flags and the defaults are the answers."`
}

const initText = `
{{.File}} is written{{with .Secret}}, and {{.}} with the password{{end}}. Next:
{{if .Other}}  unset DLO_AMQP_URL  # it names another broker, to which dlo serve would connect
{{end}}  dlo serve {{.File}}
  dlo try             # in a second terminal: sends a test letter through every step
  dlo topology apply  # asks, then sets policies that lead dead letters to dlo`

const amqpVariable, managementVariable = "DLO_AMQP_URL", "DLO_MANAGEMENT_URL"

// Run looks at the broker, says what it found, and writes the file.
func (c initCmd) Run(p *Program) error {
	if !c.Yes && !terminal(p.Stdin) {
		return fmt.Errorf("%w: init needs --yes when there is no terminal to ask on", errUsage)
	}
	if err := isFree(c.Out); err != nil {
		return err
	}
	address, err := c.address(p)
	if err != nil {
		return err
	}
	problems, err := p.explore(address)
	if err != nil {
		return err
	}
	for preset := c.Out; ; {
		if c.Out, err = c.answer(p, "Write the configuration to", preset); err != nil {
			return err
		}
		taken := isFree(c.Out)
		if taken == nil {
			break
		}
		if c.Yes {
			return taken
		}
		fmt.Fprintln(p.Stderr, taken)
	}
	if err := cmp.Or(p.Ctx.Err(), c.write(p, address)); err != nil {
		return err
	}
	if problems > 0 {
		return fmt.Errorf("%w: the file is written, but see the problems above", errPartly)
	}
	return nil
}

// answer asks a question, unless nothing is asked. An empty answer and "yes" mean the preset.
func (c initCmd) answer(p *Program, question, preset string) (string, error) {
	if c.Yes {
		return preset, nil
	}
	text, err := p.ask(question+" ["+preset+"]: ", false)
	if slices.Contains([]string{"", "y", "yes"}, strings.ToLower(text)) {
		text = preset
	}
	return text, err
}

// address returns the URL of the broker, with the password.
func (c initCmd) address(p *Program) (address string, err error) {
	address = cmp.Or(string(c.Broker), p.Getenv(amqpVariable))
	if address == "" {
		if address, err = c.answer(p, "URL of the broker", config.Defaults().Brokers[0].URL); err != nil {
			return "", err
		}
	}
	if _, _, err := config.Initial(address, "", ""); err != nil {
		return "", fmt.Errorf("%w: the broker: %w", errUsage, err)
	}
	u, err := url.Parse(address)
	if err != nil || c.Yes || u.User.Username() == "" || u.Query().Has("certfile") {
		return address, err
	}
	if _, set := u.User.Password(); set {
		return address, nil
	}
	password, err := p.ask("Password of "+u.User.Username()+": ", true)
	u.User = url.UserPassword(u.User.Username(), password)
	return u.String(), err
}

// planLines is the number of lines of the proposed policies that init shows.
const planLines = 30

// explore connects to a broker, and prints what it found and which policies it proposes. It returns
// how many problems there are.
func (p *Program) explore(address string) (problems int, err error) {
	cfg, err := config.Parse("", "", func(name string) string {
		if name == amqpVariable {
			return address
		}
		return p.Getenv(name)
	})
	if err != nil {
		return 0, err
	}
	status, vhosts, s, unknown := p.Explore(p.Ctx, cfg)
	refused := func(r deadletter.Right) bool {
		return r.State == deadletter.RightRefused && r.Operation == "configure"
	}
	found := map[string]any{
		"Brokers": []deadletter.BrokerStatus{status}, "Refused": slices.ContainsFunc(status.Rights, refused),
	}
	switch {
	case !status.Connected:
		const cure = "%w; check the user, the password and the address: amqps is with TLS, and ?cacertfile=FILE " +
			"names the CA"
		return 0, fmt.Errorf(cure, unknown)
	case unknown != nil:
		found["Unknown"] = unknown.Error()
	default:
		b := cfg.Brokers[0]
		report := topology.ReportOn(&s, topology.Options{Inboxes: b.Inboxes})
		found["Verdict"] = newVerdict(api.NewTopology([]topology.Report{report}), 0)
		after := s.WithInbox(b.Exchange, b.Inboxes[0])
		plan := topologyPlanCmd{Exchange: b.Exchange, Inbox: b.Inboxes}
		plans := api.NewPlans(plan.make([]*topology.Snapshot{&after}))
		text, err := textOf("plans", plans)
		if err != nil {
			return 0, err
		}
		lines := strings.SplitAfter(text, "\n")
		found["Plans"], found["Lines"] = plans, block(strings.Join(lines[:min(len(lines), planLines)], ""))
		found["More"] = max(0, len(lines)-planLines)
		found["Others"] = slices.DeleteFunc(vhosts, func(vhost string) bool { return vhost == status.VHost })
	}
	return len(status.Problems()), tell(p.Stdout, `{{template "explored" .}}`, found)
}

// write writes the configuration file, and a file for the password if there is one. Only the user
// can read them.
func (c initCmd) write(p *Program, address string) error {
	secret, err := filepath.Abs(strings.TrimSuffix(c.Out, filepath.Ext(c.Out)) + ".password")
	if err != nil {
		return err
	}
	text, password, err := config.Initial(address, p.Getenv(managementVariable), secret)
	if password == "" {
		secret = ""
	} else if err == nil {
		err = writeNew(secret, password+"\n")
	}
	if err != nil {
		return err
	}
	if err := writeNew(c.Out, text); err != nil {
		os.Remove(secret)
		return err
	}
	about := map[string]any{"File": deadletter.ShellWord(c.Out), "Secret": secret}
	if other := p.Getenv(amqpVariable); other != "" {
		about["Other"] = other != address && other != withoutPassword(address)
	}
	return tell(p.Stdout, initText, about)
}

// withoutPassword returns the URL of a broker without its password.
func withoutPassword(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.User == nil {
		return address
	}
	u.User = url.User(u.User.Username())
	return u.String()
}

// isFree returns an error if a file with a name cannot be written, because there is one.
func isFree(path string) error {
	if path == "-" {
		return fmt.Errorf("%w: init writes a file, and a second one for a password: name a file with --out", errUsage)
	}
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("%w: %s exists, and init overwrites nothing: name another file with --out", errUsage, path)
	}
	return nil
}

// writeNew writes a file that does not exist yet.
func writeNew(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return cmp.Or(isFree(path), err)
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Close()); err != nil {
		os.Remove(path)
	}
	return err
}
