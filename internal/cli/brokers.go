package cli

import (
	"cmp"
	"net/url"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/api"
)

type brokersCmd struct {
	List    brokersListCmd    `cmd:"" help:"List the brokers of the configuration, and whether they are connected."`
	Connect brokersConnectCmd `cmd:"" help:"Try to connect to a broker now, instead of at the end of the back-off."`
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
