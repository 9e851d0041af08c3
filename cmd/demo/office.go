package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	_ "embed"
)

// defaultListen is the address on which dlo listens by default. If its port is in use, the demo
// takes another port.
const defaultListen = "127.0.0.1:8672"

//go:embed dlo.yaml
var configuration string

// officeWait is how long the demo waits for an answer of dlo.
const officeWait = 10 * time.Second

// office is the dlo of the demo.
type office struct {
	process *process // nil if somebody else started dlo
	folder  string
	url     string // of the dashboard
	client  *http.Client
}

// build compiles dlo into the folder, with the same options as `make build`.
func build(ctx context.Context, module, folder string) error {
	cmd := exec.Command(
		"go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -X main.version=demo", "-o",
		filepath.Join(folder, "dlo"), "./cmd/dlo",
	)
	cmd.Dir = module
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	p, err := start(cmd)
	if err != nil {
		return fmt.Errorf("build dlo: %w", err)
	}
	select {
	case <-p.ended:
	case <-ctx.Done():
		p.stop(5 * time.Second)
		return context.Cause(ctx)
	}
	if p.err != nil {
		return fmt.Errorf("build dlo: %w\n%s", p.err, said.String())
	}
	return nil
}

// configure writes dlo.yaml and the schemas into the folder.
func configure(folder string) error {
	if err := writeSchemas(filepath.Join(folder, "schemas")); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "dlo.yaml"), []byte(configuration), 0o600)
}

// freeListen returns the default listen address. If its port is in use, freeListen returns an
// address with port 0, so that the system chooses a free port.
func freeListen() string {
	l, err := net.Listen("tcp", defaultListen)
	if err != nil {
		return "127.0.0.1:0"
	}
	l.Close()
	return defaultListen
}

var readyLine = regexp.MustCompile(`msg="dlo is ready".* url=(\S+)`)

// openOffice starts dlo. It returns when dlo drains its inbox, because dead letters would be lost
// before that.
func openOffice(ctx context.Context, folder, listen string, b *broker) (*office, error) {
	log, err := os.Create(filepath.Join(folder, "dlo.log"))
	if err != nil {
		return nil, err
	}
	read, write, err := os.Pipe()
	if err != nil {
		log.Close()
		return nil, err
	}
	cmd := exec.Command(filepath.Join(folder, "dlo"), "serve", "--config", "dlo.yaml")
	cmd.Dir, cmd.Stdout, cmd.Stderr = folder, log, write
	cmd.Env = []string{
		"HOME=" + folder, "PATH=" + os.Getenv("PATH"), "DLO_LISTEN=" + listen,
		"DLO_AMQP_URL=" + b.url, "DLO_MANAGEMENT_URL=" + b.managedAt,
		"DEMO_EXCHANGE=" + b.names.exchange, "DEMO_INBOX=" + b.names.inbox, "DEMO_ANNOTATIONS=" + b.names.annotations,
	}
	o := &office{folder: folder, client: &http.Client{Timeout: officeWait}}
	o.process, err = start(cmd)
	write.Close() // the child process has a copy of its own
	if err != nil {
		read.Close()
		log.Close()
		return nil, fmt.Errorf("start dlo: %w", err)
	}
	address := make(chan string, 1)
	go func() { // returns when the child process has ended, because the pipe is closed then
		defer log.Close()
		defer read.Close()
		lines := bufio.NewReader(io.TeeReader(read, log))
		for {
			line, err := lines.ReadString('\n')
			if m := readyLine.FindStringSubmatch(line); m != nil {
				select {
				case address <- m[1]:
				default:
				}
			}
			if err != nil {
				return
			}
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	select {
	case o.url = <-address:
	case <-o.process.ended:
		return nil, fmt.Errorf("dlo ended while it started (%v)%s", o.process.err, o.lastWords())
	case <-ctx.Done():
		o.stop()
		return nil, fmt.Errorf("dlo is not ready: %w%s", context.Cause(ctx), o.lastWords())
	}
	if err := await(ctx, o.checkDraining); err != nil {
		o.stop()
		return nil, fmt.Errorf("dlo is not ready: %w%s", err, o.lastWords())
	}
	return o, nil
}

// checkDraining returns nil if dlo is ready and drains every inbox. Otherwise it returns an error.
func (o *office) checkDraining() error {
	answer, err := o.client.Get(o.url + "/readyz")
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	var said struct {
		Ready   bool   `json:"ready"`
		Reason  string `json:"reason"`
		Brokers []struct {
			Inboxes []struct {
				Queue    string `json:"queue"`
				Draining bool   `json:"draining"`
				Reason   string `json:"reason"`
			} `json:"inboxes"`
		} `json:"brokers"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&said); err != nil {
		return fmt.Errorf("/readyz: %w", err)
	}
	if !said.Ready || answer.StatusCode != http.StatusOK {
		return fmt.Errorf("/readyz: %s %s", answer.Status, said.Reason)
	}
	inboxes := 0
	for _, b := range said.Brokers {
		for _, i := range b.Inboxes {
			if !i.Draining {
				return fmt.Errorf("/readyz: %s is not drained: %s", i.Queue, i.Reason)
			}
			inboxes++
		}
	}
	if inboxes == 0 {
		return errors.New("/readyz: no inbox yet")
	}
	return nil
}

// recordDeploy tells dlo that a version of the shop's services was deployed. A real deployment
// would do this as its last step.
func (o *office) recordDeploy(ctx context.Context, version string) error {
	request, err := http.NewRequestWithContext(
		ctx, http.MethodPost, o.url+"/api/v1/deploys",
		strings.NewReader(fmt.Sprintf(`{"service": "notifications", "version": %q}`, version)),
	)
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := o.client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusCreated {
		return fmt.Errorf("deploys: %s", answer.Status)
	}
	return nil
}

// lastWords returns the last 2,000 bytes of dlo's log, to be put into an error.
func (o *office) lastWords() string {
	text, err := os.ReadFile(filepath.Join(o.folder, "dlo.log"))
	if err != nil {
		return ""
	}
	return "\n" + string(text[max(0, len(text)-2000):])
}

// stop ends dlo. It gives dlo up to 40 s, because dlo waits for outstanding confirms before it
// ends.
func (o *office) stop() { o.process.stop(40 * time.Second) }
