package cli

import (
	"cmp"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/config"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

type brokersCmd struct {
	List    brokersListCmd    `cmd:"" help:"List the brokers of the configuration, and whether they are connected."`
	Connect brokersConnectCmd `cmd:"" help:"Try to connect to a broker now, instead of at the end of the back-off."`
	Rename  brokersRenameCmd  `cmd:"" help:"Rename a broker in the store, after its name in the configuration. No dlo may be running."`
}

// brokerCmd is for people who name one broker: `dlo broker rename` is `dlo brokers rename`.
type brokerCmd struct {
	Rename brokersRenameCmd `cmd:""`
}

type brokersListCmd struct{ answerFlags }

func (c brokersListCmd) Run(p *Program) error {
	list := listing[api.Broker]{
		path:  "/brokers",
		key:   "brokers",
		whole: true,
		head:  []string{"BROKER", "LABEL", "VHOST", "CONNECTED", "SINCE", "RABBITMQ", "INBOXES", "NOTE"},
		none:  "there are no brokers",
	}
	return list.run(p, c.answerFlags, func(b api.Broker) []string {
		version := ""
		if b.Version != nil {
			version = *b.Version
		}
		return []string{
			b.Name, b.Label, b.VHost, yesNo(b.Connected), ago(b.Since, time.Now()), version,
			strings.Join(b.Inboxes, ", "), cmp.Or(b.Blocked, b.Reason),
		}
	})
}

type brokersConnectCmd struct {
	answerFlags
	Name string `arg:"" name:"broker" help:"The broker, by its name in the configuration."`
}

func (c brokersConnectCmd) Run(p *Program) error {
	return add(p, c.answerFlags, "/brokers/"+url.PathEscape(c.Name)+"/connect", nil, func(b api.Broker) string {
		if b.Connected {
			return "broker " + b.Name + " is connected"
		}
		return "broker " + b.Name + " is not connected: " + b.Reason
	})
}

type brokersRenameCmd struct {
	Old string `arg:"" name:"old" help:"The name in the store, which the configuration has no more."`
	New string `arg:"" name:"new" help:"The new name, which the configuration has already."`
	config.File
}

func (c brokersRenameCmd) Run(p *Program) error {
	path, err := c.Path(p.Getenv)
	if err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	cfg, err := config.Load(path, p.Getenv)
	if err != nil {
		return err
	}
	if err := p.Rename(p.Ctx, cfg, c.Old, c.New); err != nil {
		return err
	}
	const text = "broker %s has everything of broker %s; write the new name into rules, grants and saved views\n"
	_, err = fmt.Fprintf(p.Stdout, text, deadletter.Visible(c.New), deadletter.Visible(c.Old))
	return err
}
