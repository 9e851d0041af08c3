package cli

import (
	"cmp"
	"io"
	"time"

	"github.com/alecthomas/kong"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// grantFlags are the command-line flags that set the rights of a new user or token.
type grantFlags struct {
	Role    string   `required:"" help:"The role: viewer, reader, operator, editor or admin."`
	Reveal  bool     `help:"May see masked data."`
	Purge   bool     `help:"May purge letters."`
	Queues  []string `help:"Only for queues whose name matches one of these globs, for example orders.*,payments.*"`
	VHosts  []string `name:"vhosts" help:"Only for vhosts whose name matches one of these globs."`
	Brokers []string `help:"Only for brokers whose name in the configuration matches one of these globs."`
}

func tokenTable() command {
	add := act("add", "Add a token of the API, and print it. It is shown only once.", tokenAddCmd{},
		"POST /tokens", api.NewSecret{}, "{{.Secret}}")
	add.note = "token {{.Name}} is added. This is the only time that it is shown; set DLO_TOKEN to it."
	return noun("token", groupPeople, "Tokens of the API, for programs and for this command line.",
		list("List the tokens of the API, without their secrets.", nil, "GET /tokens", "tokens", api.Tokens{},
			"name may=grant|grant added=created_at|age by=created_by used=used_at|used from=used_from "+
				"ends=expires_at|ends"),
		add,
		act("revoke", "Revoke a token of the API. Requests with it are refused from then on.", namedCmd{},
			"DELETE /tokens/{name}", nil, "token {{.name}} is revoked"),
	)
}

// TokenFile adds API tokens to a store file. No server may have that file open.
type TokenFile interface {
	Add(name string, g deadletter.Grant, expires time.Time) (secret string, err error)
	io.Closer
}

type tokenAddCmd struct {
	callCmd
	Name string `arg:"" help:"The name, which the audit shows as token:NAME."`
	grantFlags
	Expires due    `json:"expires_at" help:"How long the token is valid, for example 90d. Without this, it never expires."`
	Store   string `json:"-" help:"If nobody can sign in as an admin: add the token to this store file while the server is stopped. No server is contacted."`
}

// Run adds a token. On standard output it prints only the secret, so that scripts can read it.
func (c tokenAddCmd) Run(p *Program, k *kong.Context) error {
	if c.Store == "" {
		return c.callCmd.Run(p, k)
	}
	file, err := p.Tokens(p.Ctx, c.Store)
	if err != nil {
		return err
	}
	defer file.Close()
	g, err := api.GrantRequest(c.grantFlags).Grant()
	if err != nil {
		return err
	}
	t := deadletter.APIToken{Name: c.Name, Grant: g, ExpiresAt: c.Expires.Time}
	secret, err := file.Add(t.Name, t.Grant, t.ExpiresAt)
	if err != nil {
		return err
	}
	raw, err := api.Marshal(api.NewSecret{APIToken: t, Secret: secret})
	return cmp.Or(err, c.printSaying(p, commandOf(k.Selected()), raw))
}

func userTable() command {
	const invited = "{{.Name}} can choose a password at this link, which works once and for 72 hours: {{.Link}}"
	return noun("user", groupPeople, "Manage dlo's own users, who sign in with a password.",
		list("List dlo's own users.", nil, "GET /users", "users", api.Users{},
			"name may=grant|grant added=created_at|age by=created_by signed_in=|signed_in"),
		act("add", "Add one of dlo's own users, and print the link with which the user chooses a password.", struct {
			callCmd
			Name string `arg:"" help:"The name, for example lena or lena@example.com."`
			grantFlags
		}{}, "POST /users", api.Invitation{}, invited),
		act("reset",
			"Take a user's password and sessions away, and print the link with which the user chooses a new password.",
			namedCmd{}, "POST /users/{name}/reset", api.Invitation{}, invited),
		act("remove", "Remove one of dlo's own users, and end the user's sessions.", namedCmd{},
			"DELETE /users/{name}", nil, "user {{.name}} is removed"),
	)
}
