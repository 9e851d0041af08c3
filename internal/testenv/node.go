package testenv

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

const (
	// readyLimit is the time limit for the start of a node. A start takes 4 to 10 s on an idle
	// machine, and 11 to 31 s on a busy machine with two cores. During a cold build of everything, it
	// took more than 90 s.
	readyLimit = 5 * time.Minute
	// endLimit is the time limit for a clean stop of a node. On an idle machine, a node stops in
	// about 7 s.
	endLimit = 90 * time.Second
	// toolLimit is the time limit for one call of rabbitmqctl. Each call starts an Erlang VM.
	toolLimit = 90 * time.Second
	// startTries is the maximum number of attempts to start a node. Each attempt uses new ports,
	// because another process may have taken one.
	startTries = 3
	// answersWithin is the time limit for one request to the management API. On a busy machine, a node
	// under a flood took more than 30 s to create a vhost.
	answersWithin = 2 * time.Minute
)

// Options are the options of a node. The zero value starts the RabbitMQ package of the machine.
type Options struct {
	// Root is the folder in which RabbitMQ is installed, for example .cache/rabbitmq-4.0. A relative
	// folder is relative to the module. Empty means /.
	Root string
	// Conf contains further lines of rabbitmq.conf, for example "consumer_timeout = 10000". In these
	// lines, %DIR% stands for the folder with the files of the option Files.
	Conf []string
	// Files contains the files that the node reads: file name -> content.
	Files map[string][]byte
	// Plugins contains further plugins of RabbitMQ, for example rabbitmq_auth_mechanism_ssl.
	Plugins []string
	// Metrics enables the plugin rabbitmq_prometheus. Node.MetricsURL returns the URL of the metrics.
	Metrics bool
}

// Node is a private RabbitMQ node with its own loopback ports, epmd, cookie and data. It ends with
// this process. Its user is "guest", and the password is "guest" too. Any goroutine may call its
// methods.
type Node struct {
	installation installation
	options      Options
	name         string
	cookie       string
	clustered    bool // the node is part of a cluster, where the type names does the work of epmd
	ports        ports
	client       *http.Client

	mu     sync.Mutex // held while the node starts or stops
	folder *folder    // nil after Stop
	epmd   *process
	server *process // the Erlang VM itself
}

// Start starts a node. It returns once the node serves AMQP and the management API, after 4 to 31
// s. The context limits the start, and not the lifetime of the node. If the requested RabbitMQ is
// not installed, the error wraps ErrMissing. If the node did not start, the error contains its last
// output.
func Start(ctx context.Context, o Options) (*Node, error) {
	i, err := findInstallation(o.Root)
	if err != nil {
		return nil, err
	}
	n := &Node{
		installation: i,
		options:      o,
		cookie:       rand.Text(),
		client:       &http.Client{Timeout: answersWithin, Transport: &http.Transport{}},
	}
	for range startTries {
		if err = n.create(ctx); err == nil {
			return n, nil
		}
		n.Stop()
		if !strings.Contains(err.Error(), "eaddrinuse") {
			break
		}
	}
	return nil, err
}

// create gives the node a name, ports and a folder, and starts it.
func (n *Node) create(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.claim("dlo" + strings.ToLower(rand.Text()) + "@127.0.0.1"); err != nil {
		return err
	}
	return n.start(ctx)
}

// claim gives the node a name, ports, and a folder with its configuration. The caller must hold mu,
// unless no other goroutine knows the node yet.
func (n *Node) claim(name string) (err error) {
	n.name = name
	if n.ports, err = freePorts(); err != nil {
		return err
	}
	if n.folder, err = newFolder("node"); err != nil {
		return err
	}
	if err := n.configure(); err != nil {
		return fmt.Errorf("configure a broker: %w", err)
	}
	return nil
}

// configure creates the files that RabbitMQ reads from the node's folder.
func (n *Node) configure() error {
	for _, sub := range []string{"home", "mnesia", "log"} {
		if err := os.Mkdir(n.folder.file(sub), 0o700); err != nil {
			return err
		}
	}
	conf := append([]string{
		"listeners.tcp.default = " + loopback(n.ports.amqp),
		"management.tcp.ip = 127.0.0.1",
		fmt.Sprintf("management.tcp.port = %d", n.ports.management),
		"log.console = false",
		"collect_statistics_interval = 1000", // milliseconds; with the default, the figures of the API are 5 s late
		"disk_free_limit.absolute = 50MB",
		"vm_memory_high_watermark.absolute = 1GB",
	}, n.options.Conf...)
	plugins := append([]string{"rabbitmq_management", "rabbitmq_shovel"}, n.options.Plugins...)
	if n.options.Metrics {
		plugins = append(plugins, "rabbitmq_prometheus")
		conf = append(conf, "prometheus.tcp.ip = 127.0.0.1", fmt.Sprintf("prometheus.tcp.port = %d", n.ports.metrics))
	}
	for name, content := range n.options.Files {
		if err := os.WriteFile(n.folder.file(name), content, 0o600); err != nil {
			return err
		}
	}
	for _, f := range []struct {
		name, text string
		mode       os.FileMode
	}{
		// the Erlang VM refuses to start if this file has another mode or owner
		{"home/.erlang.cookie", n.cookie, 0o400},
		{"enabled_plugins", "[" + strings.Join(plugins, ",") + "].\n", 0o600},
		{
			"rabbitmq.conf",
			strings.ReplaceAll(strings.Join(conf, "\n"), "%DIR%", n.installation.pathInside(n.folder.path)) + "\n",
			0o600,
		},
	} {
		if err := os.WriteFile(n.folder.file(f.name), []byte(f.text), f.mode); err != nil {
			return err
		}
	}
	return nil
}

// env returns the complete environment of the node and its tools. It contains no host name. The
// name of the node ends with @127.0.0.1, because a node named @localhost would fail if /etc/hosts
// is empty.
func (n *Node) env() []string {
	dir := n.installation.pathInside(n.folder.path)
	return []string{
		"HOME=" + dir + "/home",
		"PATH=/usr/sbin:/usr/bin:/sbin:/bin",
		"LANG=C.UTF-8",
		"RABBITMQ_NODENAME=" + n.name,
		"RABBITMQ_USE_LONGNAME=true",
		fmt.Sprintf("RABBITMQ_DIST_PORT=%d", n.ports.distribution),
		fmt.Sprintf("ERL_EPMD_PORT=%d", n.ports.epmd),
		"ERL_EPMD_ADDRESS=127.0.0.1",
		"RABBITMQ_MNESIA_BASE=" + dir + "/mnesia",
		"RABBITMQ_LOG_BASE=" + dir + "/log",
		"RABBITMQ_PID_FILE=" + dir + "/pid",
		"RABBITMQ_ENABLED_PLUGINS_FILE=" + dir + "/enabled_plugins",
		"RABBITMQ_CONFIG_FILE=" + dir + "/rabbitmq.conf",
		"RABBITMQ_CONF_ENV_FILE=/dev/null",
		// +sbwt none disables the busy waiting of the schedulers, which would use up a small machine.
		"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=+S 1:1 +sbwt none +sbwtdcpu none +sbwtdio none -kernel inet_dist_use_interface {127,0,0,1}",
		// With this variable, the script of RabbitMQ becomes the VM itself. The VM is then a child
		// of this process and ends with it. Without the variable, the script would watch the VM
		// from a second process (sbin/rabbitmq-server of 3.10.8, 4.0.5 and 4.3.6).
		"RUNNING_UNDER_SYSTEMD=true",
	}
}

// start starts the node, and epmd unless it is already running. The caller must hold mu.
func (n *Node) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	// gets the output of the node until the node has its own log
	console, err := os.Create(n.folder.file("log/console"))
	if err != nil {
		return fmt.Errorf("open the console of a broker: %w", err)
	}
	defer console.Close() // the child has its own copy of the file
	run := func(program string, args ...string) (*process, error) {
		cmd := n.installation.command(n.folder.path, n.env(), program, args...)
		cmd.Stdout, cmd.Stderr = console, console
		return start(cmd)
	}
	if !n.clustered && !n.epmd.running() {
		// If the node had no epmd, the VM would start one as a daemon, and that daemon would never
		// end.
		if n.epmd, err = run("/usr/bin/epmd", "-port", fmt.Sprint(n.ports.epmd), "-address", "127.0.0.1"); err != nil {
			return err
		}
		if err := n.await(ctx, n.epmd, "epmd", func() error { return isListening(n.ports.epmd) }); err != nil {
			return err
		}
	}
	if n.server, err = run(n.installation.program("rabbitmq-server")); err != nil {
		return err
	}
	return n.await(ctx, n.server, "node", func() error {
		// The node itself must say that it listens. A port that responds proves nothing, because another
		// node may respond on it while this node is about to end. The check ready-to-serve-clients would
		// be stronger, but only 4.3 has it.
		return n.API(http.MethodGet, fmt.Sprintf("/api/health/checks/port-listener/%d", n.ports.amqp), nil, nil)
	})
}

// await calls the function "ready" until it returns nil. It returns an error if the process has
// ended or ctx is done.
func (n *Node) await(ctx context.Context, p *process, what string, ready func() error) error {
	const pause = 100 * time.Millisecond
	for {
		err := ready()
		if err == nil {
			return nil
		}
		select {
		case <-p.ended:
			return fmt.Errorf("RabbitMQ %s: %s ended while it started (%v)%s", n.Version(), what, p.err, n.lastWords())
		case <-ctx.Done():
			return fmt.Errorf(
				"RabbitMQ %s: %s is not ready: %w, last answer: %v%s", n.Version(), what, ctx.Err(), err, n.lastWords(),
			)
		case <-time.After(pause):
		}
	}
}

// lastWords returns the end of the node's output and log, for an error.
func (n *Node) lastWords() string {
	logs, _ := filepath.Glob(n.folder.file("log/*.log"))
	var all strings.Builder
	for _, name := range append([]string{n.folder.file("log/console")}, logs...) {
		text, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		fmt.Fprintf(&all, "\n--- %s\n%s", filepath.Base(name), text[max(0, len(text)-4000):])
	}
	return all.String()
}

func isListening(port int) error {
	c, err := net.DialTimeout("tcp", loopback(port), time.Second)
	if err != nil {
		return err
	}
	return c.Close()
}

// Kill9 kills the node with SIGKILL, like a crash, and returns once the node has ended. The data
// stays for Restart. Declare a quorum queue at least 12 s before the first kill. A quorum queue
// that was declared about a second before a kill comes back empty or without a leader (3.10.8,
// 4.0.5, 4.3.6).
func (n *Node) Kill9() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.server.kill()
	n.client.CloseIdleConnections()
}

// Terminate stops the node with SIGTERM, like an orderly shutdown, and returns once the node has
// ended (about 7 s). The data stays for Restart.
func (n *Node) Terminate() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.client.CloseIdleConnections()
	if err := n.server.terminate(endLimit); err != nil {
		return fmt.Errorf("shut RabbitMQ %s down: %w", n.Version(), err)
	}
	return nil
}

// Restart starts the node again with its name, ports and data, and returns once the node serves. If
// the node is running, Restart first kills it with SIGKILL. A queue that seems empty right after a
// restart may not be recovered yet.
func (n *Node) Restart(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.folder == nil {
		return errors.New("restart a broker: it was stopped, and its data is gone")
	}
	n.server.kill()
	n.client.CloseIdleConnections()
	return n.start(ctx)
}

// Stop kills the node immediately and removes its data. A second call, and a call after Kill9, are
// allowed.
func (n *Node) Stop() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.server.kill()
	n.epmd.kill()
	n.client.CloseIdleConnections()
	n.ports.release()
	if n.folder != nil {
		n.folder.remove()
		n.folder = nil
	}
}

// CPU returns the processor time that the node has used since its start, in steps of 10 ms. It
// works only on Linux.
func (n *Node) CPU() (time.Duration, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.server == nil {
		return 0, errors.New("the node is not running")
	}
	return CPU(n.server.pid)
}

// Version returns RabbitMQ's version, for example "3.10.8".
func (n *Node) Version() string { return n.installation.version }

// AtLeast reports whether RabbitMQ has the given version or a later one. An example of a version is
// "4.0".
func (n *Node) AtLeast(version string) bool { return !newer(version, n.Version()) }

// AMQPURL returns the AMQP URL of a vhost, with user and password.
func (n *Node) AMQPURL(vhost string) string { return n.AMQPURLVia(n.AMQPAddr(), vhost) }

// AMQPURLVia returns the AMQP URL of a vhost with the given address instead of the node's own. The
// address may be that of a Relay.
func (n *Node) AMQPURLVia(addr, vhost string) string {
	return "amqp://guest:guest@" + addr + "/" + url.PathEscape(vhost)
}

// AMQPAddr returns the address of the AMQP listener as host:port.
func (n *Node) AMQPAddr() string { return loopback(n.ports.amqp) }

// ManagementURL returns the URL of the management API without a trailing slash. It contains no user
// and no password. Both are "guest".
func (n *Node) ManagementURL() string { return "http://" + loopback(n.ports.management) }

// MetricsURL returns the URL of the node's metrics. It needs Options.Metrics.
func (n *Node) MetricsURL() string { return "http://" + loopback(n.ports.metrics) + "/metrics" }

// ManagementURLOf returns the URL of the management API with a user and a password. The parameter
// "user" contains both, for example "guest:guest".
func (n *Node) ManagementURLOf(user string) string {
	return "http://" + user + "@" + loopback(n.ports.management)
}

// Ctl runs rabbitmqctl on the node and returns its output. Use API if possible, because Ctl takes
// seconds.
func (n *Node) Ctl(args ...string) (string, error) {
	n.mu.Lock()
	f := n.folder
	n.mu.Unlock()
	if f == nil {
		return "", errors.New("rabbitmqctl: the broker was stopped")
	}
	out, err := os.CreateTemp(f.path, "ctl-*")
	if err != nil {
		return "", fmt.Errorf("rabbitmqctl: %w", err)
	}
	defer os.Remove(out.Name())
	defer out.Close()
	cmd := n.installation.command(f.path, n.env(), n.installation.program("rabbitmqctl"), args...)
	cmd.Stdout, cmd.Stderr = out, out
	p, err := start(cmd)
	if err != nil {
		return "", err
	}
	defer p.kill()
	what := "rabbitmqctl " + strings.Join(args, " ")
	select {
	case <-p.ended:
	case <-time.After(toolLimit):
		return "", fmt.Errorf("%s: no answer within %s", what, toolLimit)
	}
	text, err := os.ReadFile(out.Name())
	if err != nil {
		return "", fmt.Errorf("%s: %w", what, err)
	}
	if p.err != nil {
		return string(text), fmt.Errorf("%s: %w: %s", what, p.err, text)
	}
	return string(text), nil
}
