package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// savedContexts is the content of the file in which `dlo login` saves servers, each with its token.
// Only the owner may have access to this file.
type savedContexts struct {
	Current  string         `json:"current"` // name of the context in use; "" if there is none
	Contexts []savedContext `json:"contexts"`
}

type savedContext struct {
	Name   string `json:"name"`
	Server string `json:"server"`
	Token  string `json:"token"`
}

// contextsFile returns the path of the file with the saved contexts. The file is below
// XDG_CONFIG_HOME, or else below .config in the home directory. The path is "" if neither directory
// is known.
func contextsFile(getenv func(string) string) string {
	dir, home := getenv("XDG_CONFIG_HOME"), getenv("HOME")
	if !filepath.IsAbs(dir) {
		if home == "" {
			return ""
		}
		dir = filepath.Join(home, ".config")
	}
	return filepath.Join(dir, "dlo", "contexts.json")
}

// readContexts reads the saved contexts from their file. If the file does not exist, there are no
// contexts. If other users have access to the file, readContexts returns an error.
func readContexts(getenv func(string) string) (savedContexts, error) {
	var s savedContexts
	path := contextsFile(getenv)
	info, err := os.Stat(path)
	switch {
	case path == "" || errors.Is(err, fs.ErrNotExist):
		return s, nil
	case err != nil:
		return s, fmt.Errorf("%w; name the server with --server or DLO_SERVER", err)
	case info.Mode().Perm()&0o077 != 0:
		return s, fmt.Errorf(
			"%s can be read by others, and contains tokens: run chmod 600 %s, and revoke the tokens if others may "+
				"have read them",
			path, path,
		)
	}
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err != nil {
		err = fmt.Errorf("%s cannot be read: %w; remove it, and run dlo login again", path, err)
	}
	return s, err
}

// write replaces the file with the saved contexts.
func (s savedContexts) write(getenv func(string) string) error {
	path := contextsFile(getenv)
	if path == "" {
		return errors.New("there is no place for the file: set HOME or XDG_CONFIG_HOME")
	}
	text, err := json.MarshalIndent(s, "", "  ")
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	}
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "contexts-*") // the new file has mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(append(text, '\n'))
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

func (s *savedContexts) find(name string) *savedContext {
	if i := slices.IndexFunc(s.Contexts, func(c savedContext) bool { return c.Name == name }); i >= 0 {
		return &s.Contexts[i]
	}
	return nil
}

// inUse returns the context that a command uses. It is the one that --context names, or else the
// one that DLO_CONTEXT names, or else the current one. inUse returns nil if there is none.
func inUse(named string, getenv func(string) string) (*savedContext, error) {
	s, err := readContexts(getenv)
	if err != nil {
		return nil, err
	}
	name := cmp.Or(named, getenv("DLO_CONTEXT"))
	c := s.find(cmp.Or(name, s.Current))
	if c == nil && name != "" {
		err = noContext(name)
	}
	return c, err
}

func noContext(name string) error {
	const text = "%w: there is no context %q; dlo context list shows those that dlo login has saved"
	return fmt.Errorf(text, errUsage, name)
}

type loginCmd struct {
	URL  string `arg:"" name:"url" help:"URL of the running dlo, such as https://dlo.example.com."`
	Name string `help:"The name of the context; by default the host of the URL."`
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
	if err := (serverFlags{Server: server, token: token}).call(p, http.MethodGet, "/me", nil, &me); err != nil {
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
	return p.say("You are %s at %s. The context %s is in use.", me.Name, server, name)
}

// readToken asks for a token.
func readToken(p *Program) (string, error) {
	text, err := p.ask("Token, as dlo token add prints it: ", true)
	text = strings.TrimSpace(text)
	if err == nil && !strings.HasPrefix(text, deadletter.TokenPrefix) {
		err = fmt.Errorf("%w: a token begins with %s", errUsage, deadletter.TokenPrefix)
	}
	return text, err
}

func contextTable() command {
	return noun("context", groupHere, "The servers that dlo login has saved: list them, use another, forget one.",
		own("list", "List the servers that dlo login has saved, without their tokens.", contextListCmd{}),
		own("use", "Use another saved server from now on.", contextCmd{}),
		own("remove", "Forget a saved server and its token. The token stays valid: dlo token revoke ends it.",
			contextCmd{}),
	)
}

type contextListCmd struct{}

// Run prints one line for each saved context. A star marks the current one.
func (contextListCmd) Run(p *Program) error {
	saved, err := readContexts(p.Getenv)
	if err != nil {
		return err
	}
	const text = `{{range .Contexts}}{{if eq .Name $.Current}}*{{else}} {{end}} {{.Name}}  {{.Server}}
{{else}}there are no contexts; dlo login saves one{{end}}`
	return tell(p.Stdout, text, saved)
}

type contextCmd struct {
	Name string `arg:"" help:"The name of the context."`
}

// Run makes the named context the current one, or removes it.
func (c contextCmd) Run(p *Program, k *kong.Context) error {
	saved, err := readContexts(p.Getenv)
	if err == nil && saved.find(c.Name) == nil {
		err = noContext(c.Name)
	}
	if err != nil {
		return err
	}
	done := "in use"
	if k.Selected().Name == "use" {
		saved.Current = c.Name
	} else {
		done = "removed"
		saved.Contexts = slices.DeleteFunc(saved.Contexts, func(one savedContext) bool { return one.Name == c.Name })
	}
	if err := saved.write(p.Getenv); err != nil {
		return err
	}
	return p.say("context %s is %s", c.Name, done)
}
