package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
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
  dlo serve {{.File}}
  dlo try             # in a second terminal: sends a test letter through every step
  dlo topology apply  # asks, then sets policies that lead dead letters to dlo`

// Run looks at the broker, says what it found, and writes the file.
func (c initCmd) Run(p *Program) (err error) {
	if !c.Yes && !terminal(p.Stdin) {
		return fmt.Errorf("%w: init needs --yes when there is no terminal to ask on", errUsage)
	}
	answer := func(question, preset string) (text string) {
		if !c.Yes && err == nil {
			text, err = p.ask(question+" ["+preset+"]: ", false)
		}
		return cmp.Or(text, preset)
	}
	address := cmp.Or(string(c.Broker), p.Getenv("DLO_AMQP_URL"))
	if address == "" {
		address = answer("URL of the broker", config.Defaults().Brokers[0].URL)
	}
	if u, wrong := url.Parse(address); wrong == nil && err == nil && !c.Yes && u.User.Username() != "" {
		if _, set := u.User.Password(); !set && !u.Query().Has("certfile") {
			var password string
			password, err = p.ask("Password of "+u.User.Username()+": ", true)
			u.User = url.UserPassword(u.User.Username(), password)
			address = u.String()
		}
	}
	problems := 0
	if err == nil {
		problems, err = p.explore(address)
	}
	c.Out = answer("Write the configuration to", c.Out)
	if err = cmp.Or(err, p.Ctx.Err()); err == nil {
		err = c.write(p, address)
	}
	if err == nil && problems > 0 {
		err = fmt.Errorf("%w: the file is written, but see the problems above", errPartly)
	}
	return err
}

// explore connects to a broker, and prints what it found and which policies it proposes. It returns
// how many problems there are.
func (p *Program) explore(address string) (problems int, err error) {
	if _, _, err := config.Initial(address, ""); err != nil {
		return 0, fmt.Errorf("%w: the broker: %w", errUsage, err)
	}
	cfg, err := config.Parse("", "", p.Getenv) // for DLO_MANAGEMENT_URL
	if err != nil {
		return 0, err
	}
	cfg.Brokers[0].URL = address
	status, vhosts, s, unknown := p.Explore(p.Ctx, cfg)
	found := map[string]any{"Brokers": []deadletter.BrokerStatus{status}}
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
		found["Plans"] = api.NewPlans(plan.make([]*topology.Snapshot{&after}))
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
	text, password, err := config.Initial(address, secret)
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
	return tell(p.Stdout, initText, map[string]any{"File": c.Out, "Secret": secret})
}

// writeNew writes a file that does not exist yet.
func writeNew(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w: %s exists, and init overwrites nothing: name another file with --out", errUsage, path)
	} else if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Close()); err != nil {
		os.Remove(path)
	}
	return err
}
