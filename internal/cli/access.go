package cli

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

type whoamiCmd struct{ answerFlags }

// Run prints the user's name and grants, as the server reports them.
func (c whoamiCmd) Run(p *Program) error {
	var me api.Me
	if printed, err := c.fetch(p, http.MethodGet, "/me", nil, &me); printed || err != nil {
		return err
	}
	fmt.Fprintln(p.Stdout, deadletter.Visible(me.Name))
	for _, g := range me.Grants {
		fmt.Fprintln(p.Stdout, "  "+grantWords(g))
	}
	return nil
}

// grantWords returns a one-line description of a grant.
func grantWords(g api.Grant) string {
	text := g.Role
	if g.Reveal {
		text += ", reveal"
	}
	if g.Purge {
		text += ", purge"
	}
	for _, part := range []struct {
		name  string
		globs []string
	}{{"queues", g.Queues}, {"vhosts", g.VHosts}, {"brokers", g.Brokers}} {
		if len(part.globs) > 0 {
			text += ", " + part.name + " " + deadletter.Visible(strings.Join(part.globs, " "))
		}
	}
	if g.FromRabbitMQ {
		text += ", queues that RabbitMQ lets you write to"
	}
	return text
}

// grantFlags are the command-line flags that set the rights of a new user or token.
type grantFlags struct {
	Role    string   `name:"role" required:"" help:"The role: viewer, reader, operator, editor or admin."`
	Reveal  bool     `name:"reveal" help:"May see masked data."`
	Purge   bool     `name:"purge" help:"May purge letters."`
	Queues  []string `name:"queues" help:"Only for queues whose name matches one of these globs, for example orders.*,payments.*"`
	VHosts  []string `name:"vhosts" help:"Only for vhosts whose name matches one of these globs."`
	Brokers []string `name:"brokers" help:"Only for brokers whose name in the configuration matches one of these globs."`
}

func (f grantFlags) request() api.GrantRequest { return api.GrantRequest(f) }

type tokenCmd struct {
	Add    tokenAddCmd    `cmd:"" help:"Add a token of the API, and print it. It is shown only once."`
	List   tokenListCmd   `cmd:"" help:"List the tokens of the API, without their secrets."`
	Revoke tokenRevokeCmd `cmd:"" help:"Revoke a token of the API. Requests with it are refused from then on."`
}

// TokenFile adds API tokens to a store file. No server may have that file open.
type TokenFile interface {
	Add(name string, g deadletter.Grant, expires time.Time) (secret string, err error)
	io.Closer
}

type tokenAddCmd struct {
	answerFlags
	Name string `arg:"" name:"name" help:"The name, which the audit shows as token:NAME."`
	grantFlags
	Expires string `name:"expires" help:"How long the token is valid, for example 90d. Without this, it never expires."`
	Store   string `name:"store" help:"If nobody can sign in as an admin: add the token to this store file while the server is stopped. No server is contacted."`
}

// Run adds a token. On standard output it prints only the secret, so that scripts can read it.
func (c tokenAddCmd) Run(p *Program) error {
	var expires time.Time
	if c.Expires != "" {
		in, err := deadletter.ParseDuration(c.Expires)
		if err != nil || in <= 0 {
			return fmt.Errorf("%w: --expires %q is not a duration such as 90d or 12h", errUsage, c.Expires)
		}
		expires = time.Now().Add(in).UTC().Truncate(time.Second)
	}
	if c.Store != "" {
		file, err := p.Tokens(p.Ctx, c.Store)
		if err != nil {
			return err
		}
		defer file.Close()
		g, err := c.request().Grant()
		if err != nil {
			return err
		}
		secret, err := file.Add(c.Name, g, expires)
		if err != nil {
			return err
		}
		return printSecret(p, c.Name, secret)
	}
	var added api.NewSecret
	body := api.TokenRequest{Name: c.Name, GrantRequest: c.request(), ExpiresAt: expires}
	if printed, err := c.fetch(p, http.MethodPost, "/tokens", body, &added); printed || err != nil {
		return err
	}
	return printSecret(p, c.Name, added.Secret)
}

func printSecret(p *Program, name, secret string) error {
	fmt.Fprintf(p.Stderr, "token %s is added. This is the only time that it is shown; set DLO_TOKEN to it.\n", name)
	_, err := fmt.Fprintln(p.Stdout, secret)
	return err
}

type userCmd struct {
	Add    userAddCmd    `cmd:"" help:"Add one of dlo's own users, and print the link with which the user chooses a password."`
	List   userListCmd   `cmd:"" help:"List dlo's own users."`
	Reset  userResetCmd  `cmd:"" help:"Take a user's password and sessions away, and print the link with which the user chooses a new password."`
	Remove userRemoveCmd `cmd:"" help:"Remove one of dlo's own users, and end the user's sessions."`
}

type userAddCmd struct {
	answerFlags
	Name string `arg:"" name:"name" help:"The name, for example lena or lena@example.com."`
	grantFlags
}

func (c userAddCmd) Run(p *Program) error {
	return add(p, c.answerFlags, "/users", api.UserRequest{Name: c.Name, GrantRequest: c.request()}, invitationWords)
}

func invitationWords(i api.Invitation) string {
	return i.Name + " can choose a password at this link, which works once and for 72 hours: " + i.Link
}

type userListCmd struct{ answerFlags }

func (c userListCmd) Run(p *Program) error {
	list := listing[api.User]{
		path:  "/users",
		key:   "users",
		whole: true,
		head:  []string{"NAME", "MAY", "ADDED", "BY", "SIGNED IN"},
		none:  "there are no users",
	}
	return list.run(p, c.answerFlags, func(u api.User) []string {
		in := "never"
		if !u.SignedInAt.IsZero() {
			in = ago(u.SignedInAt, time.Now())
		} else if u.Invited {
			in = "never; invited"
		}
		return []string{u.Name, grantWords(u.Grant), ago(u.CreatedAt, time.Now()), u.CreatedBy, in}
	})
}

type userResetCmd struct {
	answerFlags
	Name string `arg:"" name:"name" help:"The name of the user."`
}

func (c userResetCmd) Run(p *Program) error {
	return add(p, c.answerFlags, "/users/"+url.PathEscape(c.Name)+"/reset", struct{}{}, invitationWords)
}

type userRemoveCmd struct {
	answerFlags
	Name string `arg:"" name:"name" help:"The name of the user."`
}

func (c userRemoveCmd) Run(p *Program) error {
	return removeNamed(p, c.answerFlags, "/users/", "user", "removed", c.Name)
}

// removeNamed deletes the object that has the given name. It then prints that the object is gone.
func removeNamed(p *Program, f answerFlags, path, what, done, name string) error {
	if err := f.call(p, http.MethodDelete, path+url.PathEscape(name), nil, nil); err != nil {
		return err
	}
	if f.Output != "table" {
		return printJSON(p.Stdout, map[string]any{"name": name, done: true}, f.Output == "json")
	}
	_, err := fmt.Fprintf(p.Stdout, "%s %s is %s\n", what, deadletter.Visible(name), done)
	return err
}

type tokenListCmd struct{ answerFlags }

func (c tokenListCmd) Run(p *Program) error {
	list := listing[api.Token]{
		path:  "/tokens",
		key:   "tokens",
		whole: true,
		head:  []string{"NAME", "MAY", "ADDED", "BY", "USED", "FROM", "ENDS"},
		none:  "there are no tokens",
	}
	return list.run(p, c.answerFlags, func(t api.Token) []string {
		used, ends := "never", "never"
		if !t.UsedAt.IsZero() {
			used = ago(t.UsedAt, time.Now())
		}
		if !t.ExpiresAt.IsZero() {
			ends = t.ExpiresAt.Format("2006-01-02 15:04 UTC")
		}
		return []string{t.Name, grantWords(t.Grant), ago(t.CreatedAt, time.Now()), t.CreatedBy, used, t.UsedFrom, ends}
	})
}

type tokenRevokeCmd struct {
	answerFlags
	Name string `arg:"" name:"name" help:"The name of the token."`
}

func (c tokenRevokeCmd) Run(p *Program) error {
	return removeNamed(p, c.answerFlags, "/tokens/", "token", "revoked", c.Name)
}
