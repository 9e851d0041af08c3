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
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// serverFlags select the server that a command talks to.
type serverFlags struct {
	Server  string `name:"server" default:"${server}" help:"URL of the running dlo (DLO_SERVER names it too). DLO_TOKEN is the token that it needs."`
	Context string `name:"context" help:"A server that dlo login has saved, with its token (DLO_CONTEXT names it too)."`
}

// defaultServer returns the URL in DLO_SERVER. If it is not set, defaultServer returns the URL of
// the saved context in use, or else the URL of a server on this machine.
func defaultServer(getenv func(string) string) string {
	if v := getenv("DLO_SERVER"); v != "" {
		return v
	}
	if c, err := inUse("", getenv); err == nil && c != nil {
		return c.Server
	}
	if v := getenv("DLO_LISTEN"); v != "" {
		return "http://" + v
	}
	return "http://127.0.0.1:8672"
}

// target returns the flags with the server that they select, and the server's token, or "" if no
// token is known. A saved token goes only to the server with which it was saved.
func (f serverFlags) target(p *Program) (serverFlags, string, error) {
	c, err := inUse(f.Context, p.Getenv)
	if err != nil && (f.Context != "" || p.Getenv("DLO_TOKEN") == "") {
		return f, "", err
	}
	if f.Context != "" {
		f.Server = c.Server
	}
	token := p.Getenv("DLO_TOKEN")
	if c != nil && sameServer(c.Server, f.Server) && (token == "" || f.Context != "") {
		token = c.Token
	}
	return f, token, nil
}

// base returns the URL of the API.
func (f serverFlags) base() string { return strings.TrimSuffix(f.Server, "/") + "/api/v1" }

// shown returns the server's address without user and password, for display. It also works if the
// address is not a URL.
func (f serverFlags) shown() string {
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

// maxAnswer is the maximum number of bytes of a response that are read. A letter includes its
// headers and its body in base64.
const maxAnswer = 256 << 20

// call sends a request with a JSON body and decodes the JSON response into the value that "into"
// points to. The arguments "body" and "into" may be nil. Errors contain the server's message.
// Errors with status 404 or 400 wrap the domain's errors.
func (f serverFlags) call(p *Program, method, path string, body, into any, headers ...string) error {
	var content io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
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

// callAs works like call, but sends the given token.
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

// decode decodes a JSON response.
func (f serverFlags) decode(answer io.Reader, into any) error {
	if err := json.NewDecoder(io.LimitReader(answer, maxAnswer)).Decode(into); err != nil {
		return fmt.Errorf("the answer from %s cannot be read: %w", f.shown(), err)
	}
	return nil
}

// send sends a request and returns the response body, which the caller must close. Request and
// response may have any length. A timeout of 0 means no timeout. The argument headers alternates
// between names and values.
func (f serverFlags) send(p *Program, timeout time.Duration, method, path string, content io.Reader, headers ...string) (io.ReadCloser, error) {
	f, token, err := f.target(p)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(f.Server)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%w: --server %q is not a URL such as http://127.0.0.1:8672", errUsage, f.shown())
	}
	r, err := http.NewRequestWithContext(p.Ctx, method, f.base()+path, content)
	if err != nil {
		return nil, fmt.Errorf("%w: --server %s: %s %s is not a request", errUsage, f.shown(), method, path)
	}
	r.Header.Set("User-Agent", "dlo/"+p.Version)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer, err := (&http.Client{Timeout: timeout}).Do(r)
	if err != nil {
		return nil, f.silent(err)
	}
	if answer.StatusCode >= 300 {
		defer answer.Body.Close()
		return nil, refusal(answer)
	}
	return answer.Body, nil
}

// silent returns the error for a server that does not respond.
func (f serverFlags) silent(err error) error {
	var e *url.Error
	if errors.As(err, &e) {
		err = e.Err
	}
	return fmt.Errorf("%w at %s: %w; check that it is running, and that --server names it", errSilent, f.shown(), err)
}

// errSilent means that no server responded.
var errSilent = errors.New("no dlo answers")

// refusal converts problem+json to an error.
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

// misread is the error for a rules file in which the server found mistakes. It contains the name of
// the file and the mistakes.
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

// refused is the error for a request that the server rejected as invalid, or that named an object
// that does not exist. It contains the server's message.
type refused struct {
	text string
	kind error
}

func (r refused) Error() string { return r.text }
func (r refused) Unwrap() error { return r.kind }
