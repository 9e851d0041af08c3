package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// service is what the check reads of a service in the compose file.
type service struct {
	Image, User         string
	Entrypoint, Command []string
	Environment         map[string]string
	WorkingDir          string   `json:"working_dir"`
	NetworkMode         string   `json:"network_mode"`
	ReadOnly            bool     `json:"read_only"`
	Tmpfs               []string `json:"tmpfs"`
	Volumes             []struct{ Source, Target string }
	Healthcheck         struct{ Test []string }
	env                 []string
	root                string
	mounts              mounts
	program             []string
}

// compose runs the processes of the compose file, and waits until the letters of the shop have
// died. The private broker takes the place of the service broker. All processes share the network
// of this machine, so their addresses are replaced too.
func (c *check) compose() (failure error) {
	log, err := os.Create(filepath.Join(c.folder, "compose.log"))
	if err != nil {
		return err
	}
	defer func() {
		text, _ := os.ReadFile(log.Name())
		log.Close()
		if failure != nil {
			failure = fmt.Errorf("%w\n%s", failure, text)
		}
	}()
	root := filepath.Join(c.folder, "compose")
	if err := os.Mkdir(root, 0o755); err != nil {
		return err
	}
	image, err := c.unpack("dlo-demo-*-image.tar", root, 2)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(c.parsed)
	if err != nil {
		return err
	}
	const vhost = "check-compose"
	listen, listenFailed := freeAddress()
	public, publicFailed := freeAddress()
	if err := errors.Join(listenFailed, publicFailed, c.node.CreateVHost(vhost)); err != nil {
		return err
	}
	text = []byte(strings.NewReplacer(
		"amqp://demo:demo@broker:5672/", c.node.AMQPURL(vhost),
		"http://demo:demo@broker:15672", c.node.ManagementURLOf("guest:guest"),
		`"127.0.0.1:8672"`, `"`+listen+`"`, "//127.0.0.1:8672", "//"+listen, `":8673"`, `"`+public+`"`,
	).Replace(string(text)))
	var project struct{ Services map[string]*service }
	if err := json.Unmarshal(text, &project); err != nil {
		return err
	}
	for name, s := range project.Services {
		if name == "broker" {
			continue
		}
		if !strings.HasPrefix(s.Image, "dlo-demo:") || !s.ReadOnly || s.User != "" {
			return fmt.Errorf("the service %s is not as it should be: %+v", name, s)
		}
		s.prepare(root, filepath.Join(c.folder, "volumes", name), image)
	}
	dlo, dashboard, shop := project.Services["dlo"], project.Services["dashboard"], project.Services["shop"]
	if dlo == nil || dashboard == nil || shop == nil || len(project.Services) != 4 {
		return errors.New("the services are not broker, dlo, dashboard and shop")
	}
	if dlo.NetworkMode != "service:dashboard" || shop.NetworkMode != dlo.NetworkMode || dashboard.NetworkMode != "" {
		return errors.New("dlo and shop do not use the network of dashboard, or it has none of its own")
	}
	for _, s := range []*service{dlo, dashboard, shop} {
		if s == shop { // it depends on a healthy dlo
			for _, test := range [][]string{dlo.Healthcheck.Test, image.Healthcheck.Test} {
				if err := healthy(dlo, test); err != nil {
					return err
				}
			}
		}
		stop, err := s.start(log)
		if err != nil {
			return err
		}
		defer stop()
	}
	// A browser uses the port that Docker publishes, which is the same as that of dlo.
	browser := &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, public)
		},
	}}
	for query, count := range map[string]int{
		"state:dead":                           60,
		"type:acme.notify.v1.SmsRequested":     10, // the type comes from dlo.yaml
		"queue:sms-queue body.tenant_id:48213": 1,  // the field comes from the schemas
	} {
		if err := letters(browser, "http://"+listen, query, count); err != nil {
			return err
		}
	}
	fix, err := shop.run("/usr/bin/demo", "fix")
	if err != nil {
		return err
	}
	if out, err := fix.CombinedOutput(); err != nil || !strings.Contains(string(out), "the fix is deployed") {
		return fmt.Errorf("demo fix: %w: %s", err, out)
	}
	return nil
}

// prepare sets how the service runs in a root: first what the image says, then the compose file.
func (s *service) prepare(root, volumes string, image *imageConfig) {
	s.root, s.env = root, slices.Clone(image.Env)
	for name, value := range s.Environment {
		s.env = append(s.env, name+"="+value)
	}
	s.mounts = mounts{map[string]string{}, image.WorkingDir}
	if s.WorkingDir != "" {
		s.mounts.at = s.WorkingDir
	}
	for _, v := range s.Volumes {
		s.mounts.written[v.Target] = filepath.Join(volumes, v.Source)
	}
	for _, folder := range s.Tmpfs {
		s.mounts.written[folder] = filepath.Join(volumes, folder)
	}
	s.program = slices.Concat(image.Entrypoint, image.Cmd)
	if len(s.Entrypoint) > 0 {
		s.program = s.Entrypoint
	}
	s.program = append(s.program, s.Command...)
}

// run returns a program that runs where the service runs.
func (s *service) run(program ...string) (*exec.Cmd, error) {
	cmd, err := inRoot(s.root, s.mounts, program...)
	if err != nil {
		return nil, err
	}
	cmd.Env = s.env
	return cmd, nil
}

// start starts the service. The function that it returns ends the service.
func (s *service) start(log *os.File) (func(), error) {
	cmd, err := s.run(s.program...)
	if err != nil {
		return nil, err
	}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	}, nil
}

// healthy waits until the health check of a service succeeds.
func healthy(s *service, test []string) error {
	if len(test) < 2 || test[0] != "CMD" {
		return fmt.Errorf("the health check %q is no command", test)
	}
	var said []byte
	var err error
	for range 60 {
		var cmd *exec.Cmd
		if cmd, err = s.run(test[1:]...); err == nil {
			said, err = cmd.CombinedOutput()
		}
		if err == nil {
			return nil
		}
		time.Sleep(500 * time.Millisecond)
	}
	return fmt.Errorf("%q: %w: %s", test, err, said)
}

// letters waits until at least so many letters match a query.
func letters(client *http.Client, dashboard, query string, want int) error {
	var last error
	for range 240 {
		time.Sleep(500 * time.Millisecond)
		_, text, err := call(client, http.MethodGet, dashboard+"/api/v1/letters/count?exact=1&q="+url.QueryEscape(query))
		var answer struct{ Count int }
		if err == nil {
			err = json.Unmarshal(text, &answer)
		}
		if err == nil && answer.Count >= want {
			return nil
		}
		last = fmt.Errorf("%q finds %s, want %d, %w", query, text, want, err)
	}
	return last
}
