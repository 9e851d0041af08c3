package cli

import (
	"bytes"
	"context"
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

// serverFlags say which server a command talks to.
type serverFlags struct {
	Server string `name:"server" default:"${server}" help:"URL of the running dlo (DLO_LISTEN names it too)."`
}

// defaultServer is the listen address of a server on this machine.
func defaultServer(getenv func(string) string) string {
	if v := getenv("DLO_LISTEN"); v != "" {
		return "http://" + v
	}
	return "http://127.0.0.1:8672"
}

// client calls the API of a running server.
type client struct {
	base    string
	token   string
	version string // of this program
	http    http.Client
}

func (f serverFlags) client(p *Program) (*client, error) {
	u, err := url.Parse(f.Server)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%w: --server %q is not a URL such as http://127.0.0.1:8672", errUsage, f.Server)
	}
	return &client{base: strings.TrimSuffix(f.Server, "/") + "/api/v1", token: p.Getenv("DLO_TOKEN"), version: p.Version, http: http.Client{Timeout: time.Minute}}, nil
}

// maxAnswer bounds what is read of an answer, bytes: a letter with its body in base64 and headers.
const maxAnswer = 256 << 20

// call sends a request and reads the JSON answer into into. Errors say what the server said; those of status 404, 409 and 400 wrap the domain's.
func (c *client) call(ctx context.Context, method, path string, body, into any, headers ...string) error {
	var content io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return err
		}
		content = bytes.NewReader(encoded)
	}
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, content)
	if err != nil {
		return err
	}
	c.dress(r)
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer, err := c.http.Do(r)
	if err != nil {
		return c.silent(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode >= 300 {
		return refusal(answer)
	}
	if into == nil {
		return nil
	}
	if err := json.NewDecoder(io.LimitReader(answer.Body, maxAnswer)).Decode(into); err != nil {
		return fmt.Errorf("the answer of %s cannot be read: %w", c.base, err)
	}
	return nil
}

// stream sends what may have any length, and returns an answer that may have any length: to be closed. kind is the content type of content.
func (c *client) stream(ctx context.Context, method, path, kind string, content io.ReadCloser) (io.ReadCloser, error) {
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, content)
	if err != nil {
		return nil, err
	}
	c.dress(r)
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	unhurried := c.http
	unhurried.Timeout = 0
	answer, err := unhurried.Do(r)
	if err != nil {
		return nil, c.silent(err)
	}
	if answer.StatusCode >= 300 {
		defer answer.Body.Close()
		return nil, refusal(answer)
	}
	return answer.Body, nil
}

// dress adds what every request carries.
func (c *client) dress(r *http.Request) {
	r.Header.Set("User-Agent", "dlo/"+c.version)
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
}

// silent is the error of a server that gives no answer.
func (c *client) silent(err error) error {
	var e *url.Error
	if errors.As(err, &e) {
		err = e.Err
	}
	return fmt.Errorf("%w at %s: %w; is it running, and does --server name it?", errSilent, c.base, err)
}

// errSilent says that no server answered.
var errSilent = errors.New("no dlo answers")

// refusal turns problem+json into an error.
func refusal(answer *http.Response) error {
	var problem api.Problem
	if err := json.NewDecoder(io.LimitReader(answer.Body, 1<<20)).Decode(&problem); err != nil || problem.Title == "" {
		return fmt.Errorf("the server answered %s", answer.Status)
	}
	text := problem.Detail
	if text == "" {
		text = problem.Title
	}
	switch answer.StatusCode {
	case http.StatusBadRequest:
		return refused(text)
	case http.StatusNotFound:
		return fmt.Errorf("%s (%w)", text, deadletter.ErrNotFound)
	}
	return errors.New(text)
}

// refused is what the server says of a request that is wrong.
type refused string

func (r refused) Error() string { return string(r) }
func (r refused) Unwrap() error { return deadletter.ErrInvalid }
