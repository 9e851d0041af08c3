package cli

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"regexp"
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
	Server  string `json:"-" placeholder:"URL" help:"URL of the running dlo. Without it: DLO_SERVER, a saved context, DLO_LISTEN, DLO_CONFIG, or http://127.0.0.1:8672. DLO_TOKEN is the token that it needs."`
	Context string `json:"-" help:"A server that dlo login has saved, with its token (DLO_CONTEXT names it too)."`

	refused error  // why the command does not talk to the server; nil = it does
	token   string // "" = none
	patient bool   // its requests have no timeout
	guessed bool   // nothing names the server, so it may be that none runs there
}

// AfterApply finds the server and the token, after kong has read the command line. If there is a
// reason not to talk to that server, each request of the command returns it. A command with --yes
// asks nobody before it changes something, so it needs a server that something names.
func (f *serverFlags) AfterApply(p *Program, command *kong.Context) error {
	f.find(p.Getenv)
	if isSet(command, "yes") && f.Server == "" && f.refused == nil {
		f.refused = fmt.Errorf(
			"%w: --yes needs a server that you name, with --server, DLO_SERVER or dlo login", errUsage,
		)
	}
	if f.Server == "" {
		f.Server, f.guessed = "http://127.0.0.1:8672", true
	}
	return nil
}

// find finds the server, unless nothing names one, and its token. A saved token is sent only to the
// server with which it was saved.
func (f *serverFlags) find(getenv func(string) string) {
	c, err := inUse(f.Context, getenv)
	f.Server, f.token = cmp.Or(f.Server, getenv("DLO_SERVER")), getenv("DLO_TOKEN")
	switch {
	case c != nil && (f.Context != "" || f.Server == ""):
		f.Server = c.Server
	case err != nil && f.Context == "" && f.Server != "" && errors.Is(err, fs.ErrPermission):
		// this user has no saved contexts, for example because sudo kept the home directory of another
	case err != nil && (f.Context != "" || f.Server == "" || f.token == ""):
		f.refused = err
	case f.Server == "" && cmp.Or(getenv("DLO_LISTEN"), getenv("DLO_CONFIG")) != "":
		f.Server, f.refused = listenURL(getenv)
		f.guessed = true
	}
	if c != nil && strings.TrimSuffix(c.Server, "/") == strings.TrimSuffix(f.Server, "/") &&
		(f.token == "" || f.Context != "") {
		f.token = c.Token
	}
}

// listenURL returns the URL at which a server with the same DLO_CONFIG and DLO_LISTEN listens. Of
// the configuration file, it checks nothing else, because often only the server can read secrets.
func listenURL(getenv func(string) string) (string, error) {
	file, err := config.Outline(getenv("DLO_CONFIG"), getenv)
	if err != nil {
		return "", errors.New(
			"DLO_CONFIG: the file cannot be read; run dlo config check, or name the server with --server",
		)
	}
	listen, scheme := listened(file, getenv)
	for i := 1; getenv("DLO_LISTEN") == "" && strings.HasPrefix(listen, config.Unix); i++ {
		listen = file[fmt.Sprintf("listen[%d]", i)]
	}
	if listen == "" || strings.HasPrefix(listen, config.Unix) {
		return "", fmt.Errorf("%w: dlo listens only on Unix sockets; name a URL of the server with --server", errUsage)
	}
	return scheme + listen, nil
}

// listened returns the first address at which a server listens, and the scheme of its URL. The
// parameter "file" is the outline of its configuration file.
func listened(file map[string]string, getenv func(string) string) (listen, scheme string) {
	listen = cmp.Or(getenv("DLO_LISTEN"), file["listen"], file["listen[0]"], config.Defaults().Listen)
	if file["tls.cert_file"] != "" {
		return listen, "https://"
	}
	return listen, "http://"
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
	labels := labelsOf(list.Brokers, func(b deadletter.BrokerStatus) string { return b.Label })
	about := map[string]any{"at": f.displayAddress(), "labels": labels}
	return tell(p.Stderr, "server {{.at}}{{range .labels}} ({{.}}){{end}}", about)
}

// apiURL returns the URL of the server's API. The path of each request is appended to it.
func (f serverFlags) apiURL() string { return strings.TrimSuffix(f.Server, "/") + "/api/v1" }

// displayAddress returns the server's address for display, without the user and the password. The
// address need not be a valid URL.
func (f serverFlags) displayAddress() string {
	return strings.TrimSuffix(secretPart.ReplaceAllString(f.Server, "$1"), "/")
}

var secretPart = regexp.MustCompile(`^(.*?://)?.*@`)

// maxAnswer is the maximum number of bytes that a command reads from a response. The limit is high
// because the response for a letter contains its headers, and its body in base64.
const maxAnswer = 256 << 20

// upload is a body of any length that is no JSON.
type upload struct {
	io.Reader
	kind string // such as application/octet-stream
}

// call sends a request whose body is the JSON form of "body", or an upload. It reads the JSON
// response into the value that "into" points to. Both may be nil. An error contains the server's
// message. An error for status 400 wraps deadletter.ErrInvalid, and one for status 404 wraps
// deadletter.ErrNotFound.
func (f serverFlags) call(p *Program, method, path string, body, into any) error {
	content, uploads := body.(upload)
	if f.patient = f.patient || uploads; !uploads && body != nil {
		encoded, err := api.Marshal(body)
		if err != nil {
			return err
		}
		content = upload{bytes.NewReader(encoded), "application/json"}
	}
	answer, err := f.send(p, method, path, content)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if into == nil {
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err == nil {
		err = api.Unmarshal(text, into)
	}
	if err != nil {
		return f.unreadable(err)
	}
	return nil
}

func (f serverFlags) unreadable(err error) error {
	return fmt.Errorf("the answer from %s cannot be read: %w", f.displayAddress(), err)
}

// fetch sends a request, and returns the answer as JSON and as a value.
func fetch[T any](f serverFlags, p *Program, method, path string, body any) (v T, raw json.RawMessage, err error) {
	if err := f.call(p, method, path, body, &raw); err != nil {
		return v, nil, err
	}
	return v, raw, api.Unmarshal(raw, &v)
}

// copyGiven writes the answer to a GET of any length to a new file with the given name, or to
// standard output if the name is empty. For a terminal, it escapes the answer. The parameters are
// the arguments and flags of the command, without those that are left out.
func (f serverFlags) copyGiven(p *Program, k *kong.Context, name, path string, without ...string) error {
	values, err := given(p, k.Selected())
	if err != nil {
		return err
	}
	for _, one := range without {
		delete(values, one)
	}
	f.patient = true
	answer, err := f.send(p, http.MethodGet, withQuery(path, values), upload{})
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if name == "" && terminal(p.Stdout) {
		lines := bufio.NewScanner(answer.Body)
		lines.Buffer(nil, maxAnswer)
		for lines.Scan() {
			fmt.Fprintln(p.Stdout, deadletter.EscapeJSON(lines.Text()))
		}
		return lines.Err()
	}
	if name == "" {
		_, err = io.Copy(p.Stdout, answer.Body)
		return err
	}
	// only the user may read it, because it contains letters
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, answer.Body)
	if err = errors.Join(err, file.Close()); err != nil {
		os.Remove(name)
		return fmt.Errorf("the answer was cut off: %w", err)
	}
	return nil
}

// send sends a request and returns the response, whose body the caller must close. Request and
// response may have any length.
func (f serverFlags) send(p *Program, method, path string, content upload) (*http.Response, error) {
	if f.refused != nil {
		return nil, f.refused
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
	r, err := http.NewRequestWithContext(p.Ctx, method, f.apiURL()+path, content.Reader)
	if err != nil {
		return nil, fmt.Errorf("%w: --server %s: %s %s is not a request", errUsage, f.displayAddress(), method, path)
	}
	r.Header.Set("User-Agent", "dlo/"+p.Version)
	if method == http.MethodPost {
		r.Header.Set("Idempotency-Key", rand.Text())
	}
	if f.token != "" {
		r.Header.Set("Authorization", "Bearer "+f.token)
	}
	if content.Reader != nil {
		r.Header.Set("Content-Type", content.kind)
	}
	timeout := time.Minute
	if f.patient {
		timeout = 0
	}
	// a redirect could lead to another server, and that server would get the token
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	answer, err := (&http.Client{Timeout: timeout, CheckRedirect: stay}).Do(r)
	if err != nil {
		return nil, f.noAnswer(err)
	}
	if answer.StatusCode >= 300 {
		defer answer.Body.Close()
		if to, err := answer.Location(); err == nil && answer.StatusCode < 400 {
			return nil, redirectError(to, path)
		}
		return nil, refusal(answer, p.rules)
	}
	return answer, nil
}

// redirectError returns the error to report when the server redirects a request for the given path
// of its API.
func redirectError(to *url.URL, path string) error {
	path, _, _ = strings.Cut(path, "?")
	target := url.URL{Scheme: to.Scheme, Host: to.Host, Path: to.Path, RawPath: to.RawPath}
	there := deadletter.Visible(target.String())
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

// refusal returns an error with the message of a problem+json response. The request had the content
// of the named file.
func refusal(answer *http.Response, file string) error {
	var problem api.Problem
	if err := json.NewDecoder(io.LimitReader(answer.Body, 1<<20)).Decode(&problem); err != nil || problem.Title == "" {
		return fmt.Errorf("the server answered %s", answer.Status)
	}
	why := refused{text: cmp.Or(problem.Detail, problem.Title), mistakes: problem.Mistakes, file: cmp.Or(file, "rules")}
	switch answer.StatusCode {
	case http.StatusUnauthorized:
		if answer.Request.Header.Get("Authorization") == "" {
			why.text = "this server needs a token: run dlo login URL, or set DLO_TOKEN"
		}
	case http.StatusBadRequest:
		why.kind = deadletter.ErrInvalid
	case http.StatusNotFound:
		why.kind = deadletter.ErrNotFound
	}
	return why
}

// refused is the error for a request that the server rejected. It contains the server's message, or
// the mistakes that the server found in a file with rules.
type refused struct {
	text     string
	kind     error // nil, unless the request was invalid, or named an object that does not exist
	mistakes []deadletter.Mistake
	file     string
}

func (r refused) Error() string {
	if r.mistakes == nil {
		return r.text
	}
	var lines []string
	for _, one := range r.mistakes {
		if one.Line > 0 {
			one.Text = fmt.Sprintf("%s:%d:%d: %s", r.file, one.Line, one.Column, one.Text)
		}
		lines = append(lines, one.Text)
	}
	return strings.Join(lines, "\n")
}

func (r refused) Unwrap() error { return r.kind }
