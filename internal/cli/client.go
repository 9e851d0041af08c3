package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/config"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// serverFlags are the flags that select the server to which a command talks.
type serverFlags struct {
	Server  string `name:"server" placeholder:"URL" help:"URL of the running dlo. Without it: DLO_SERVER, a saved context, DLO_LISTEN, DLO_CONFIG, or http://127.0.0.1:8672. DLO_TOKEN is the token that it needs."`
	Context string `name:"context" help:"A server that dlo login has saved, with its token (DLO_CONTEXT names it too)."`

	refused error // why the command does not talk to the server; nil = it does
}

// AfterApply sets the URL of the server, after kong has read the command line. If there is a reason
// not to talk to that server, each request of the command returns it. A command with --yes asks
// nobody before it changes something, so it needs a server that something names.
func (f *serverFlags) AfterApply(p *Program, command *kong.Context) error {
	c, err := inUse(f.Context, p.Getenv)
	server := cmp.Or(f.Server, p.Getenv("DLO_SERVER"))
	if c != nil && (f.Context != "" || server == "") {
		server = c.Server
	}
	if server == "" && err == nil && cmp.Or(p.Getenv("DLO_LISTEN"), p.Getenv("DLO_CONFIG")) != "" {
		server, err = listenURL(p.Getenv)
	}
	yes := slices.ContainsFunc(command.Flags(), func(f *kong.Flag) bool { return f.Name == "yes" && f.Target.Bool() })
	switch {
	case err != nil && (f.Context != "" || server == ""):
		f.refused = err
	case yes && server == "":
		f.refused = fmt.Errorf(
			"%w: --yes needs a server that you name, with --server, DLO_SERVER or dlo login", errUsage,
		)
	}
	f.Server = cmp.Or(server, "http://127.0.0.1:8672")
	return nil
}

// listenURL returns the URL at which a server with the same DLO_CONFIG and DLO_LISTEN listens. Of
// the configuration file, it checks nothing else, because often only the server can read secrets.
func listenURL(getenv func(string) string) (string, error) {
	file, err := config.Outline(getenv("DLO_CONFIG"))
	if err != nil {
		return "", errors.New(
			"DLO_CONFIG: the file cannot be read; run dlo config check, or name the server with --server",
		)
	}
	named, scheme := getenv("DLO_LISTEN"), "http://"
	listen := cmp.Or(named, file["listen"], file["listen[0]"], config.Defaults().Listen)
	for i := 1; named == "" && strings.HasPrefix(listen, config.Unix); i++ {
		listen = file[fmt.Sprintf("listen[%d]", i)]
	}
	if listen == "" || strings.HasPrefix(listen, config.Unix) {
		return "", fmt.Errorf("%w: dlo listens only on Unix sockets; name a URL of the server with --server", errUsage)
	}
	if file["tls.cert_file"] != "" {
		scheme = "https://"
	}
	return scheme + listen, nil
}

// token returns the token for the server, or "" if none is known. A saved token is sent only to the
// server with which it was saved.
func (f serverFlags) token(p *Program) (string, error) {
	c, err := inUse(f.Context, p.Getenv)
	token := p.Getenv("DLO_TOKEN")
	switch {
	case c != nil && sameServer(c.Server, f.Server) && (token == "" || f.Context != ""):
		return c.Token, nil
	case token == "":
		return "", err
	}
	return token, nil
}

// changes reports whether a request changes something at the server, or plans to.
func changes(method, path string) bool {
	questions := []string{"/rules/test", "/topology/plan", "/types/match"}
	return method != http.MethodGet && !slices.Contains(questions, path) && !strings.HasSuffix(path, "/reveal")
}

// sayServer prints the URL of the server and the labels of its brokers, once for each command.
func (f serverFlags) sayServer(p *Program) error {
	if p.said {
		return nil
	}
	p.said = true
	var list api.Brokers
	if err := f.call(p, http.MethodGet, "/brokers", nil, &list); errors.Is(err, errSilent) {
		return err // any other error concerns only the labels
	}
	words := []string{"server", f.displayAddress()}
	for _, b := range list.Brokers {
		if word := "(" + b.Label + ")"; b.Label != "" && !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	_, err := fmt.Fprintln(p.Stderr, deadletter.Visible(strings.Join(words, " ")))
	return err
}

// apiURL returns the URL of the server's API. The path of each request is appended to it.
func (f serverFlags) apiURL() string { return strings.TrimSuffix(f.Server, "/") + "/api/v1" }

// displayAddress returns the server's address for display, without the user and the password. The
// address need not be a valid URL.
func (f serverFlags) displayAddress() string {
	scheme, rest, ok := strings.Cut(f.Server, "://")
	if !ok {
		scheme, rest = "", f.Server
	}
	if i := strings.LastIndex(rest, "@"); i >= 0 {
		rest = rest[i+1:]
	}
	if ok {
		rest = scheme + "://" + rest
	}
	return strings.TrimSuffix(rest, "/")
}

// maxAnswer is the maximum number of bytes that a command reads from a response. The limit is high
// because the response for a letter contains its headers, and its body in base64.
const maxAnswer = 256 << 20

// call sends a request whose body is the JSON form of "body". It decodes the JSON response into the
// value that "into" points to. Both "body" and "into" may be nil. An error contains the server's
// message. An error for status 400 wraps deadletter.ErrInvalid, and one for status 404 wraps
// deadletter.ErrNotFound.
func (f serverFlags) call(p *Program, method, path string, body, into any, headers ...string) error {
	var content io.Reader
	if body != nil {
		encoded, err := api.Marshal(body)
		if err != nil {
			return err
		}
		content = bytes.NewReader(encoded)
	}
	answer, err := f.send(p, time.Minute, method, path, content, append(headers, "Content-Type", "application/json")...)
	if err != nil {
		return err
	}
	defer answer.Close()
	if into == nil {
		return nil
	}
	return f.decode(answer, into)
}

// callAs works like call, but sends the token that it is given.
func (f serverFlags) callAs(p *Program, token, method, path string, body, into any) error {
	as := *p
	as.Getenv = func(name string) string {
		switch name {
		case "DLO_TOKEN":
			return token
		case "DLO_CONTEXT", "HOME", "XDG_CONFIG_HOME":
			return ""
		}
		return p.Getenv(name)
	}
	return f.call(&as, method, path, body, into)
}

// decode decodes a JSON response into the value that "into" points to.
func (f serverFlags) decode(answer io.Reader, into any) error {
	text, err := io.ReadAll(io.LimitReader(answer, maxAnswer))
	if err == nil {
		err = api.Unmarshal(text, into)
	}
	if err != nil {
		return fmt.Errorf("the answer from %s cannot be read: %w", f.displayAddress(), err)
	}
	return nil
}

// send sends a request and returns the body of the response, which the caller must close. Request
// and response may have any length. If "timeout" is 0, there is no timeout. The parameter "headers"
// contains a name, then its value, then the next name, and so on.
func (f serverFlags) send(
	p *Program, timeout time.Duration, method, path string, content io.Reader, headers ...string,
) (io.ReadCloser, error) {
	if f.refused != nil {
		return nil, f.refused
	}
	token, err := f.token(p)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(f.Server)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf(
			"%w: --server %q is not a URL such as http://127.0.0.1:8672", errUsage, f.displayAddress(),
		)
	}
	if changes(method, path) {
		if err := f.sayServer(p); err != nil {
			return nil, err
		}
	}
	r, err := http.NewRequestWithContext(p.Ctx, method, f.apiURL()+path, content)
	if err != nil {
		return nil, fmt.Errorf("%w: --server %s: %s %s is not a request", errUsage, f.displayAddress(), method, path)
	}
	r.Header.Set("User-Agent", "dlo/"+p.Version)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer, err := clientWithoutRedirects(timeout).Do(r)
	if err != nil {
		return nil, f.noAnswer(err)
	}
	if answer.StatusCode >= 300 {
		defer answer.Body.Close()
		if to, err := answer.Location(); err == nil && answer.StatusCode < 400 {
			return nil, redirectError(to, path)
		}
		return nil, refusal(answer)
	}
	return answer.Body, nil
}

// clientWithoutRedirects returns a client that follows no redirects. A redirect could lead to
// another server, and that server would get the token.
func clientWithoutRedirects(timeout time.Duration) *http.Client {
	return &http.Client{
		Timeout:       timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// redirectError returns the error to report when the server redirects a request for the given path
// of its API.
func redirectError(to *url.URL, path string) error {
	path, _, _ = strings.Cut(path, "?")
	there := deadletter.Visible((&url.URL{
		Scheme:  to.Scheme,
		Host:    to.Host,
		Path:    to.Path,
		RawPath: to.RawPath,
	}).String())
	if base, ok := strings.CutSuffix(there, "/api/v1"+path); ok {
		return fmt.Errorf("the server redirects to %s; use that URL with --server", base)
	}
	return fmt.Errorf(
		"the server redirects to %s, which is not its API; --server needs the URL at which dlo answers", there,
	)
}

// noAnswer returns the error to report when the server does not respond.
func (f serverFlags) noAnswer(err error) error {
	var e *url.Error
	if errors.As(err, &e) {
		err = e.Err
	}
	return fmt.Errorf(
		"%w at %s: %w; check that it is running, and that --server names it", errSilent, f.displayAddress(), err,
	)
}

// errSilent is the error for a server that did not respond.
var errSilent = errors.New("no dlo answers")

// refusal returns an error with the message of a problem+json response.
func refusal(answer *http.Response) error {
	var problem api.Problem
	if err := json.NewDecoder(io.LimitReader(answer.Body, 1<<20)).Decode(&problem); err != nil || problem.Title == "" {
		return fmt.Errorf("the server answered %s", answer.Status)
	}
	text := cmp.Or(problem.Detail, problem.Title)
	switch answer.StatusCode {
	case http.StatusBadRequest:
		if len(problem.Mistakes) > 0 {
			return misread{"rules", problem.Mistakes}
		}
		return refused{text, deadletter.ErrInvalid}
	case http.StatusNotFound:
		return refused{text, deadletter.ErrNotFound}
	}
	return errors.New(text)
}

// misread is the error for a rules file in which the server found mistakes. It holds the name of
// the file and the list of mistakes.
type misread struct {
	name     string
	mistakes []api.Mistake
}

func (m misread) Error() string {
	lines := make([]string, len(m.mistakes))
	for i, one := range m.mistakes {
		lines[i] = one.Text
		if one.Line > 0 {
			lines[i] = fmt.Sprintf("%s:%d:%d: %s", m.name, one.Line, one.Column, one.Text)
		}
	}
	return strings.Join(lines, "\n")
}

func (m misread) Unwrap() error { return deadletter.ErrInvalid }

// refused is the error for a request that the server rejected. Either the request was invalid, or
// it named an object that does not exist. The error contains the server's message.
type refused struct {
	text string
	kind error
}

func (r refused) Error() string { return r.text }
func (r refused) Unwrap() error { return r.kind }
