package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/testenv"
)

// patience is the time limit for each step of the test. It allows for the first build of dlo, and
// for a machine that runs other tests at the same time. A whole run normally takes about a minute.
const patience = 10 * time.Minute

// TestDemo runs the whole demo on a private node. Letters die, the fix is deployed, and the letters
// are requeued and accepted. Only the letters that the fix does not help come back. After Ctrl-C,
// the demo must leave nothing behind. DLO_TEST_BROKER can name the RabbitMQ to run, as for
// testenv.Broker.
func TestDemo(t *testing.T) {
	testenv.Full(t)
	if testing.Short() {
		t.Skip("short: it takes a broker and the whole demo")
	}
	t.Parallel()
	d := startDemo(t)
	d.wholeWay()
}

// TestDemoOnAGivenBroker runs the whole demo on an existing broker, whose URL is in DLO_AMQP_URL.
// It must go on after its connections were cut, and leave nothing behind on that broker.
func TestDemoOnAGivenBroker(t *testing.T) {
	testenv.Full(t)
	if testing.Short() {
		t.Skip("short: it takes a broker and the whole demo")
	}
	t.Parallel()
	vhost, address := testenv.VHost(t)
	node := testenv.Broker(t)
	d := startDemo(t, "DLO_AMQP_URL="+address, "DLO_MANAGEMENT_URL="+node.ManagementURLOf("guest:guest"))
	d.fixed = func() {
		if _, err := node.Ctl("close_all_connections", "--vhost", vhost, "test"); err != nil {
			t.Fatal(err)
		}
	}
	d.wholeWay()
	for what, path := range map[string]string{"queues": "/api/queues/", "policies": "/api/policies/"} {
		var left []struct{ Name string }
		if err := node.API(http.MethodGet, path+url.PathEscape(vhost), nil, &left); err != nil {
			t.Fatal(err)
		}
		if len(left) > 0 {
			t.Errorf("left on the broker: %s %v", what, left)
		}
	}
}

// running is a demo that runs as a child process of the test.
type running struct {
	t      *testing.T
	cmd    *exec.Cmd
	folder string
	url    string // of the dashboard
	fixed  func() // what happens after the fix; nil = nothing
	mu     sync.Mutex
	said   strings.Builder
	ended  chan struct{}
}

var dashboardLine = regexp.MustCompile(`Dashboard +(http://\S+)`)

// startDemo starts the demo with additional environment variables. It returns when the demo has
// printed the URL of its dashboard.
func startDemo(t *testing.T, env ...string) *running {
	t.Helper()
	d := &running{t: t, folder: filepath.Join(t.TempDir(), "demo"), ended: make(chan struct{})}
	args, _ := json.Marshal([]string{"demo", "-install=false", "-listen", "127.0.0.1:0", "-folder", d.folder})
	d.cmd = exec.Command(os.Args[0])
	d.cmd.Env = append(os.Environ(), "DLO_AMQP_URL=", "DLO_MANAGEMENT_URL=", runVariable+"="+string(args))
	d.cmd.Env = append(d.cmd.Env, env...)
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	d.cmd.Stdout, d.cmd.Stderr = write, write
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	write.Close()
	ready := make(chan string, 1)
	go func() {
		defer close(d.ended)
		defer read.Close()
		lines := bufio.NewScanner(read)
		for lines.Scan() {
			d.mu.Lock()
			d.said.WriteString(lines.Text() + "\n")
			d.mu.Unlock()
			if m := dashboardLine.FindStringSubmatch(lines.Text()); m != nil {
				ready <- m[1]
			}
		}
		d.cmd.Wait()
	}()
	t.Cleanup(func() {
		d.cmd.Process.Kill() // the kernel then kills the children of the demo too
		<-d.ended
		if t.Failed() {
			t.Log(d.output())
		}
	})
	select {
	case d.url = <-ready:
	case <-d.ended:
		if d.cmd.ProcessState.ExitCode() == exitMissing {
			testenv.Unavailable(t, fmt.Errorf("%w: %s", testenv.ErrMissing, d.output()))
		}
		t.Fatal("the demo ended while it started")
	case <-time.After(patience):
		t.Fatal("the demo does not start")
	}
	return d
}

func (d *running) output() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.said.String()
}

// TestMakeDemoSpeaksAtOnce checks that `make demo` prints a message before it compiles anything.
func TestMakeDemoSpeaksAtOnce(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("make", "--dry-run", "--no-print-directory", "demo")
	cmd.Dir = filepath.Join("..", "..")
	text, err := cmd.Output()
	if err != nil {
		testenv.Unavailable(t, fmt.Errorf("make: %w", err))
	}
	first, _, _ := strings.Cut(string(text), "\n")
	if !strings.HasPrefix(first, "echo 'compiling") {
		t.Errorf("make demo begins with %s", first)
	}
}

// saidInOrder checks that the demo has printed the given texts in the given order.
func (d *running) saidInOrder(steps ...string) {
	d.t.Helper()
	text := d.output()
	for _, step := range steps {
		_, rest, ok := strings.Cut(text, step)
		if !ok {
			d.t.Errorf("%q is not said, or not in its turn:\n%s", step, d.output())
		}
		text = rest
	}
}

// wholeWay goes through all steps of the demo, from the first dead letters to Ctrl-C.
func (d *running) wholeWay() {
	t := d.t
	family := descendants(t, d.cmd.Process.Pid)
	d.eventually(
		"56 letters that the fix can help, and four that it cannot, are dead",
		func() bool { return d.count("state:dead") >= 60 },
	)
	if n := d.count("queue:billing-queue"); n != 0 {
		t.Errorf("%d letters of the billing service", n)
	}
	if n := d.count("type:acme.notify.v1.SmsRequested"); n < 10 {
		t.Errorf("%d letters have the type that dlo.yaml binds to their queue", n)
	}

	d.saidInOrder("compiling dlo", "starting dlo", "declaring the queues of the shop", "Dashboard")
	d.eventually(
		"letters are found by a field of their bodies",
		func() bool { return d.count("body.tenant_id:48213") > 0 && d.count("body.template:welcome_v3") > 0 },
	)

	d.fix()
	fixed := time.Now()
	d.eventually("Overview says that the deploy has fixed it", func() bool {
		return strings.Contains(d.page("/"), "Nothing has died since notifications 1.4.1 went live")
	})
	if after := time.Since(fixed); after > 30*time.Second {
		t.Errorf("Overview says it %s after the deploy", after)
	}
	d.eventually(
		"what was on its way has passed", func() bool { return d.count("state:received,scheduled,publishing") == 0 },
	)
	if d.fixed != nil {
		d.fixed()
	}
	ids := d.dead()
	var operation struct{ ID string }
	d.call(http.MethodPost, "/api/v1/operations", map[string]any{
		"action": "requeue", "ids": ids, "reason": "the fix is deployed", "hold": "0s", "canary": 0, "rate": 100000,
		"stop_at": 0,
	}, &operation)
	d.eventually("a worker accepts what was requeued", func() bool {
		return regexp.MustCompile(`(email|sms)-queue: accepted .*\(attempt 3\)`).MatchString(d.output())
	})
	d.eventually(
		"the four that no fix helps are dead again, and nothing else",
		func() bool { return d.count("state:dead") == 4 && d.count("state:scheduled") == 0 },
	)
	d.eventually("all others are quiet", func() bool {
		var o struct{ Counts map[string]int }
		d.call(http.MethodGet, "/api/v1/operations/"+operation.ID, nil, &o)
		return o.Counts["came_back"] == 4 && o.Counts["quiet"]+o.Counts["unverified"] == len(ids)-4 &&
			d.count("state:settled") >= len(ids)-4
	})

	// The provider rejects the text because it is too long. The test shortens the text, and the worker
	// must accept the edited copy.
	var list struct{ Letters []struct{ ID string } }
	d.call(
		http.MethodGet, "/api/v1/letters?q="+url.QueryEscape("state:dead type:acme.notify.v1.SmsRequested"), nil, &list,
	)
	if len(list.Letters) != 1 {
		t.Fatalf("%d text messages are left", len(list.Letters))
	}
	var revised struct{ Operation string }
	d.call(http.MethodPost, "/api/v1/letters/"+list.Letters[0].ID+"/revisions", map[string]any{
		"patch":   []map[string]any{{"op": "replace", "path": "/text", "value": "Welcome aboard!"}},
		"reason":  "longer than the provider takes",
		"requeue": true,
	}, &revised)
	d.eventually("the worker accepts the edited copy", func() bool {
		return d.count("state:dead") == 3 && d.count("state:scheduled") == 0 &&
			regexp.MustCompile(`sms-queue: accepted .*\(attempt 4\)`).MatchString(d.output())
	})
	if strings.Contains(d.output(), "billing-queue: accepted") {
		t.Error("a requeue reached the billing service")
	}

	if err := d.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	select {
	case <-d.ended:
	case <-time.After(patience):
		t.Fatal("the demo does not stop")
	}
	if code := d.cmd.ProcessState.ExitCode(); code != 0 ||
		!strings.Contains(d.output(), "stopped; nothing is left running") {
		t.Errorf("exit code %d", code)
	}
	if len(family) < 1 {
		t.Errorf("the demo had no children: %v", family)
	}
	d.eventually("no process of the demo is left", func() bool {
		now := processes(t)
		for _, p := range family {
			if now[p.pid] == p {
				return false
			}
		}
		return true
	})
	if _, err := os.Stat(d.folder); !os.IsNotExist(err) {
		t.Errorf("the folder of the demo is left: %v", err)
	}
}

// fix deploys the fix, as `make demo-fix` does.
func (d *running) fix() {
	d.t.Helper()
	var answer strings.Builder
	if err := run(
		d.t.Context(), []string{"-folder", d.folder, "fix"}, os.Getenv, nil, &answer, &answer,
	); err != nil || !strings.Contains(answer.String(), "the fix is deployed") {
		d.t.Fatalf("fix: %v %s", err, answer.String())
	}
}

// eventually waits until "done" returns true. The parameter "what" describes the condition, for the
// error.
func (d *running) eventually(what string, done func() bool) {
	d.t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		if done() {
			return
		}
	}
	d.t.Fatalf("not within %s: %s", patience, what)
}

// call sends a request to dlo's API and decodes the response into the value that "into" points to.
func (d *running) call(method, path string, body, into any) {
	d.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		d.t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(context.Background(), method, d.url+path, bytes.NewReader(text))
	if err != nil {
		d.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		d.t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode >= 300 {
		d.t.Fatalf("%s %s: %s", method, path, answer.Status)
	}
	if err := json.NewDecoder(answer.Body).Decode(into); err != nil {
		d.t.Fatal(err)
	}
}

// page returns the text of a page of the dashboard.
func (d *running) page(path string) string {
	d.t.Helper()
	answer, err := http.Get(d.url + path)
	if err != nil {
		d.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	return string(text)
}

func (d *running) count(q string) int {
	d.t.Helper()
	var answer struct{ Count int }
	d.call(http.MethodGet, "/api/v1/letters/count?exact=1&q="+url.QueryEscape(q), nil, &answer)
	return answer.Count
}

func (d *running) dead() []string {
	d.t.Helper()
	var answer struct{ Letters []struct{ ID string } }
	d.call(http.MethodGet, "/api/v1/letters?limit=500&q=state:dead", nil, &answer)
	var ids []string
	for _, l := range answer.Letters {
		ids = append(ids, l.ID)
	}
	return ids
}

// seen is a process in the output of ps. The start time distinguishes it from a later process that
// has the same process id.
type seen struct {
	pid, parent int
	start       string
}

func processes(t *testing.T) map[int]seen {
	t.Helper()
	cmd := exec.Command("ps", "-e", "-o", "pid=,ppid=,lstart=")
	cmd.Env = []string{"LC_ALL=C", "PATH=" + os.Getenv("PATH")}
	text, err := cmd.Output()
	if err != nil {
		t.Fatalf("ps: %v", err)
	}
	all := map[int]seen{}
	for line := range strings.Lines(string(text)) {
		var p seen
		if _, err := fmt.Sscan(line, &p.pid, &p.parent); err == nil {
			p.start = strings.Join(strings.Fields(line)[2:], " ")
			all[p.pid] = p
		}
	}
	return all
}

// descendants returns the children of the process "pid", their children, and so on.
func descendants(t *testing.T, pid int) []seen {
	all := processes(t)
	var found []seen
	for _, p := range all {
		for up := p.parent; up != 0; up = all[up].parent {
			if up == pid {
				found = append(found, p)
				break
			}
		}
	}
	return found
}
