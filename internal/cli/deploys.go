package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

type deploysCmd struct {
	Add  deploysAddCmd  `cmd:"" help:"Mark that a version of a service went live: charts show it, and failures that begin after it name it."`
	List deploysListCmd `cmd:"" help:"List the deploys of the last 90 days."`
}

type deploysAddCmd struct {
	answerFlags
	Service string `arg:"" name:"service" help:"What was deployed."`
	Version string `arg:"" name:"version" help:"Its version."`
	Link    string `name:"link" help:"A link to what went live."`
	At      string `name:"at" help:"When, for example 2026-11-20T07:30:00Z; without it, now."`
}

func (c deploysAddCmd) Run(p *Program) error {
	body := api.DeployRequest{Service: c.Service, Version: c.Version, Link: c.Link}
	if c.At != "" {
		at, err := time.Parse(time.RFC3339, c.At)
		if err != nil {
			return fmt.Errorf("%w: --at %q is not a time such as 2026-11-20T07:30:00Z", errUsage, c.At)
		}
		body.At = at
	}
	return add(
		p, c.answerFlags, "/deploys", body,
		func(d deadletter.Deploy) string { return strings.TrimSpace("deploy of " + d.Service + " " + d.Version) },
	)
}

type deploysListCmd struct{ answerFlags }

func (c deploysListCmd) Run(p *Program) error {
	list := listing[deadletter.Deploy]{
		path:  "/deploys",
		key:   "deploys",
		whole: true,
		head:  []string{"WHEN", "SERVICE", "VERSION", "WHO", "LINK"},
		none:  "no deploy was marked",
	}
	return list.run(p, c.answerFlags, func(d deadletter.Deploy) []string {
		return []string{ago(d.At, time.Now()), d.Service, d.Version, d.By, d.Link}
	})
}
