package drill

import (
	"context"
	"crypto/rand"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// noRights contains all rights of a user except three that dlo needs. It lacks one right to
// configure, one right to write, and one right to read.
var noRights = rights{Configure: `^(?!dlo\.epoch\.).*`, Write: `^(?!amq\.default$).*`, Read: `^(?!dlo\.letters$).*`}

// userFailures lists the failures in which dlo's user has lost rights, its tag or its password.
var userFailures = []Failure{
	{
		Name:  "rights",
		Does:  "the user loses three rights, one of each kind, and its connections are closed",
		admin: true,
		wave:  waveRights,
		wants: sign{
			kind:     deadletter.ProblemRights,
			severity: deadletter.SeverityPage,
			broker:   mainEntry,
			says:     "It may not write amq.default",
			also:     []string{"It may not configure dlo.epoch.*", "It may not read dlo.letters"},
		},
		make: func(ctx context.Context, g *ground) error {
			if err := g.site.grant(ctx, g.site.user, noRights); err != nil {
				return err
			}
			return g.site.cutNamed(ctx, "dlo ")
		},
	},
	{
		Name:  "management",
		Does:  "the user loses the tag management, so that the management API refuses it",
		admin: true,
		wave:  waveRights,
		wants: sign{
			kind:     deadletter.ProblemManagement,
			severity: deadletter.SeverityPage,
			broker:   mainEntry,
			says:     "the API refuses the user",
		},
		make: func(ctx context.Context, g *ground) error { return g.site.account(ctx, g.site.password, "") },
	},
	{
		Name:  "broker-away",
		Does:  "the password of the user is changed, and its connections are closed; it gets its password back",
		admin: true,
		wave:  waveAway,
		wants: sign{
			kind:     deadletter.ProblemBrokerAway,
			severity: deadletter.SeverityPage,
			broker:   mainEntry,
			page:     "Connection to broker " + mainEntry + " lost",
			status:   503,
		},
		make: func(ctx context.Context, g *ground) error {
			if err := g.site.account(ctx, rand.Text(), "management"); err != nil {
				return err
			}
			return g.site.cutNamed(ctx, "dlo ")
		},
		cure: func(ctx context.Context, g *ground, _ problem) error {
			return g.site.account(ctx, g.site.password, "management")
		},
	},
}
