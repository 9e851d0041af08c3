package cli

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/config"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

type whoamiCmd struct{ answerFlags }

// Run prints who the server takes the user for.
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

// grantWords describes a grant on one line.
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
	return text
}

type tokenCmd struct {
	Add    tokenAddCmd    `cmd:"" help:"Add a token of the API, and print it. It is shown only once."`
	List   tokenListCmd   `cmd:"" help:"List the tokens of the API, without their secrets."`
	Revoke tokenRevokeCmd `cmd:"" help:"Revoke a token of the API. Requests with it are refused from then on."`
}

// TokenFile is the tokens in a store file that no server holds.
type TokenFile interface {
	Add(name, role string, reveal, purge bool, expires time.Time) (secret string, err error)
	io.Closer
}

type tokenAddCmd struct {
	answerFlags
	Name    string        `arg:"" name:"name" help:"The name, which the audit shows as token:NAME."`
	Role    string        `name:"role" required:"" help:"What it may do: reader, operator, editor or admin."`
	Reveal  bool          `name:"reveal" help:"It may see masked data."`
	Purge   bool          `name:"purge" help:"It may purge letters."`
	Expires string        `name:"expires" help:"When it ends, for example 90d. Without this it never ends."`
	Store   string        `name:"store" help:"The store file of a server that does not run, for the first token of an installation. No server is asked."`
}

// Run prints only the secret on standard output, so that scripts can read it.
func (c tokenAddCmd) Run(p *Program) error {
	var expires time.Time
	if c.Expires != "" {
		in, err := config.ParseDuration(c.Expires)
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
		secret, err := file.Add(c.Name, c.Role, c.Reveal, c.Purge, expires)
		if err != nil {
			return err
		}
		return printSecret(p, c.Name, secret)
	}
	var added api.NewSecret
	body := api.TokenRequest{Name: c.Name, Role: c.Role, Reveal: c.Reveal, Purge: c.Purge, ExpiresAt: expires}
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

type tokenListCmd struct{ answerFlags }

func (c tokenListCmd) Run(p *Program) error {
	list := listing[api.Token]{path: "/tokens", key: "tokens", whole: true, head: []string{"NAME", "MAY", "ADDED", "BY", "USED", "ENDS"}, none: "there are no tokens"}
	return list.run(p, c.answerFlags, func(t api.Token) []string {
		used, ends := "never", "never"
		if !t.UsedAt.IsZero() {
			used = ago(t.UsedAt, time.Now())
		}
		if !t.ExpiresAt.IsZero() {
			ends = t.ExpiresAt.Format("2006-01-02 15:04 UTC")
		}
		return []string{t.Name, grantWords(t.Grant), ago(t.CreatedAt, time.Now()), t.CreatedBy, used, ends}
	})
}

type tokenRevokeCmd struct {
	answerFlags
	Name string `arg:"" name:"name" help:"The name of the token."`
}

func (c tokenRevokeCmd) Run(p *Program) error {
	if err := c.call(p, http.MethodDelete, "/tokens/"+url.PathEscape(c.Name), nil, nil); err != nil {
		return err
	}
	if c.Output != "table" {
		return printJSON(p.Stdout, map[string]any{"name": c.Name, "revoked": true}, c.Output == "json")
	}
	_, err := fmt.Fprintf(p.Stdout, "token %s is revoked\n", deadletter.Visible(c.Name))
	return err
}
