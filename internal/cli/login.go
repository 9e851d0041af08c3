package cli

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

type loginCmd struct {
	URL  string `arg:"" name:"url" help:"URL of the running dlo, such as https://dlo.example.com."`
	Name string `name:"name" help:"The name of the context; by default the host of the URL."`
}

// Run asks for a token and checks it at the server. It then saves the server and the token as the
// current context.
func (c loginCmd) Run(p *Program) error {
	u, err := url.Parse(c.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" {
		return fmt.Errorf(
			"%w: %q is not a URL such as https://dlo.example.com", errUsage,
			serverFlags{Server: c.URL}.displayAddress(),
		)
	}
	server := strings.TrimSuffix(u.String(), "/")
	token, err := readToken(p)
	if err != nil {
		return err
	}
	var me api.Me
	if err := (serverFlags{Server: server}).callAs(p, token, http.MethodGet, "/me", nil, &me); err != nil {
		return err
	}
	saved, err := readContexts(p.Getenv)
	if err != nil {
		return err
	}
	name := cmp.Or(c.Name, u.Host)
	saved.Contexts = slices.DeleteFunc(saved.Contexts, func(s savedContext) bool { return s.Name == name })
	saved.Contexts = append(saved.Contexts, savedContext{Name: name, Server: server, Token: token})
	saved.Current = name
	if err := saved.write(p.Getenv); err != nil {
		return err
	}
	_, err = fmt.Fprintf(
		p.Stdout, "You are %s at %s. The context %s is in use.\n", deadletter.Visible(me.Name), server,
		deadletter.Visible(name),
	)
	return err
}

// readToken reads a token from standard input. If standard input is a terminal, the token is not
// shown while the user types it.
func readToken(p *Program) (string, error) {
	fmt.Fprint(p.Stderr, "Token, as dlo token add prints it: ")
	var text string
	if f, ok := p.Stdin.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		typed, err := term.ReadPassword(int(f.Fd()))
		fmt.Fprintln(p.Stderr)
		if err != nil {
			return "", err
		}
		text = string(typed)
	} else {
		line, err := bufio.NewReader(io.LimitReader(p.Stdin, 4096)).ReadString('\n')
		fmt.Fprintln(p.Stderr)
		if err != nil && err != io.EOF {
			return "", err
		}
		text = line
	}
	if text = strings.TrimSpace(text); !strings.HasPrefix(text, deadletter.TokenPrefix) {
		return "", fmt.Errorf("%w: a token begins with %s", errUsage, deadletter.TokenPrefix)
	}
	return text, nil
}

type contextCmd struct {
	List   contextListCmd   `cmd:"" help:"List the servers that dlo login has saved, without their tokens."`
	Use    contextUseCmd    `cmd:"" help:"Use another saved server from now on."`
	Remove contextRemoveCmd `cmd:"" help:"Forget a saved server and its token. The token stays valid: dlo token revoke ends it."`
}

type contextListCmd struct{}

// Run prints one line for each saved context. A star marks the current one.
func (contextListCmd) Run(p *Program) error {
	saved, err := readContexts(p.Getenv)
	if err != nil {
		return err
	}
	if len(saved.Contexts) == 0 {
		_, err := fmt.Fprintln(p.Stdout, "there are no contexts; dlo login saves one")
		return err
	}
	for _, c := range saved.Contexts {
		mark := " "
		if c.Name == saved.Current {
			mark = "*"
		}
		fmt.Fprintf(p.Stdout, "%s %s  %s\n", mark, deadletter.Visible(c.Name), deadletter.Visible(c.Server))
	}
	return nil
}

type contextUseCmd struct {
	Name string `arg:"" name:"name" help:"The name of the context."`
}

// Run makes the named context the current one.
func (c contextUseCmd) Run(p *Program) error {
	return changeContexts(p, c.Name, func(s *savedContexts) { s.Current = c.Name }, "is in use")
}

type contextRemoveCmd struct {
	Name string `arg:"" name:"name" help:"The name of the context."`
}

// Run deletes the named context from the saved ones.
func (c contextRemoveCmd) Run(p *Program) error {
	return changeContexts(p, c.Name, func(s *savedContexts) {
		s.Contexts = slices.DeleteFunc(s.Contexts, func(one savedContext) bool { return one.Name == c.Name })
		if s.Current == c.Name {
			s.Current = ""
		}
	}, "is removed")
}

func changeContexts(p *Program, name string, change func(*savedContexts), done string) error {
	saved, err := readContexts(p.Getenv)
	if err != nil {
		return err
	}
	if saved.find(name) == nil {
		return fmt.Errorf(
			"%w: there is no context %q; dlo context list shows those that dlo login has saved", errUsage, name,
		)
	}
	change(&saved)
	if err := saved.write(p.Getenv); err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.Stdout, "context %s %s\n", deadletter.Visible(name), done)
	return err
}
