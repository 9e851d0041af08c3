package cli

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/config"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

const reloadText = `{{.File}}: {{plural (len .Changes) "change" "changes"}} {{if .dry}}would apply at once{{else}}in use{{end}}
{{- range .Changes}}
  {{.}}{{end}}
{{- with .NextStart}}
These wait for the next start of dlo:{{range .}}
  {{.}}{{end}}{{end}}`

type reloadCmd struct{ serverFlags }

// Run reloads the configuration of the server.
func (c reloadCmd) Run(p *Program) error { return c.reload(p, false) }

type configDiffCmd struct{ serverFlags }

// Run prints what a reload or a restart of the server would change.
func (c configDiffCmd) Run(p *Program) error { return c.reload(p, true) }

func (f serverFlags) reload(p *Program, dry bool) error {
	f.patient = true
	p.rules = "configuration file" // in the positions of mistakes
	done, _, err := fetch[deadletter.Reload](f, p, http.MethodPost, "/reload", api.ReloadRequest{DryRun: dry})
	if err != nil {
		return err
	}
	return tell(p.Stdout, reloadText, map[string]any{
		"File": cmp.Or(done.File, "no file"), "Changes": done.Changes, "NextStart": done.NextStart, "dry": dry,
	})
}

type healthCmd struct {
	Server string `placeholder:"URL" help:"URL of the dlo, or unix:/path. Without it: ops_listen or listen of the configuration (DLO_LISTEN, DLO_CONFIG)."`
	Ready  bool   `help:"Ask whether dlo is ready: the store answers and a broker is connected. Otherwise, whether the process is alive."`
}

// healthWait is how long a health check waits for the answer.
const healthWait = 5 * time.Second

// Run asks dlo for its health, as a container without other programs has to.
func (c healthCmd) Run(p *Program) error {
	at, host := c.Server, ""
	var mistakes error
	if at == "" {
		at, host, mistakes = probed(p.Getenv)
	}
	transport := &http.Transport{}
	if c.Server == "" {
		// the name in the certificate need not be that of the address, which is on this machine
		transport.TLSClientConfig = &tls.Config{InsecureSkipVerify: true}
	}
	path := map[bool]string{false: "/healthz", true: "/readyz"}[c.Ready]
	ctx, cancel := context.WithTimeout(p.Ctx, healthWait)
	defer cancel()
	if socket, ok := strings.CutPrefix(at, config.Unix); ok {
		at = "http://localhost"
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		}
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(at, "/")+path, nil)
	if err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	r.Host = cmp.Or(host, r.Host)
	client := http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse // the answer of another server says nothing about this one
	}}
	answer, err := client.Do(r)
	if err != nil {
		return errors.Join(err, mistakes)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 200)) // the status decides
		line, _, _ := strings.Cut(string(text), "\n")
		return errors.New(answer.Status + " " + line)
	}
	return p.say("%s", map[bool]string{false: "alive", true: "ready"}[c.Ready])
}

// probed returns the URL at which a server with the same DLO_CONFIG and DLO_LISTEN answers probes,
// and the name by which to ask it; "" = that in the URL. A mistake in the file does not matter as
// long as the address is known: a running dlo goes on with the configuration that it had.
func probed(getenv func(string) string) (at, host string, mistakes error) {
	file, mistakes := config.Outline(getenv("DLO_CONFIG"), getenv)
	if mistakes != nil {
		mistakes = fmt.Errorf("DLO_CONFIG cannot be read, so the address may be another one: %w", mistakes)
	}
	at, scheme := listened(file, getenv)
	host = file["hosts[0]"]
	if ops := file["ops_listen"]; ops != "" {
		at, scheme, host = ops, "http://", ""
	}
	if !strings.HasPrefix(at, config.Unix) {
		at = scheme + at
	}
	return at, host, mistakes
}
